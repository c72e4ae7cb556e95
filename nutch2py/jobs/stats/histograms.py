"""Histograms of scores, ranks, intervals and depths, collected by tasks that scan the table."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from nutch2py.joblog.crawl_overview import Histogram
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Mark, WebPage

_HOUR, _DAY = 3600.0, 86400.0
_POWER_BOUNDS = (0.0, *(float(f"{digit}e{power}") for power in range(-6, 6) for digit in (1, 3)), 1e6)
HISTOGRAM_BOUNDS: Mapping[str, tuple[float, ...]] = {
    "score": _POWER_BOUNDS,
    "pagerank": _POWER_BOUNDS,
    "interval": (0.0, 60.0, _HOUR, 6 * _HOUR, *(days * _DAY for days in (1, 2, 4, 7, 14, 30, 60, 90, 180, 365))),
    "depth": (*map(float, range(21)), 30.0, 50.0, 100.0),
}
"""Name -> lower bounds of the buckets. ``interval`` is in seconds, ``depth`` counts links from a seed."""
HISTOGRAM_FIELDS: frozenset[RecordField] = frozenset({WebPage.score, WebPage.page_rank, WebPage.fetch_interval})
"""Fields that :meth:`HistogramCollector.add` reads; with ``with_depth`` also the marks."""


class HistogramCollector:
    """Row counts by bucket, for each quantity in :data:`HISTOGRAM_BOUNDS`."""

    def __init__(self, with_depth: bool = False) -> None:
        self._with_depth = with_depth
        self.counts: dict[str, Counter[int]] = defaultdict(Counter)

    def add(self, page: WebPage) -> None:
        """Count a row."""
        self._count_value("score", page.score)
        self._count_value("pagerank", page.page_rank)
        self._count_value("interval", page.fetch_interval)
        if self._with_depth:
            distance = page.markers.get(Mark.DISTANCE) or ""
            if distance.isdecimal():
                self._count_value("depth", float(distance[:9]))

    def _count_value(self, name: str, value: float) -> None:
        number = value if value == value else 0.0
        bucket = max(0, bisect_right(HISTOGRAM_BOUNDS[name], number) - 1)
        self.counts[name][bucket] += 1

    def to_json(self) -> dict[str, list[tuple[int, int]]]:
        """Return the counts as JSON types for :meth:`merge`."""
        return {name: [*counts.items()] for name, counts in self.counts.items()}

    def merge(self, other_counts: Mapping[str, Iterable[Iterable[int]]]) -> None:
        """Add the counts of another collector."""
        for name, counts in other_counts.items():
            own_counts = self.counts[name]
            for bucket, count in counts:
                own_counts[bucket] += count

    def make_histograms(self) -> dict[str, Histogram]:
        """Return the histograms by name, without quantities that no row has."""
        found = {name: make_histogram(HISTOGRAM_BOUNDS[name], counts) for name, counts in sorted(self.counts.items())}
        if not any(bucket for bucket in self.counts.get("pagerank", ())):  # PageRank was never computed
            found.pop("pagerank", None)
        return found


def make_histogram(bounds: tuple[float, ...], counts: Mapping[int, int]) -> Histogram:
    """Return a histogram of ``counts`` (bucket index -> rows), without the empty buckets at both ends."""
    used = [bucket for bucket, count in counts.items() if count] or [0]
    first, last = min(used), max(used)
    return Histogram(bounds[first : last + 1], tuple(counts.get(bucket, 0) for bucket in range(first, last + 1)))
