"""Sketch: quantiles of a number over any number of rows, in bounded size; parts that tasks counted add up exactly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

ACCURACY = 0.005
"""A quantile is that of the rows but for this part of it."""
_STEP = math.log((1 + ACCURACY) / (1 - ACCURACY))
_LEAST, _GREATEST = 1e-9, 1e18
"""What is nearer to 0 counts as 0, what is farther as this: so there are 12,500 buckets at most."""
_NAME = "db.stats.score.quantiles"


def chosen_quantiles(conf: Configuration) -> list[float]:
    """Return the quantiles of ``db.stats.score.quantiles``, the least first; ConfigurationError for what is none."""
    try:
        found = sorted({float(each) for each in conf.get_strings(_NAME)})
    except ValueError:
        found = [math.nan]
    if not all(0.0 <= each <= 1.0 for each in found):
        raise ConfigurationError(f"{_NAME} is {conf.get(_NAME)!r}: write numbers from 0 to 1, with commas between them")
    return found


class Sketch:
    """Numbers of values by logarithmic buckets, as in DDSketch (Masson, Rim and Lee, 2019), with exact bounds and sum.

    A bucket stands for all values within :data:`ACCURACY` of its middle. NaN counts as 0, as the statistics have it.
    """

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.count, self.sum = 0, 0.0
        self.least, self.greatest = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Take in a value."""
        value = max(-_GREATEST, min(_GREATEST, value)) if value == value else 0.0
        self.counts[_bucket(value)] += 1
        self.count += 1
        self.sum += value
        self.least, self.greatest = min(self.least, value), max(self.greatest, value)

    def merge(self, told: Sequence[Any]) -> None:
        """Add what another one's :meth:`to_json` gave."""
        count, total, least, greatest, counts = told
        self.count += count
        self.sum += total
        self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        for bucket, rows in counts:
            self.counts[bucket] += rows

    def to_json(self) -> list[Any]:
        """Return all in a form that JSON carries; of a sketch that has a value."""
        return [self.count, self.sum, self.least, self.greatest, [*self.counts.items()]]

    def quantiles(self, chosen: Sequence[float]) -> dict[float, float]:
        """Return the values below which the chosen parts of all values lie, ``chosen`` in ascending order."""
        found: dict[float, float] = {}
        buckets, passed, value = iter(sorted(self.counts.items())), 0, self.least
        for part in chosen:
            rank = part * (self.count - 1)
            while passed <= rank:
                bucket, rows = next(buckets)
                passed += rows
                value = max(self.least, min(self.greatest, _middle(bucket)))
            found[part] = value
        return found


def _bucket(value: float) -> int:
    """Return the bucket of a value; buckets sort as values do, 0 is that of 0."""
    size = abs(value)
    if size < _LEAST:
        return 0
    number = 1 + math.ceil(math.log(size / _LEAST) / _STEP)
    return number if value > 0 else -number


def _middle(bucket: int) -> float:
    if not bucket:
        return 0.0
    size = _LEAST * math.exp((abs(bucket) - 1) * _STEP) * (1 - ACCURACY)
    return size if bucket > 0 else -size
