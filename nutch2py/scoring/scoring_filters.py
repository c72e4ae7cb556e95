"""ScoringFilters: the enabled scoring plug-ins as one, in the order of ``scoring.filter.order``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink, ScoringFilter
from nutch2py.plugins.loading import create_ordered_plugins, plugin_id_of
from nutch2py.plugins.plugin_failures import raise_plugin_error
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage


class ScoringFilters:
    """A ScoringFilter made of others: each gets what the one before it left. None enabled leaves scores alone.

    What a filter raises becomes a :class:`nutch2py.plugins.plugin_failures.PluginError`, which names it and the page.
    """

    def __init__(self, conf: Configuration) -> None:
        self.filters: list[ScoringFilter] = create_ordered_plugins(conf, "scoringfilter", "scoring.filter.order")
        self.fields: frozenset[Field[Any]] = frozenset().union(*(each.fields for each in self.filters))
        """What the filters read and change."""
        self.generator_fields: frozenset[Field[Any]] = frozenset().union(
            *(each.generator_fields for each in self.filters)
        )
        """What :meth:`generator_sort_value` alone reads: a plug-in may name fewer, for it runs on every row."""

    @property
    def sorts_by_score(self) -> bool:
        """Whether the best pages for the GeneratorJob are those of the highest ``page.score``, whatever they are."""
        return all(each.sorts_by_score for each in self.filters)

    @property
    def ignores_seed_url(self) -> bool:
        """Whether seeds without metadata are set up alike, whatever their URLs."""
        return all(_ignores_seed_url(type(each)) for each in self.filters)

    def without(self, plugins: Collection[str]) -> ScoringFilters:
        """Return these filters but for those with the ids ``plugins``."""
        fewer = copy(self)
        fewer.filters = [each for each in self.filters if plugin_id_of(each) not in plugins]
        return fewer

    def injected_score(self, url: str, page: WebPage) -> None:
        """Set up a seed, whose ``score`` is set already."""
        try:
            for each in self.filters:
                each.injected_score(url, page)
        except Exception as error:  # noqa: BLE001 - named, and the page's
            raise_plugin_error(each, url, error)

    def initial_score(self, url: str, page: WebPage) -> None:
        """Set up a page that was found by a link."""
        try:
            for each in self.filters:
                each.initial_score(url, page)
        except Exception as error:  # noqa: BLE001
            raise_plugin_error(each, url, error)

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return ``init`` passed through every filter; the GeneratorJob starts from the page's score, as Nutch does."""
        try:
            for each in self.filters:
                init = each.generator_sort_value(url, page, init)
        except Exception as error:  # noqa: BLE001
            raise_plugin_error(each, url, error)
        return init

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links that the filters let through, with the scores they carry."""
        try:
            for each in self.filters:
                links = each.distribute(url, page, links, total)
        except Exception as error:  # noqa: BLE001
            raise_plugin_error(each, url, error)
        return links

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Take in the scores of a batch; ``inlinks`` in descending order of score (sums of floats depend on it)."""
        try:
            for each in self.filters:
                each.update_score(url, page, inlinks)
        except Exception as error:  # noqa: BLE001
            raise_plugin_error(each, url, error)

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document: ``init`` passed through every filter."""
        try:
            for each in self.filters:
                init = each.indexer_score(url, page, init)
        except Exception as error:  # noqa: BLE001
            raise_plugin_error(each, url, error)
        return init


def _ignores_seed_url(kind: type) -> bool:
    """Tell whether a filter says so of its own ``injected_score``: who overrides that says it anew."""
    for each in kind.__mro__:
        if "ignores_seed_url" in vars(each):
            return bool(vars(each)["ignores_seed_url"])
        if "injected_score" in vars(each):
            return False
    return False
