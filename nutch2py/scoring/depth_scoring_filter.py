"""scoring-depth (Nutch 1): limits the depth of links from the seeds and fetches near pages first.

The mark ``dist`` of a Nutch 2 table counts the hops (0 for a seed), so the depth is ``dist`` + 1 and nothing else is
stored. Unlike Nutch 1, a limit in a seed's metadata (``_maxdepth_``) applies to the links of the seed only, because
links carry no limits from page to page. ``scoring.depth.override.pattern`` sets a limit for matching URLs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.interfaces import ScoredLink, ScoringFilter
from nutch2py.records.cells import decode_text, float32
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Mark, WebPage

MAX_DEPTH_KEY = "_maxdepth_"
"""Seed metadata: the deepest level reached from this seed, in decimal."""
DEFAULT_MAX_DEPTH = 1000


class DepthScoringFilter(ScoringFilter):
    """Drops the links of pages at the maximum depth. Order it before OPIC, or dropped links consume cash."""

    java_class = "org.apache.nutch.scoring.depth.DepthScoringFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.markers, WebPage.metadata})

    ignores_seed_url = True

    def __init__(self, conf: Configuration) -> None:
        limit = conf.get_int("scoring.depth.max", DEFAULT_MAX_DEPTH)
        self.max_depth = limit if limit > 0 else DEFAULT_MAX_DEPTH
        self.override_max_depth = conf.get_int("scoring.depth.max.override", 10)
        pattern = conf.get_trimmed("scoring.depth.override.pattern")
        try:
            self.override_pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            raise ConfigurationError(
                f"property scoring.depth.override.pattern is not a regular expression: {error}: correct it"
            ) from None

    def _max_depth_of(self, url: str, page: WebPage) -> int:
        if self.override_pattern is not None and self.override_pattern.search(url):
            return self.override_max_depth
        cell = page.metadata.get(MAX_DEPTH_KEY)
        text = "" if cell is None else decode_text(cell).strip()
        return int(text) if text.isdecimal() else self.max_depth

    @staticmethod
    def _depth_of(page: WebPage) -> int | None:
        distance = page.markers.get(Mark.DISTANCE)
        if distance is not None and distance.isdecimal():
            return int(distance) + 1
        # no link leads to a URL from a sitemap: it has the depth of a seed
        return 1 if Mark.INJECT in page.markers else None

    def injected_score(self, url: str, page: WebPage) -> None:
        """Validate the seed's own limit; raise InputError unless it is a whole number."""
        cell = page.metadata.get(MAX_DEPTH_KEY)
        if cell is not None and not decode_text(cell).strip().isdecimal():
            raise InputError(f"seed {url}: {MAX_DEPTH_KEY} is {decode_text(cell)!r}: write a whole number")

    def initial_score(self, url: str, page: WebPage) -> None:
        """Do nothing: the job counts the hops."""

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return ``init`` times (1 + remaining levels); a page of unknown depth counts as the deepest."""
        limit = self._max_depth_of(url, page)
        depth = self._depth_of(page)
        return float32(init * (1 + limit - (limit if depth is None else depth)))

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links, or none if the page is at the limit or its depth is unknown."""
        depth = self._depth_of(page)
        return links if depth is not None and depth < self._max_depth_of(url, page) else []

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Do nothing: the job keeps the smallest distance."""

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return ``init``."""
        return init
