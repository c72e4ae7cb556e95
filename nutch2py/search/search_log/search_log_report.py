"""Prints the search log's statistics for the command ``searchlog``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.search.search_log.logged_search import SearchSource
from nutch2py.search.search_log.search_quality import QueryStats, SearchQuality, read_search_quality
from nutch2py.support.formatting import escape_invisible, format_number
from nutch2py.support.reporting import print_output


def print_search_quality(
    conf: Configuration, days: float, top: int, source: SearchSource | None = None, as_json: bool = False
) -> int:
    """Print the statistics; return exit code 1 if the log has no search of these days."""
    quality = read_search_quality(conf, days, top, source)
    if as_json:
        print_output(msgspec.json.encode(quality).decode())
    else:
        for line in _format_lines(quality):
            print_output(line)
    return 0 if quality.searches else 1


def _format_lines(quality: SearchQuality) -> Iterator[str]:
    yield f"searches:\t{quality.searches}"
    yield f"queries:\t{quality.queries}"
    yield f"sessions:\t{quality.sessions}"
    yield f"without hits:\t{quality.without_hits}"
    yield f"with clicks:\t{quality.clicked}"
    yield f"clicks:\t{quality.clicks}"
    yield f"click-through:\t{_format_share(quality.click_through)}"
    yield f"mean click position:\t{_format_position(quality.mean_click_position)}"
    dwell = quality.median_dwell_ms
    yield f"median dwell time:\t{'-' if dwell is None else f'{dwell / 1000:.1f} s'}"
    for title, queries in (
        ("frequent queries", quality.frequent),
        ("queries without hits", quality.no_hits),
        ("queries without clicks", quality.no_clicks),
    ):
        if queries:
            yield ""
            yield f"{title}:\tsearches\thits\tclick-through\tmean click position"
            yield from map(_format_query, queries)


def _format_query(stats: QueryStats) -> str:
    columns = (
        escape_invisible(stats.query),
        format_number(stats.searches),
        format_number(stats.total),
        _format_share(stats.click_through),
        _format_position(stats.mean_click_position),
    )
    return "\t".join(columns)


def _format_share(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def _format_position(position: float | None) -> str:
    return "-" if position is None else f"{position:.1f}"
