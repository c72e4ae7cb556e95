"""Freshness: ranks newer pages higher, by the same formula on the embedded index, Solr and OpenSearch.

    score × (1 - share + share × ½ ^ (age / half-life))

``age`` is the time between now and a page's date, which also sorts results by date. A future date counts as one
equally far in the past, and a page of unknown date as one of 1970, so that a false date gains nothing. An old page
keeps 1 - share of its score: relevance still orders old pages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import PROPERTY_RANGES
from nutch2py.errors import InputError
from nutch2py.indexer.search_fields import page_date
from nutch2py.records.document import NutchDocument
from nutch2py.search.query.search_cursor import unwrap_cursor

FRESHNESS_PROPERTY = "index.search.freshness"
DAY_SECONDS = 86_400.0
_NOW_STEP_SECONDS = 3_600  # seconds; now is rounded, so that all pages of one result use the same time
_MIN_HALF_LIFE_DAYS = 0.1  # Solr computes times in 4-byte floats, precise to two minutes


class Freshness(NamedTuple):
    """Half-life in seconds, above 0; ``share`` of the score, 0 to 1, that decays; ``now`` in seconds since 1970."""

    half_life: float
    share: float
    now: int

    def factor(self, date: int) -> float:
        """Return the factor of a page with a date in seconds since 1970.

        >>> fresh = Freshness(30 * DAY_SECONDS, 0.5, 1_800_000_000)
        >>> [fresh.factor(1_800_000_000 - days * 86_400) for days in (0, 30, -30, 60, 10**6)]
        [1.0, 0.75, 0.75, 0.625, 0.5]
        """
        return 1.0 - self.share + self.share * math.pow(0.5, abs(self.now - date) / self.half_life)

    def explain(self, document: Mapping[str, Any]) -> str:
        """Return the factor of a document, given as JSON types, with the rule, as one line of an explanation."""
        return f"freshness: {self.factor(page_date(NutchDocument.from_json(document))):.4g} = {self}"

    def __str__(self) -> str:
        return f"{1 - self.share:g} + {self.share:g} × ½ ^ (age / {self.half_life / DAY_SECONDS:g} days)"


class FreshnessSettings:
    """Values of ``index.search.freshness``, a half-life in days, and ``index.search.freshness.share``."""

    def __init__(self, conf: Configuration) -> None:
        self.half_life_days = conf.get_float(FRESHNESS_PROPERTY, 0.0)
        self._share = conf.get_float(f"{FRESHNESS_PROPERTY}.share", 0.5)

    def resolve(self, half_life_days: float | None, cursor: str = "") -> tuple[Freshness | None, str]:
        """Return the freshness of a search, None without freshness, and the index's part of its cursor.

        Args:
            half_life_days: Requested half-life; 0: no freshness; None: the value of the property.
            cursor: The client's cursor, which contains the time of the first search.

        """
        if half_life_days is not None and not PROPERTY_RANGES[FRESHNESS_PROPERTY].contains(half_life_days):
            raise InputError(
                f"a half-life of {half_life_days:g} days is out of range: write {PROPERTY_RANGES[FRESHNESS_PROPERTY]}"
            )
        days = self.half_life_days if half_life_days is None else half_life_days
        if not days or not self._share:
            return None, cursor
        now = (int(time.time()) // _NOW_STEP_SECONDS + 1) * _NOW_STEP_SECONDS
        if cursor and cursor != "*":
            now, cursor = unwrap_cursor(cursor)
        return Freshness(max(days, _MIN_HALF_LIFE_DAYS) * DAY_SECONDS, self._share, now), cursor
