"""Histograms of scores, ranks, intervals and depths, collected by tasks that scan the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nutch2py.records.record import RecordField
from nutch2py.records.webpage import FETCHED_STATUSES, Mark, WebPage
from nutch2py.support.histogram import Histogram, HistogramCounter

_HOUR, _DAY = 3600.0, 86400.0
_POWER_BOUNDS = (0.0, *(float(f"{digit}e{power}") for power in range(-6, 6) for digit in (1, 3)), 1e6)
HISTOGRAM_BOUNDS: Mapping[str, tuple[float, ...]] = {
    "score": _POWER_BOUNDS,
    "pagerank": _POWER_BOUNDS,
    "interval": (0.0, 60.0, _HOUR, 6 * _HOUR, *(days * _DAY for days in (1, 2, 4, 7, 14, 30, 60, 90, 180, 365))),
    "next_fetch": (
        -365 * _DAY,
        -90 * _DAY,
        -30 * _DAY,
        -7 * _DAY,
        -_DAY,
        -_HOUR,
        0.0,
        _HOUR,
        _DAY,
        7 * _DAY,
        30 * _DAY,
        90 * _DAY,
        365 * _DAY,
    ),
    "depth": (*map(float, range(21)), 30.0, 50.0, 100.0),
}
"""Name -> lower bounds of the buckets. ``interval`` is in seconds, ``depth`` counts links from a seed.
``next_fetch`` are the seconds until the next fetch of a fetched page, negative when it is overdue."""
HISTOGRAM_FIELDS: frozenset[RecordField] = frozenset({WebPage.score, WebPage.page_rank, WebPage.fetch_interval})
"""Fields that :meth:`PageHistograms.add` reads; ``with_depth`` needs the marks, ``now`` status and fetch time, too."""


class PageHistograms:
    """Row counts by bucket, for each quantity in :data:`HISTOGRAM_BOUNDS`.

    Args:
        with_depth: Count the depth.
        now: Current time, ms since 1970, to count the time until the next fetch; None: do not.
    """

    def __init__(self, with_depth: bool = False, now: int | None = None) -> None:
        self._with_depth, self._now = with_depth, now
        self._counters = {name: HistogramCounter(bounds) for name, bounds in HISTOGRAM_BOUNDS.items()}

    def add(self, page: WebPage) -> None:
        """Count a row."""
        self._counters["score"].add(page.score)
        self._counters["pagerank"].add(page.page_rank)
        self._counters["interval"].add(page.fetch_interval)
        if self._now is not None and page.status in FETCHED_STATUSES:
            self._counters["next_fetch"].add((page.fetch_time - self._now) / 1000)
        if self._with_depth:
            distance = page.markers.get(Mark.DISTANCE) or ""
            if distance.isdecimal():
                self._counters["depth"].add(float(distance[:9]))

    def to_json(self) -> dict[str, list[tuple[int, int]]]:
        """Return the counts as JSON types for :meth:`merge`."""
        return {name: [*counter.counts.items()] for name, counter in self._counters.items() if counter.counts}

    def merge(self, other_counts: Mapping[str, Iterable[Iterable[int]]]) -> None:
        """Add the counts of another collector."""
        for name, counts in other_counts.items():
            self._counters[name].merge(counts)

    def make_histograms(self) -> dict[str, Histogram]:
        """Return the histograms by name, without quantities that no row has."""
        found = {name: each.to_histogram().trimmed() for name, each in sorted(self._counters.items()) if each.counts}
        if not any(bucket for bucket in self._counters["pagerank"].counts):  # PageRank was never computed
            found.pop("pagerank", None)
        return found
