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

from nutch2py.fetcher.stats.host_failures import GOOD_STATUSES
from nutch2py.jobs.row_output.row_text import parse_status_name, protocol_status_name
from nutch2py.jobs.stats.histograms import HISTOGRAM_FIELDS as SPREAD
from nutch2py.jobs.stats.histograms import HistogramCollector
from nutch2py.jobs.stats.quantile_sketch import QuantileSketch
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.mapreduce.job_parameters import POSITIVE, TIME_RANGE, JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.records.cells import CellError, decode_int
from nutch2py.records.record import Field
from nutch2py.records.webpage import Mark, MetadataKey, ParseStatusCode, WebPage
from nutch2py.url.keys import reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import domain_of_host

_HOUR, _DAY = 3_600_000, 86_400_000
_NEXT_FETCH_BOUNDS = (-30 * _DAY, -7 * _DAY, -_DAY, -_HOUR, 0, _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY)
NEXT_FETCH_LABELS = (
    "due for more than 30 days", "due for 7 to 30 days", "due for 1 to 7 days", "due for 1 to 24 hours",
    "due for less than an hour", "in less than an hour", "in 1 to 24 hours", "in 1 to 7 days", "in 7 to 30 days",
    "in 30 to 90 days", "in more than 90 days",
)  # fmt: skip
"""Names of the times until the next fetch, by the places in which a time stands among those above, in ms."""
_MAX_REASON_CHARACTERS = 60  # characters
_MAX_BUFFERED_NAMES = 50_000  # names that a task holds before it gives them on
_TOTALS_KEYS = ("counts", "spreads", "quantiles")
"""What a task tells beside names, under these keys; names have a tab in theirs."""

BREAKDOWN_FIELDS: Mapping[str, frozenset[Field[Any]]] = {
    "host": frozenset(),
    "domain": frozenset(),
    "depth": frozenset({WebPage.markers}),
    "next": frozenset({WebPage.fetch_time}),
    "error": frozenset(),
}
"""What rows can be counted by, and what is read for it beside what the statistics read."""
_QUANTILE_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.fetch_time, WebPage.markers, WebPage.metadata, WebPage.page_rank, WebPage.retries_since_fetch}
)


@dataclass(frozen=True, kw_only=True)
class BreakdownParameters(JobParameters):
    """``by``: keys of :data:`BREAKDOWN_FIELDS`. ``most``: names of each that are kept. ``quantiles``: also those. ``now``: ms.

    ``sort``: rows by status and host, of every host.
    """

    by: list[str] = field(default_factory=list)
    most: int = 100
    quantiles: bool = False
    now: int = 0
    sort: bool = False
    ranges: ClassVar = {"most": POSITIVE, "now": TIME_RANGE}

    @property
    def fields(self) -> frozenset[Field[Any]]:
        """What is read of a row."""
        more = _QUANTILE_FIELDS if self.quantiles else frozenset()
        return (StatsCollector.FIELDS | SPREAD | more).union(*(BREAKDOWN_FIELDS[what] for what in self.by))


@dataclass
class TopNames:
    """Rows by what names of one kind: how many ``name_count`` there are, with how many ``row_count``, and the greatest of them.

    ``top``: (name, rows by status code), the most rows first, equal ones by name.
    """

    name_count: int = 0
    row_count: int = 0
    top: list[tuple[str, dict[int, int]]] = field(default_factory=list)

    def merge(self, name_count: int, row_count: int, top: Iterable[tuple[str, dict[int, int]]]) -> None:
        """Add other names; no name is in both."""
        self.name_count += name_count
        self.row_count += row_count
        self.top += top

    def truncate(self, limit: int) -> None:
        """Let go of all but the greatest."""
        self.top = heapq.nsmallest(limit, self.top, key=_sort_key)


@dataclass
class StatsBreakdown:
    """What a pass counted: statistics, spreads, names by what they are, sketches by what they are of."""

    stats: StatsCollector
    histograms: HistogramCollector = field(default_factory=HistogramCollector)
    names_by_kind: dict[str, TopNames] = field(default_factory=dict)
    sketches: dict[str, QuantileSketch] = field(default_factory=dict)


def _sort_key(each: tuple[str, Mapping[int, int]]) -> tuple[int, str]:
    return -sum(each[1].values()), each[0]


def iter_errors(page: WebPage) -> Iterator[str]:
    """Yield what went wrong with a page: the protocol status with the kind of its reason, and the parse status."""
    status = page.protocol_status
    if status is not None and status.code not in GOOD_STATUSES:
        yield f"{protocol_status_name(status.code)} {_classify_reason(status.args[0] if status.args else '')}".rstrip()
    if page.parse_status is not None and page.parse_status.major == ParseStatusCode.FAILED:
        yield f"parse {parse_status_name(page.parse_status)}"


