"""Histograms of response times and sizes, with exponentially growing buckets."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

TIMES_GROUP, SIZES_GROUP = "fetch_time_ms", "fetch_size_bytes"
"""Counter groups of the histograms in the job log."""
OVERFLOW_BUCKET, SUM_KEY = "more", "sum"
TIME_BOUNDS_MS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""Inclusive upper bounds of the buckets, in milliseconds."""
SIZE_BOUNDS_BYTES = tuple(1024 * 4**power for power in range(8))
"""Inclusive upper bounds of the buckets, in bytes: 1 kB to 16 MB."""


class FetchHistogram:
    """Counts values by bucket.

    A bucket's name is its upper bound, or :data:`OVERFLOW_BUCKET`; :data:`SUM_KEY` holds the sum of all values.
    """

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self._bucket_names = (*map(str, bounds), OVERFLOW_BUCKET)
        self.counts: Counter[str] = Counter()

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[self._bucket_names[bisect_left(self._bounds, value)]] += 1
        self.counts[SUM_KEY] += value


def list_buckets(counts: Mapping[str, int]) -> list[tuple[float, int]]:
    """Return (upper bound, count) of the counters of a :class:`FetchHistogram`; the last bound is infinite."""
    bounds = sorted(int(name) for name in counts if name.isdigit())
    return [*((float(bound), counts[str(bound)]) for bound in bounds), (math.inf, counts.get(OVERFLOW_BUCKET, 0))]
