"""Formats the statistics of ``readdb -stats`` as text, JSON and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nutch2py.joblog.table_stats import ScoreSummary
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.jobs.readdb.stats_breakdown import NEXT_FETCH_LABELS, StatsBreakdown
from nutch2py.jobs.row_output.row_text import format_float, format_status
from nutch2py.jobs.stats.quantile_sketch import QuantileSketch
from nutch2py.jobs.stats.stats_collector import get_status_name

_BOUND_NAMES = {"fetch interval": ("shortest", "avg", "longest"), "fetch time": ("earliest", "avg", "latest")}
"""Names of minimum, mean and maximum in Nutch 1, where they are not min, avg and max."""
_UNITS = {"fetch interval": " s", "response time": " ms"}
_JSON_NAMES = {"fetch interval": "fetchInterval", "fetch time": "fetchTime", "response time": "responseTime"}


def sort_names(kind: str, breakdown: StatsBreakdown) -> list[tuple[str, dict[int, int]]]:
    """Return names and rows by status code: depths and times in their order, others by descending rows."""
    top = breakdown.names_by_kind[kind].top
    match kind:
        case "depth":
            return sorted(top, key=lambda each: (not each[0].isdecimal(), len(each[0]), each[0]))
        case "next":
            return sorted(top, key=lambda each: NEXT_FETCH_LABELS.index(each[0]))
        case _:
            return top


def format_stats_lines(
    breakdown: StatsBreakdown, quantiles: Sequence[float], now: int, show_host: Callable[[str], str] = str
) -> list[str]:
    """Return the lines after those of Nutch, as ``name:<TAB>value``; times in local time.

    Line of a name: ``host a.test:<TAB>rows<TAB>status rows, status rows``.
    """
    result = []
    for name, sketch in breakdown.sketches.items():
        show = _choose_formatter(name, now)
        bounds = (sketch.minimum, sketch.sum / sketch.count, sketch.maximum)
        if name != "score":  # in Nutch's own lines
            words = _BOUND_NAMES.get(name, ("min", "avg", "max"))
            result += [f"{word} {name}:\t{show(value)}" for word, value in zip(words, bounds, strict=True)]
        result += [
            f"{name} quantile {part:g}:\t{show(value)}" for part, value in sketch.get_quantiles(quantiles).items()
        ]
    for kind, top in breakdown.names_by_kind.items():
        result.append(f"{kind}s:\t{top.name_count}" if kind not in ("next", "depth") else f"{kind}:\t{top.name_count}")
        for name, by in sort_names(kind, breakdown):
            states = ", ".join(f"{format_status(status)} {count}" for status, count in sorted(by.items()))
            shown = show_host(name) if kind in ("host", "domain") else name
            result.append(f"{kind} {shown}:\t{sum(by.values())}\t{states}")
    return result


def _choose_formatter(name: str, now: int) -> Callable[[float], str]:
    if name == "fetch time":
        return lambda value: _format_time_or_seconds(now / 1000 + value)
    if name in _UNITS:
        return lambda value: f"{value:.0f}{_UNITS[name]}"
    return format_float


def _format_time_or_seconds(seconds: float) -> str:
    try:
        return format_time(seconds)
    except (OverflowError, ValueError, OSError):  # outside the range of the calendar
        return f"{seconds:.0f} s"


def stats_to_json(
    breakdown: StatsBreakdown, quantiles: Sequence[float], now: int, *, by_host: bool = False
) -> dict[str, object]:
    """Return one object: statistics, ``hosts`` with ``by_host``, ``quantiles``, ``by``. Times are ms since 1970."""
    stats = breakdown.stats
    result: dict[str, object] = {"kept": stats.kept, **msgspec.to_builtins(stats.to_table_stats(now))}
    if by_host:
        result["hosts"] = hosts = dict[str, dict[str, int]]()
        for (status, host), count in sorted(stats.hosts.items(), key=lambda each: (each[0][1], each[0][0])):
            _add_status(hosts.setdefault(host, {}), status, count)
    if breakdown.sketches:
        result["quantiles"] = {
            _JSON_NAMES.get(name, name): _sketch_to_json(sketch, quantiles, now if name == "fetch time" else None)
            for name, sketch in breakdown.sketches.items()
        }
    if breakdown.names_by_kind:
        result["by"] = {
            kind: {
                "names": each.name_count,
                "rows": each.row_count,
                "greatest": [
                    {"name": name, "rows": sum(by.values()), "status": _count_by_status_name(by)}
                    for name, by in sort_names(kind, breakdown)
                ],
            }
            for kind, each in breakdown.names_by_kind.items()
        }
    return result


def _sketch_to_json(sketch: QuantileSketch, quantiles: Sequence[float], now: int | None) -> dict[str, object]:
    def to_value(value: float) -> float:
        return value if now is None else round(now + value * 1000)

    return {
        "rows": sketch.count,
        "minimum": to_value(sketch.minimum),
        "mean": to_value(sketch.sum / sketch.count),
        "maximum": to_value(sketch.maximum),
        "quantiles": {f"{part:g}": to_value(value) for part, value in sketch.get_quantiles(quantiles).items()},
    }


def _count_by_status_name(by: Mapping[int, int]) -> dict[str, int]:
    named: dict[str, int] = {}
    for status, count in sorted(by.items()):
        _add_status(named, status, count)
    return named


def _add_status(named: dict[str, int], status: int, count: int) -> None:
    named[get_status_name(status)] = named.get(get_status_name(status), 0) + count


def iter_csv_rows(stats: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (statistic, name, value) of :func:`stats_to_json`'s object, as ``status,status_fetched,120``."""
    yield "statistic", "name", "value"
    yield "rows", "", stats["rows"]
    for statistic in ("status", "retries", "protocol", "parse"):
        for name, value in stats[statistic].items():
            yield statistic, name, value
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
    for kind, counted in stats.get("by", {}).items():
        yield f"{kind} names", "", counted["names"]
        for each in counted["greatest"]:
            yield kind, each["name"], each["rows"]
            if kind == "host" and "hosts" in stats:  # "hosts" has these counts of all hosts
                continue
            for status, count in each["status"].items():
                yield f"{kind} {status}", each["name"], count
