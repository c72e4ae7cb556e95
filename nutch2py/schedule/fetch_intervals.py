"""Default and maximum fetch interval (``db.fetch.interval.*``), shared by the schedules and the row transition."""

from __future__ import annotations

import math
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import float32


def multiply_float32(seconds: int, factor: float) -> float:
    """Multiply with 32-bit float arithmetic, as Java multiplies an int by a float."""
    return float32(float32(seconds) * float32(factor))


def shorten_interval(maximum_interval: int) -> int:
    """Return the interval (s) that replaces one above the maximum: 0.9 of the maximum."""
    return math.floor(multiply_float32(maximum_interval, 0.9) + 0.5)


class FetchIntervals(NamedTuple):
    """Fetch intervals in seconds, at least 1: with 0 every page would be due in every round.

    Attributes:
        default: Interval of a page without one.
        maximum: Time within which every page is fetched again.
    """

    default: int
    maximum: int

    @classmethod
    def from_conf(cls, conf: Configuration) -> FetchIntervals:
        """Read the properties; raise ConfigurationError for an invalid interval."""
        return cls(conf.get_int("db.fetch.interval.default", 2592000), conf.get_int("db.fetch.interval.max", 7776000))
