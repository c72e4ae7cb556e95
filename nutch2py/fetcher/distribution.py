"""How the answers of a fetch spread: how many took how long, and had how many bytes, in buckets that grow by powers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

TIMES_GROUP, SIZES_GROUP = "fetch_time_ms", "fetch_size_bytes"
"""The groups of counters in which a fetch gives them to the job log."""
MORE, SUM = "more", "sum"
TIMES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""Milliseconds; each is the upper bound of a bucket, included."""
SIZES = tuple(1024 * 4**power for power in range(8))
"""Bytes: 1 kB to 16 MB."""


class Distribution:
    """Numbers of values by bucket: the upper bound as text, :data:`MORE` above the last; and the :data:`SUM` of all."""

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self._names = (*map(str, bounds), MORE)
        self.counts: Counter[str] = Counter()

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[self._names[bisect_left(self._bounds, value)]] += 1
        self.counts[SUM] += value


def buckets(counts: Mapping[str, int]) -> list[tuple[float, int]]:
    """Return (upper bound, number of values) of what a :class:`Distribution` counted, the last bound infinite."""
    bounds = sorted(int(name) for name in counts if name.isdigit())
    return [*((float(bound), counts[str(bound)]) for bound in bounds), (math.inf, counts.get(MORE, 0))]
