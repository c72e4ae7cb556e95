"""How the answers of a fetch spread: how many took how long, and had how many bytes, in buckets that grow by powers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

TIMES_GROUP, SIZES_GROUP = "fetch_time_ms", "fetch_size_bytes"
"""The groups of counters in which a fetch gives them to the job log."""
OVERFLOW_BUCKET, SUM_KEY = "more", "sum"
TIME_BOUNDS_MS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""Milliseconds; each is the upper bound of a bucket, included."""
SIZE_BOUNDS_BYTES = tuple(1024 * 4**power for power in range(8))
"""Bytes: 1 kB to 16 MB."""


class FetchHistogram:
    """Numbers of values by bucket: the upper bound as text, :data:`OVERFLOW_BUCKET` above the last; and the :data:`SUM_KEY` of all."""

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self._bucket_names = (*map(str, bounds), OVERFLOW_BUCKET)
        self.counts: Counter[str] = Counter()

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[self._bucket_names[bisect_left(self._bounds, value)]] += 1
        self.counts[SUM_KEY] += value


def list_buckets(counts: Mapping[str, int]) -> list[tuple[float, int]]:
    """Return (upper bound, number of values) of what a :class:`FetchHistogram` counted, the last bound infinite."""
    bounds = sorted(int(name) for name in counts if name.isdigit())
    return [*((float(bound), counts[str(bound)]) for bound in bounds), (math.inf, counts.get(OVERFLOW_BUCKET, 0))]