def _classify_reason(text: str) -> str:
    """Return the kind of a reason: its words up to what they are said of; "" where a URL stands alone.

    >>> [_reason(text) for text in ("Http code=503, url=http://a/", "UnknownHost: no.test", "http://a/b")]
    ['Http code=503', 'UnknownHost', '']
    """
    text = text.partition("\n")[0]
    ends = [at for at in map(text.find, (", url=", " url=", ": ", "://")) if at >= 0]
    end = min(ends, default=len(text))
    return "" if text.startswith("://", end) else " ".join(text[:end][:_MAX_REASON_CHARACTERS].split())


def _get_depth(page: WebPage) -> str:
    found = page.markers.get(Mark.DISTANCE) or ""
    return found if found.isdecimal() else "unknown"


class BreakdownJob(TableJob[BreakdownParameters]):
    """Rows to statistics, spreads and sketches of each split, and to the greatest names of all."""

    def prepare(self) -> None:
        """Read what is counted by, and nothing else."""
        self.fields = self.parameters.fields

    @property
    def reduce_steps(self) -> int:  # type: ignore[override]
        """None where no names are to be added up."""
        return 1 if self.parameters.by else 0

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield rows by ``what<TAB>name``, and what the split counts beside."""
        wanted = self.parameters
        stats, spreads = StatsCollector(wanted.sort), HistogramCollector()
        sketches: dict[str, QuantileSketch] = defaultdict(QuantileSketch)
        held: dict[str, Counter[int]] = defaultdict(Counter)
        for key, page in pages:
            stats.add(key, page)
            spreads.add(page)
            if wanted.quantiles:
                for name, value in self._iter_values(page):
                    sketches[name].add(value)
            for what in wanted.by:
                for name in self._iter_names(what, key, page):
                    held[f"{what}\t{name}"][page.status] += 1
            if len(held) >= _MAX_BUFFERED_NAMES:
                yield from ((name, [*counts.items()]) for name, counts in held.items())
                held.clear()
        yield from ((name, [*counts.items()]) for name, counts in held.items())
        told = stats.to_json(), spreads.to_json(), {name: sketch.to_json() for name, sketch in sketches.items()}
        yield from zip(_TOTALS_KEYS, told, strict=True)

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[KeyValuePair]:
        """Yield the greatest names of those that this task has, and hand on what stands beside them."""
        most = self.parameters.most
        kept: dict[str, TopNames] = {}
        for key, told in groups:
            what, tab, name = key.partition("\t")
            if not tab:
                yield from ((key, each) for each in told)
                continue
            counts = Counter[int]()
            for part in told:
                for status, rows in part:
                    counts[status] += rows
            (mine := kept.setdefault(what, TopNames())).merge(1, counts.total(), [(name, dict(counts))])
            if len(mine.top) >= most + _MAX_BUFFERED_NAMES:
                mine.truncate(most)
        for what, each in kept.items():
            each.truncate(most)
            yield f"{what}\t", [each.name_count, each.row_count, [[name, [*by.items()]] for name, by in each.top]]

    def _iter_names(self, what: str, key: str, page: WebPage) -> Iterable[str]:
        match what:
            case "host":
                return (unreverse_host(reversed_host_of_key(key)),)
            case "domain":
                return (domain_of_host(unreverse_host(reversed_host_of_key(key))),)
            case "depth":
                return (_get_depth(page),)
            case "next":
                return (NEXT_FETCH_LABELS[bisect_right(_NEXT_FETCH_BOUNDS, page.fetch_time - self.parameters.now)],)
            case _:
                return iter_errors(page)

    def _iter_values(self, page: WebPage) -> Iterator[tuple[str, float]]:
        yield "score", page.score
        yield "fetch interval", page.fetch_interval
        yield "fetch time", (page.fetch_time - self.parameters.now) / 1000.0
        yield "retries", page.retries_since_fetch
        if page.page_rank:
            yield "pagerank", page.page_rank
        if (depth := _get_depth(page)).isdecimal():
            yield "depth", float(depth[:9])
        if (cell := page.metadata.get(MetadataKey.RESPONSE_TIME)) is not None:
            with suppress(CellError):
                yield "response time", decode_int(cell)


def merge_breakdown(output: Iterable[KeyValuePair], parameters: BreakdownParameters) -> StatsBreakdown:
    """Return what the tasks of :class:`BreakdownJob` have counted as one."""
    found = StatsBreakdown(StatsCollector(parameters.sort))
    for key, told in output:
        match key:
            case "counts":
                found.stats.merge(StatsCollector.from_json(told))
            case "spreads":
                found.histograms.merge(told)
            case "quantiles":
                for name, sketch in told.items():
                    found.sketches.setdefault(name, QuantileSketch()).merge(sketch)
            case _:
                names, rows, greatest = told
                some = [(name, dict(by)) for name, by in greatest]
                (mine := found.names_by_kind.setdefault(key.rstrip("\t"), TopNames())).merge(names, rows, some)
                mine.truncate(parameters.most)
    found.names_by_kind = {
        what: found.names_by_kind[what] for what in parameters.by if what in found.names_by_kind
    }  # tasks end in any order
    return found
