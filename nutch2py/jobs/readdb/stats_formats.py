"""The statistics of ``readdb -stats`` as lines, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nutch2py.joblog.table_stats import ScoreSummary
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.jobs.readdb.stats_breakdown import NEXT_FETCH_LABELS, StatsBreakdown
from nutch2py.jobs.row_output.row_text import format_float, format_status
from nutch2py.jobs.stats.quantile_sketch import QuantileSketch
from nutch2py.jobs.stats.stats_snapshot import get_status_name, to_table_stats

_BOUND_NAMES = {"fetch interval": ("shortest", "avg", "longest"), "fetch time": ("earliest", "avg", "latest")}
"""As Nutch 1 names them; of all others min, avg and max."""
_UNITS = {"fetch interval": " s", "response time": " ms"}
_JSON_NAMES = {"fetch interval": "fetchInterval", "fetch time": "fetchTime", "response time": "responseTime"}


def sort_names(kind: str, breakdown: StatsBreakdown) -> list[tuple[str, dict[int, int]]]:
    """Return names and rows by status code: depths and times in their order, all others with the most rows first."""
    greatest = breakdown.names_by_kind[kind].top
    match kind:
        case "depth":
            return sorted(greatest, key=lambda each: (not each[0].isdecimal(), len(each[0]), each[0]))
        case "next":
            return sorted(greatest, key=lambda each: NEXT_FETCH_LABELS.index(each[0]))
        case _:
            return greatest


def format_stats_lines(breakdown: StatsBreakdown, quantiles: Sequence[float], now: int) -> list[str]:
    """Return what follows Nutch's lines, as ``name:<TAB>value``; a time as that of the clock.

    A name's line: ``host a.test:<TAB>rows<TAB>status rows, status rows``.
    """
    told = []
    for name, sketch in breakdown.sketches.items():
        show = _choose_formatter(name, now)
        bounds = (sketch.minimum, sketch.sum / sketch.count, sketch.maximum)
        if name != "score":  # Nutch's own lines have these
            words = _BOUND_NAMES.get(name, ("min", "avg", "max"))
            told += [f"{word} {name}:\t{show(value)}" for word, value in zip(words, bounds, strict=True)]
        told += [f"{name} quantile {part:g}:\t{show(value)}" for part, value in sketch.get_quantiles(quantiles).items()]
    for what, greatest in breakdown.names_by_kind.items():
        told.append(
            f"{what}s:\t{greatest.name_count}" if what not in ("next", "depth") else f"{what}:\t{greatest.name_count}"
        )
        for name, by in sort_names(what, breakdown):
            states = ", ".join(f"{format_status(status)} {count}" for status, count in sorted(by.items()))
            told.append(f"{what} {name}:\t{sum(by.values())}\t{states}")
    return told


def _choose_formatter(name: str, now: int) -> Callable[[float], str]:
    if name == "fetch time":
        return lambda value: _format_time_or_seconds(now / 1000 + value)
    if name in _UNITS:
        return lambda value: f"{value:.0f}{_UNITS[name]}"
    return format_float


def _format_time_or_seconds(seconds: float) -> str:
    try:
        return format_time(seconds)
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return f"{seconds:.0f} s"


def stats_to_json(
    breakdown: StatsBreakdown, quantiles: Sequence[float], now: int, *, by_host: bool = False
) -> dict[str, Any]:
    """Return all as one object: figures, ``hosts`` with ``by_host``, ``quantiles``, ``by``. Times are ms since 1970."""
    stats = breakdown.stats
    told: dict[str, Any] = {"kept": stats.kept, **msgspec.to_builtins(to_table_stats(stats, now))}
    if by_host:
        told["hosts"] = hosts = dict[str, dict[str, int]]()
        for (status, host), count in sorted(stats.hosts.items(), key=lambda each: (each[0][1], each[0][0])):
            _add_status(hosts.setdefault(host, {}), status, count)
    if breakdown.sketches:
        told["quantiles"] = {
            _JSON_NAMES.get(name, name): _sketch_to_json(sketch, quantiles, now if name == "fetch time" else None)
            for name, sketch in breakdown.sketches.items()
        }
    if breakdown.names_by_kind:
        told["by"] = {
            what: {
                "names": each.name_count,
                "rows": each.row_count,
                "greatest": [
                    {"name": name, "rows": sum(by.values()), "status": _count_by_status_name(by)}
                    for name, by in sort_names(what, breakdown)
                ],
            }
            for what, each in breakdown.names_by_kind.items()
        }
    return told


def _sketch_to_json(sketch: QuantileSketch, quantiles: Sequence[float], now: int | None) -> dict[str, Any]:
    def told(value: float) -> float:
        return value if now is None else round(now + value * 1000)

    return {
        "rows": sketch.count,
        "minimum": told(sketch.minimum),
        "mean": told(sketch.sum / sketch.count),
        "maximum": told(sketch.maximum),
        "quantiles": {f"{part:g}": told(value) for part, value in sketch.get_quantiles(quantiles).items()},
    }


def _count_by_status_name(by: Mapping[int, int]) -> dict[str, int]:
    named: dict[str, int] = {}
    for status, count in sorted(by.items()):
        _add_status(named, status, count)
    return named


def _add_status(named: dict[str, int], status: int, count: int) -> None:
    named[get_status_name(status)] = named.get(get_status_name(status), 0) + count


def iter_csv_rows(stats: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (figure, name, value) of :func:`stats_to_json`'s object, as ``status,status_fetched,120``."""
    yield "figure", "name", "value"
    yield "rows", "", stats["rows"]
    for figure in ("status", "retries", "protocol", "parse"):
        for name, value in stats[figure].items():
            yield figure, name, value
    for name, value in zip(ScoreSummary._fields, stats["score"] or (), strict=False):
        yield f"score {name}", "", value
    if "since" in stats:
        yield "counted_at", "", stats["counted_at"]
        yield from (("since", job, count) for job, count in (stats["since"] or {}).items())
    for host, by in stats.get("hosts", {}).items():
        for status, count in by.items():
            yield f"host {status}", host, count
    for name, sketch in stats.get("quantiles", {}).items():
        for bound in ScoreSummary._fields if name != "score" else ():
            yield f"{name} {bound}", "", sketch[bound]
        for part, value in sketch["quantiles"].items():
            yield f"{name} quantile", part, value
    for what, counted in stats.get("by", {}).items():
        yield f"{what} names", "", counted["names"]
        for each in counted["greatest"]:
            yield what, each["name"], each["rows"]
            if what == "host" and "hosts" in stats:  # which has them of all hosts
                continue
            for status, count in each["status"].items():
                yield f"{what} {status}", each["name"], count
