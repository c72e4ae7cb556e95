"""What ``readdb -stats`` counts when it reads every row; also by host, domain, depth, next fetch and error.

One pass over all rows, whatever is asked for. Names are added up by reduce tasks, of which each keeps the greatest, so
that a table of any number of hosts is counted in bounded memory; the numbers are exact.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from nutch2py.cells import CellError, decode_int
from nutch2py.fetcher.troubles import FINE
from nutch2py.jobs.quantiles import Sketch
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.jobs.readdb_text import parse_status_name, protocol_status_name
from nutch2py.jobs.spreads import FIELDS as SPREAD
from nutch2py.jobs.spreads import Spreads
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import SEVERAL, TIME, JobParameters
from nutch2py.record import Field
from nutch2py.url.keys import host_of_key, unreverse_host
from nutch2py.url.parts import domain_of_host
from nutch2py.webpage import Mark, MetadataKey, ParseStatusCode, WebPage

_HOUR, _DAY = 3_600_000, 86_400_000
_TIMES = (-30 * _DAY, -7 * _DAY, -_DAY, -_HOUR, 0, _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY)
NEXT = (
    "due for more than 30 days", "due for 7 to 30 days", "due for 1 to 7 days", "due for 1 to 24 hours",
    "due for less than an hour", "in less than an hour", "in 1 to 24 hours", "in 1 to 7 days", "in 7 to 30 days",
    "in 30 to 90 days", "in more than 90 days",
)  # fmt: skip
"""Names of the times until the next fetch, by the places in which a time stands among those above, in ms."""
_LONGEST_REASON = 60  # characters
_HELD = 50_000  # names that a task holds before it gives them on
_BESIDE = ("counts", "spreads", "quantiles")
"""What a task tells beside names, under these keys; names have a tab in theirs."""

BY: Mapping[str, frozenset[Field[Any]]] = {
    "host": frozenset(),
    "domain": frozenset(),
    "depth": frozenset({WebPage.markers}),
    "next": frozenset({WebPage.fetch_time}),
    "error": frozenset(),
}
"""What rows can be counted by, and what is read for it beside what the statistics read."""
_MEASURED: frozenset[Field[Any]] = frozenset(
    {WebPage.fetch_time, WebPage.markers, WebPage.metadata, WebPage.page_rank, WebPage.retries_since_fetch}
)


@dataclass(frozen=True, kw_only=True)
class ByParameters(JobParameters):
    """``by``: keys of :data:`BY`. ``most``: names of each that are kept. ``quantiles``: also those. ``now``: ms.

    ``sort``: rows by status and host, of every host.
    """

    by: list[str] = field(default_factory=list)
    most: int = 100
    quantiles: bool = False
    now: int = 0
    sort: bool = False
    ranges: ClassVar = {"most": SEVERAL, "now": TIME}

    @property
    def fields(self) -> frozenset[Field[Any]]:
        """What is read of a row."""
        more = _MEASURED if self.quantiles else frozenset()
        return (StatsCollector.FIELDS | SPREAD | more).union(*(BY[what] for what in self.by))


@dataclass
class Greatest:
    """Rows by what names of one kind: how many ``names`` there are, with how many ``rows``, and the greatest of them.

    ``greatest``: (name, rows by status code), the most rows first, equal ones by name.
    """

    names: int = 0
    rows: int = 0
    greatest: list[tuple[str, dict[int, int]]] = field(default_factory=list)

    def merge(self, names: int, rows: int, greatest: Iterable[tuple[str, dict[int, int]]]) -> None:
        """Add other names; no name is in both."""
        self.names += names
        self.rows += rows
        self.greatest += greatest

    def keep(self, most: int) -> None:
        """Let go of all but the greatest."""
        self.greatest = heapq.nsmallest(most, self.greatest, key=_order)


@dataclass
class Breakdown:
    """What a pass counted: statistics, spreads, names by what they are, sketches by what they are of."""

    stats: StatsCollector
    spreads: Spreads = field(default_factory=Spreads)
    by: dict[str, Greatest] = field(default_factory=dict)
    sketches: dict[str, Sketch] = field(default_factory=dict)


def _order(each: tuple[str, Mapping[int, int]]) -> tuple[int, str]:
    return -sum(each[1].values()), each[0]


def errors_of(page: WebPage) -> Iterator[str]:
    """Yield what went wrong with a page: the protocol status with the kind of its reason, and the parse status."""
    status = page.protocol_status
    if status is not None and status.code not in FINE:
        yield f"{protocol_status_name(status.code)} {_reason(status.args[0] if status.args else '')}".rstrip()
    if page.parse_status is not None and page.parse_status.major == ParseStatusCode.FAILED:
        yield f"parse {parse_status_name(page.parse_status)}"


def _reason(text: str) -> str:
    """Return the kind of a reason: its words up to what they are said of; "" where a URL stands alone.

    >>> [_reason(text) for text in ("Http code=503, url=http://a/", "UnknownHost: no.test", "http://a/b")]
    ['Http code=503', 'UnknownHost', '']
    """
    text = text.partition("\n")[0]
    ends = [at for at in map(text.find, (", url=", " url=", ": ", "://")) if at >= 0]
    end = min(ends, default=len(text))
    return "" if text.startswith("://", end) else " ".join(text[:end][:_LONGEST_REASON].split())


def _depth(page: WebPage) -> str:
    found = page.markers.get(Mark.DISTANCE) or ""
    return found if found.isdecimal() else "unknown"


class BreakdownJob(TableJob[ByParameters]):
    """Rows to statistics, spreads and sketches of each split, and to the greatest names of all."""

    def prepare(self) -> None:
        """Read what is counted by, and nothing else."""
        self.fields = self.parameters.fields

    @property
    def reduce_steps(self) -> int:  # type: ignore[override]
        """None where no names are to be added up."""
        return 1 if self.parameters.by else 0

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield rows by ``what<TAB>name``, and what the split counts beside."""
        wanted = self.parameters
        stats, spreads = StatsCollector(wanted.sort), Spreads()
        sketches: dict[str, Sketch] = defaultdict(Sketch)
        held: dict[str, Counter[int]] = defaultdict(Counter)
        for key, page in pages:
            stats.add(key, page)
            spreads.add(page)
            if wanted.quantiles:
                for name, value in self._values(page):
                    sketches[name].add(value)
            for what in wanted.by:
                for name in self._names(what, key, page):
                    held[f"{what}\t{name}"][page.status] += 1
            if len(held) >= _HELD:
                yield from ((name, [*counts.items()]) for name, counts in held.items())
                held.clear()
        yield from ((name, [*counts.items()]) for name, counts in held.items())
        told = stats.to_json(), spreads.to_json(), {name: sketch.to_json() for name, sketch in sketches.items()}
        yield from zip(_BESIDE, told, strict=True)

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Yield the greatest names of those that this task has, and hand on what stands beside them."""
        most = self.parameters.most
        kept: dict[str, Greatest] = {}
        for key, told in groups:
            what, tab, name = key.partition("\t")
            if not tab:
                yield from ((key, each) for each in told)
                continue
            counts = Counter[int]()
            for part in told:
                for status, rows in part:
                    counts[status] += rows
            (mine := kept.setdefault(what, Greatest())).merge(1, counts.total(), [(name, dict(counts))])
            if len(mine.greatest) >= most + _HELD:
                mine.keep(most)
        for what, each in kept.items():
            each.keep(most)
            yield f"{what}\t", [each.names, each.rows, [[name, [*by.items()]] for name, by in each.greatest]]

    def _names(self, what: str, key: str, page: WebPage) -> Iterable[str]:
        match what:
            case "host":
                return (unreverse_host(host_of_key(key)),)
            case "domain":
                return (domain_of_host(unreverse_host(host_of_key(key))),)
            case "depth":
                return (_depth(page),)
            case "next":
                return (NEXT[bisect_right(_TIMES, page.fetch_time - self.parameters.now)],)
            case _:
                return errors_of(page)

    def _values(self, page: WebPage) -> Iterator[tuple[str, float]]:
        yield "score", page.score
        yield "fetch interval", page.fetch_interval
        yield "fetch time", (page.fetch_time - self.parameters.now) / 1000.0
        yield "retries", page.retries_since_fetch
        if page.page_rank:
            yield "pagerank", page.page_rank
        if (depth := _depth(page)).isdecimal():
            yield "depth", float(depth[:9])
        if (cell := page.metadata.get(MetadataKey.RESPONSE_TIME)) is not None:
            with suppress(CellError):
                yield "response time", decode_int(cell)


def merged(output: Iterable[Pair], asked: ByParameters) -> Breakdown:
    """Return what the tasks of :class:`BreakdownJob` have counted as one."""
    found = Breakdown(StatsCollector(asked.sort))
    for key, told in output:
        match key:
            case "counts":
                found.stats.merge(StatsCollector.from_json(told))
            case "spreads":
                found.spreads.merge(told)
            case "quantiles":
                for name, sketch in told.items():
                    found.sketches.setdefault(name, Sketch()).merge(sketch)
            case _:
                names, rows, greatest = told
                some = [(name, dict(by)) for name, by in greatest]
                (mine := found.by.setdefault(key.rstrip("\t"), Greatest())).merge(names, rows, some)
                mine.keep(asked.most)
    found.by = {what: found.by[what] for what in asked.by if what in found.by}  # tasks end in any order
    return found
