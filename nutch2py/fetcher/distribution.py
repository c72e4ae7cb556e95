"""How the answers of a fetch spread: how many took how long, and had how many bytes, in buckets that grow by powers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

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
