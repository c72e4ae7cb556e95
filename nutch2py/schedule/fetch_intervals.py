"""FetchIntervals: ``db.fetch.interval.*``, which every schedule and the transition of rows share."""

from __future__ import annotations

import math
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import float32


def multiply_float32(seconds: int, factor: float) -> float:
    """Multiply as Java multiplies an int by a float of four bytes."""
    return float32(float32(seconds) * float32(factor))


def shorten_interval(greatest: int) -> int:
    """Return what an interval above the greatest is cut to: 0.9 of that, in s."""
    return math.floor(multiply_float32(greatest, 0.9) + 0.5)


class FetchIntervals(NamedTuple):
    """``default``: of a page of which nothing is known; ``maximum``: within which every page is fetched again. In s.

    Both are at least a second: with 0, each page would be due in every round, for ever.
    """

    default: int
    maximum: int

    @classmethod
    def from_conf(cls, conf: Configuration) -> FetchIntervals:
        """Read the properties; raise ConfigurationError for what is no interval."""
        return cls(conf.get_int("db.fetch.interval.default", 2592000), conf.get_int("db.fetch.interval.max", 7776000))
