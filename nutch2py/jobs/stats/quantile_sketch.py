"""Quantile sketch: approximate quantiles over any number of rows in bounded memory, with exact merging."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

ACCURACY = 0.005
"""Relative error of a quantile."""
_LOG_STEP = math.log((1 + ACCURACY) / (1 - ACCURACY))
_MIN_MAGNITUDE, _MAX_MAGNITUDE = 1e-9, 1e18
"""Smaller magnitudes count as 0, larger ones as the maximum; this limits the sketch to 12,500 buckets."""
_QUANTILES_PROPERTY = "db.stats.score.quantiles"


def read_quantiles(conf: Configuration) -> list[float]:
    """Return the quantiles of ``db.stats.score.quantiles``, ascending; raise ConfigurationError for invalid values."""
    try:
        found = sorted({float(each) for each in conf.get_strings(_QUANTILES_PROPERTY)})
    except ValueError:
        found = [math.nan]
    if not all(0.0 <= each <= 1.0 for each in found):
        raise ConfigurationError(
            f"{_QUANTILES_PROPERTY} is {conf.get(_QUANTILES_PROPERTY)!r}: "
            "write numbers from 0 to 1, separated by commas"
        )
    return found


class QuantileSketch:
    """Counts values in logarithmic buckets, as DDSketch (Masson, Rim and Lee, 2019), with exact bounds and sum.

    A bucket has all values within :data:`ACCURACY` of its middle. NaN counts as 0, as in the statistics.
    """

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.count, self.sum = 0, 0.0
        self.minimum, self.maximum = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Count a value."""
        value = max(-_MAX_MAGNITUDE, min(_MAX_MAGNITUDE, value)) if value == value else 0.0
        self.counts[_find_bucket(value)] += 1
        self.count += 1
        self.sum += value
        self.minimum, self.maximum = min(self.minimum, value), max(self.maximum, value)

    def merge(self, other: Sequence[Any]) -> None:
        """Add the result of another sketch's :meth:`to_json`."""
        count, total, minimum, maximum, counts = other
        self.count += count
        self.sum += total
        self.minimum, self.maximum = min(self.minimum, minimum), max(self.maximum, maximum)
        for bucket, rows in counts:
            self.counts[bucket] += rows

    def to_json(self) -> list[object]:
        """Return the sketch as JSON types; it must have a value."""
        return [self.count, self.sum, self.minimum, self.maximum, [*self.counts.items()]]

    def get_quantiles(self, quantiles: Sequence[float]) -> dict[float, float]:
        """Return the value of each quantile; ``quantiles`` (0 to 1) in ascending order."""
        found: dict[float, float] = {}
        buckets, passed, value = iter(sorted(self.counts.items())), 0, self.minimum
        for part in quantiles:
            rank = part * (self.count - 1)
            while passed <= rank:
                bucket, rows = next(buckets)
                passed += rows
                value = max(self.minimum, min(self.maximum, _bucket_middle(bucket)))
            found[part] = value
        return found


def _find_bucket(value: float) -> int:
    """Return the bucket of a value; buckets sort like values, bucket 0 is the value 0."""
    size = abs(value)
    if size < _MIN_MAGNITUDE:
        return 0
    number = 1 + math.ceil(math.log(size / _MIN_MAGNITUDE) / _LOG_STEP)
    return number if value > 0 else -number


def _bucket_middle(bucket: int) -> float:
    if not bucket:
        return 0.0
    size = _MIN_MAGNITUDE * math.exp((abs(bucket) - 1) * _LOG_STEP) * (1 - ACCURACY)
    return size if bucket > 0 else -size
