"""Table scan of ``readdb -stats``: statistics, and rows by host, domain, depth, next fetch and error.

One pass over all rows computes everything. Reduce tasks sum the names and keep those with the most rows, so memory is
bounded for any number of hosts; the numbers are exact.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

from nutch2py.fetcher.stats.host_failures import GOOD_STATUSES
from nutch2py.jobs.row_output.row_text import parse_status_name, protocol_status_name
from nutch2py.jobs.stats.page_histograms import HISTOGRAM_FIELDS, PageHistograms
from nutch2py.jobs.stats.quantile_sketch import QuantileSketch
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.mapreduce.job_parameters import POSITIVE, TIME_RANGE, JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.records.cells import CellError, decode_int
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Mark, MetadataKey, ParseStatusCode, WebPage
from nutch2py.url.keys import reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import DomainRules

_HOUR, _DAY = 3_600_000, 86_400_000
_NEXT_FETCH_BOUNDS = (-30 * _DAY, -7 * _DAY, -_DAY, -_HOUR, 0, _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY)
NEXT_FETCH_LABELS = (
    "due for more than 30 days", "due for 7 to 30 days", "due for 1 to 7 days", "due for 1 to 24 hours",
    "due for less than an hour", "in less than an hour", "in 1 to 24 hours", "in 1 to 7 days", "in 7 to 30 days",
    "in 30 to 90 days", "in more than 90 days",
)  # fmt: skip
"""Labels of the intervals between the bounds above (ms until the next fetch)."""
_MAX_REASON_CHARACTERS = 60  # characters
MAX_BUFFERED_NAMES = 50_000
"""Names that a task buffers before it emits them."""
_TOTALS_KEYS = ("counts", "spreads", "quantiles")
"""Output keys of the totals of a task; keys of names contain a tab."""

BREAKDOWN_FIELDS: Mapping[str, frozenset[RecordField]] = {
    "host": frozenset(),
    "domain": frozenset(),
    "depth": frozenset({WebPage.markers}),
    "next": frozenset({WebPage.fetch_time}),
    "error": frozenset(),
}
"""Kinds of names, with the fields that they need in addition to those of the statistics."""
_QUANTILE_FIELDS: frozenset[RecordField] = frozenset(
    {WebPage.fetch_time, WebPage.markers, WebPage.metadata, WebPage.page_rank, WebPage.retries_since_fetch}
)


@dataclass(frozen=True, kw_only=True)
class BreakdownParameters(JobParameters):
    """Parameters of the scan.

    Attributes:
        by: Keys of :data:`BREAKDOWN_FIELDS`.
        most: Number of names of each kind to keep.
        quantiles: Compute quantiles.
        now: Current time, ms since 1970.
        sort: Count by status and host, for every host.
    """

    by: list[str] = field(default_factory=list)
    most: int = 100
    quantiles: bool = False
    now: int = 0
    sort: bool = False
    ranges: ClassVar = {"most": POSITIVE, "now": TIME_RANGE}

    @property
    def fields(self) -> frozenset[RecordField]:
        """Fields that the scan reads."""
        more = _QUANTILE_FIELDS if self.quantiles else frozenset()
        return (StatsCollector.FIELDS | HISTOGRAM_FIELDS | more).union(*(BREAKDOWN_FIELDS[kind] for kind in self.by))


@dataclass
class TopNames:
    """Names of one kind with the most rows.

    Attributes:
        name_count: Number of all names.
        row_count: Number of all rows.
        top: (name, rows by status code), most rows first, then by name.
    """

    name_count: int = 0
    row_count: int = 0
    top: list[tuple[str, dict[int, int]]] = field(default_factory=list)

    def merge(self, name_count: int, row_count: int, top: Iterable[tuple[str, dict[int, int]]]) -> None:
        """Add other names, which must be disjoint."""
        self.name_count += name_count
        self.row_count += row_count
        self.top += top

    def truncate(self, limit: int) -> None:
        """Keep the first ``limit`` names."""
        self.top = heapq.nsmallest(limit, self.top, key=_sort_key)


@dataclass
class StatsBreakdown:
    """Result of a scan: statistics, histograms, names by kind, quantile sketches by quantity."""

    stats: StatsCollector
    histograms: PageHistograms = field(default_factory=PageHistograms)
    names_by_kind: dict[str, TopNames] = field(default_factory=dict)
    sketches: dict[str, QuantileSketch] = field(default_factory=dict)


def _sort_key(each: tuple[str, Mapping[int, int]]) -> tuple[int, str]:
    return -sum(each[1].values()), each[0]


def iter_errors(page: WebPage) -> Iterator[str]:
    """Yield the errors of a page: the protocol status with the kind of its reason, and a failed parse status."""
    status = page.protocol_status
    if status is not None and status.code not in GOOD_STATUSES:
        yield f"{protocol_status_name(status.code)} {_classify_reason(status.args[0] if status.args else '')}".rstrip()
    if page.parse_status is not None and page.parse_status.major == ParseStatusCode.FAILED:
        yield f"parse {parse_status_name(page.parse_status)}"


def _classify_reason(text: str) -> str:
    """Return the kind of a reason: the text before its object; "" for a URL alone.

    >>> [_classify_reason(text) for text in ("Http code=503, url=http://a/", "UnknownHost: no.test", "http://a/b")]
    ['Http code=503', 'UnknownHost', '']
    """
    text = text.partition("\n")[0]
    positions = [at for at in map(text.find, (", url=", " url=", ": ", "://")) if at >= 0]
    end = min(positions, default=len(text))
    return "" if text.startswith("://", end) else " ".join(text[:end][:_MAX_REASON_CHARACTERS].split())


def _get_depth(page: WebPage) -> str:
    found = page.markers.get(Mark.DISTANCE) or ""
    return found if found.isdecimal() else "unknown"


class BreakdownJob(TableJob[BreakdownParameters]):
    """Maps rows to statistics, histograms and sketches of each split; reduces names to those with the most rows."""

    def prepare(self) -> None:
        """Select the fields to read."""
        self.fields = self.parameters.fields
        self._domain_of_host = DomainRules.from_conf(self.conf).domain_of_host

    @property
    def reduce_steps(self) -> int:  # type: ignore[override]
        """Number of reduce steps: 0 without names to sum."""
        return 1 if self.parameters.by else 0

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield row counts by ``kind<TAB>name``, and the totals of the split."""
        parameters = self.parameters
        stats, histograms = StatsCollector(parameters.sort), PageHistograms()
        sketches: dict[str, QuantileSketch] = defaultdict(QuantileSketch)
        buffer: dict[str, Counter[int]] = defaultdict(Counter)
        for key, page in pages:
            stats.add(key, page)
            histograms.add(page)
            if parameters.quantiles:
                for name, value in self._iter_values(page):
                    sketches[name].add(value)
            for kind in parameters.by:
                for name in self._iter_names(kind, key, page):
                    buffer[f"{kind}\t{name}"][page.status] += 1
            if len(buffer) >= MAX_BUFFERED_NAMES:
                yield from ((name, [*counts.items()]) for name, counts in buffer.items())
                buffer.clear()
        yield from ((name, [*counts.items()]) for name, counts in buffer.items())
        totals = stats.to_json(), histograms.to_json(), {name: sketch.to_json() for name, sketch in sketches.items()}
        yield from zip(_TOTALS_KEYS, totals, strict=True)

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Yield the names of this task with the most rows, and pass the totals on."""
        most = self.parameters.most
        kept: dict[str, TopNames] = {}
        for key, values in groups:
            kind, tab, name = key.partition("\t")
            if not tab:
                yield from ((key, each) for each in values)
                continue
            counts = Counter[int]()
            for part in values:
                for status, rows in part:
                    counts[status] += rows
            (kept_names := kept.setdefault(kind, TopNames())).merge(1, counts.total(), [(name, dict(counts))])
            if len(kept_names.top) >= most + MAX_BUFFERED_NAMES:
                kept_names.truncate(most)
        for kind, each in kept.items():
            each.truncate(most)
            yield f"{kind}\t", [each.name_count, each.row_count, [[name, [*by.items()]] for name, by in each.top]]

    def _iter_names(self, kind: str, key: str, page: WebPage) -> Iterable[str]:
        match kind:
            case "host":
                return (unreverse_host(reversed_host_of_key(key)),)
            case "domain":
                return (self._domain_of_host(unreverse_host(reversed_host_of_key(key))),)
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
    """Merge the output of the tasks of :class:`BreakdownJob`."""
    found = StatsBreakdown(StatsCollector(parameters.sort))
    for key, values in output:
        match key:
            case "counts":
                found.stats.merge(StatsCollector.from_json(values))
            case "spreads":
                found.histograms.merge(values)
            case "quantiles":
                for name, sketch in values.items():
                    found.sketches.setdefault(name, QuantileSketch()).merge(sketch)
            case _:
                names, rows, top = values
                names_with_rows = [(name, dict(by)) for name, by in top]
                (kept_names := found.names_by_kind.setdefault(key.rstrip("\t"), TopNames())).merge(
                    names, rows, names_with_rows
                )
                kept_names.truncate(parameters.most)
    found.names_by_kind = {
        kind: found.names_by_kind[kind] for kind in parameters.by if kind in found.names_by_kind
    }  # in the requested order: tasks finish in any
    return found
