"""Histograms: numbers of values by bucket, counted by tasks, merged, stored with a crawl, exported and drawn."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class HistogramBucket(NamedTuple):
    """Number of values from ``low`` to ``high``; the last bucket of a histogram has no upper bound (infinity)."""

    low: float
    high: float
    value_count: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of values: ``counts[i]`` values are between ``bounds[i]`` and ``bounds[i + 1]``.

    Both have the same length. The first bucket includes all lower values, the last all higher values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]

    def iter_buckets(self) -> Iterator[HistogramBucket]:
        """Yield the buckets in ascending order."""
        yield from map(HistogramBucket, self.bounds, (*self.bounds[1:], math.inf), self.counts)

    def trimmed(self) -> Histogram:
        """Return the histogram without the empty buckets at both ends; one bucket remains if all are empty."""
        used = [bucket for bucket, count in enumerate(self.counts) if count] or [0]
        kept = slice(used[0], used[-1] + 1)
        return Histogram(self.bounds[kept], self.counts[kept])


class HistogramCounter:
    """Counts values by bucket.

    Args:
        bounds: Lower bounds of the buckets, ascending.
        upper_inclusive: A value that equals a bound belongs to the bucket below it, as in Prometheus, not above it.

    Attributes:
        counts: Numbers of values by the index of the bucket.
        total: Sum of the values that :meth:`add` has counted.
    """

    def __init__(self, bounds: tuple[float, ...], upper_inclusive: bool = False) -> None:
        self.bounds = bounds
        self._find = bisect_left if upper_inclusive else bisect_right
        self.counts: Counter[int] = Counter()
        self.total: float = 0

    def add(self, value: float) -> None:
        """Count a value; NaN counts as 0."""
        value = value if value == value else 0.0
        self.counts[max(0, self._find(self.bounds, value) - 1)] += 1
        self.total += value

    def merge(self, counts: Iterable[Iterable[int]]) -> None:
        """Add the ``counts`` of another counter, as (bucket, count)."""
        for bucket, count in counts:
            self.counts[bucket] += count

    def to_histogram(self) -> Histogram:
        """Return all buckets with their counts."""
        return histogram_of_counts(self.bounds, self.counts)


def histogram_of_counts(bounds: tuple[float, ...], counts: Mapping[int, int]) -> Histogram:
    """Return the histogram of counts by the index of the bucket."""
    return Histogram(bounds, tuple(counts.get(bucket, 0) for bucket in range(len(bounds))))
