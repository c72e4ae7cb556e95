"""ScoringFilters: the enabled scoring plug-ins as one, in the order of ``scoring.filter.order``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.contracts import ScoredLink, ScoringFilter
from nutch2py.plugins import ordered
from nutch2py.record import Field
from nutch2py.webpage import WebPage


class ScoringFilters:
    """A ScoringFilter made of others: each gets what the one before it left. None enabled leaves scores alone."""

    def __init__(self, conf: Configuration) -> None:
        self.filters: list[ScoringFilter] = ordered(conf, "scoringfilter", "scoring.filter.order")
        self.fields: frozenset[Field[Any]] = frozenset().union(*(each.fields for each in self.filters))
        """What the filters read and change."""
        self.generator_fields: frozenset[Field[Any]] = frozenset().union(
            *(each.generator_fields for each in self.filters)
        )
        """What :meth:`generator_sort_value` alone reads: a plug-in may name fewer, for it runs on every row."""

    def injected_score(self, url: str, page: WebPage) -> None:
        """Set up a seed, whose ``score`` is set already."""
        for each in self.filters:
            each.injected_score(url, page)

    def initial_score(self, url: str, page: WebPage) -> None:
        """Set up a page that was found by a link."""
        for each in self.filters:
            each.initial_score(url, page)

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return ``init`` passed through every filter; the GeneratorJob starts from the page's score, as Nutch does."""
        for each in self.filters:
            init = each.generator_sort_value(url, page, init)
        return init

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links that the filters let through, with the scores they carry."""
        for each in self.filters:
            links = each.distribute(url, page, links, total)
        return links

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Take in the scores of a batch; ``inlinks`` in descending order of score (sums of floats depend on it)."""
        for each in self.filters:
            each.update_score(url, page, inlinks)

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document: ``init`` passed through every filter."""
        for each in self.filters:
            init = each.indexer_score(url, page, init)
        return init
