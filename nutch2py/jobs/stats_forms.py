"""The statistics of ``readdb -stats`` as lines, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nutch2py.joblog.figures import Spread
from nutch2py.jobs.job_lines import clock
from nutch2py.jobs.quantiles import Sketch
from nutch2py.jobs.readdb_text import float_text, status_text
from nutch2py.jobs.snapshot import figures_of, status_name
from nutch2py.jobs.stats_by import NEXT, Breakdown

_BOUNDS = {"fetch interval": ("shortest", "avg", "longest"), "fetch time": ("earliest", "avg", "latest")}
"""As Nutch 1 names them; of all others min, avg and max."""
_UNITS = {"fetch interval": " s", "response time": " ms"}
_JSON = {"fetch interval": "fetchInterval", "fetch time": "fetchTime", "response time": "responseTime"}


def ordered(what: str, found: Breakdown) -> list[tuple[str, dict[int, int]]]:
    """Return names and rows by status code: depths and times in their order, all others with the most rows first."""
    greatest = found.by[what].greatest
    match what:
        case "depth":
            return sorted(greatest, key=lambda each: (not each[0].isdecimal(), len(each[0]), each[0]))
        case "next":
            return sorted(greatest, key=lambda each: NEXT.index(each[0]))
        case _:
            return greatest


def lines(found: Breakdown, quantiles: Sequence[float], now: int) -> list[str]:
    """Return what follows Nutch's lines, as ``name:<TAB>value``; a time as that of the clock.

    A name's line: ``host a.test:<TAB>rows<TAB>status rows, status rows``.
    """
    told = []
    for name, sketch in found.sketches.items():
        show = _shown(name, now)
        bounds = (sketch.least, sketch.sum / sketch.count, sketch.greatest)
        if name != "score":  # Nutch's own lines have these
            words = _BOUNDS.get(name, ("min", "avg", "max"))
            told += [f"{word} {name}:\t{show(value)}" for word, value in zip(words, bounds, strict=True)]
        told += [f"{name} quantile {part:g}:\t{show(value)}" for part, value in sketch.quantiles(quantiles).items()]
    for what, greatest in found.by.items():
        told.append(f"{what}s:\t{greatest.names}" if what not in ("next", "depth") else f"{what}:\t{greatest.names}")
        for name, by in ordered(what, found):
            states = ", ".join(f"{status_text(status)} {count}" for status, count in sorted(by.items()))
            told.append(f"{what} {name}:\t{sum(by.values())}\t{states}")
    return told


def _shown(name: str, now: int) -> Callable[[float], str]:
    if name == "fetch time":
        return lambda value: _clock(now / 1000 + value)
    if name in _UNITS:
        return lambda value: f"{value:.0f}{_UNITS[name]}"
    return float_text


def _clock(seconds: float) -> str:
    try:
        return clock(seconds)
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return f"{seconds:.0f} s"


def as_json(found: Breakdown, quantiles: Sequence[float], now: int, *, sort: bool = False) -> dict[str, Any]:
    """Return all as one object: figures, ``hosts`` with ``sort``, ``quantiles``, ``by``. Times are ms since 1970."""
    stats = found.stats
    told: dict[str, Any] = {"kept": stats.kept, **msgspec.to_builtins(figures_of(stats, now))}
    if sort:
        told["hosts"] = hosts = dict[str, dict[str, int]]()
        for (status, host), count in sorted(stats.hosts.items(), key=lambda each: (each[0][1], each[0][0])):
            _add(hosts.setdefault(host, {}), status, count)
    if found.sketches:
        told["quantiles"] = {
            _JSON.get(name, name): _sketched(sketch, quantiles, now if name == "fetch time" else None)
            for name, sketch in found.sketches.items()
        }
    if found.by:
        told["by"] = {
            what: {
                "names": each.names,
                "rows": each.rows,
                "greatest": [
                    {"name": name, "rows": sum(by.values()), "status": _named(by)} for name, by in ordered(what, found)
                ],
            }
            for what, each in found.by.items()
        }
    return told


def _sketched(sketch: Sketch, quantiles: Sequence[float], now: int | None) -> dict[str, Any]:
    def told(value: float) -> float:
        return value if now is None else round(now + value * 1000)

    return {
        "rows": sketch.count,
        "least": told(sketch.least),
        "mean": told(sketch.sum / sketch.count),
        "greatest": told(sketch.greatest),
        "quantiles": {f"{part:g}": told(value) for part, value in sketch.quantiles(quantiles).items()},
    }


def _named(by: Mapping[int, int]) -> dict[str, int]:
    named: dict[str, int] = {}
    for status, count in sorted(by.items()):
        _add(named, status, count)
    return named


def _add(named: dict[str, int], status: int, count: int) -> None:
    named[status_name(status)] = named.get(status_name(status), 0) + count


def csv_rows(told: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (figure, name, value) of :func:`as_json`'s object, as ``status,status_fetched,120``."""
    yield "figure", "name", "value"
    yield "rows", "", told["rows"]
    for figure in ("status", "retries", "protocol", "parse"):
        for name, value in told[figure].items():
            yield figure, name, value
    for name, value in zip(Spread._fields, told["score"] or (), strict=False):
        yield f"score {name}", "", value
    if "since" in told:
        yield "made", "", told["made"]
        yield from (("since", job, count) for job, count in (told["since"] or {}).items())
    for host, by in told.get("hosts", {}).items():
        for status, count in by.items():
            yield f"host {status}", host, count
    for name, sketch in told.get("quantiles", {}).items():
        for bound in Spread._fields if name != "score" else ():
            yield f"{name} {bound}", "", sketch[bound]
        for part, value in sketch["quantiles"].items():
            yield f"{name} quantile", part, value
    for what, counted in told.get("by", {}).items():
        yield f"{what} names", "", counted["names"]
        for each in counted["greatest"]:
            yield what, each["name"], each["rows"]
            if what == "host" and "hosts" in told:  # which has them of all hosts
                continue
            for status, count in each["status"].items():
                yield f"{what} {status}", each["name"], count
