"""Chain of the enabled scoring plug-ins, in the order of ``scoring.filter.order``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink, ScoringFilter
from nutch2py.plugins.loading import create_ordered_plugins, plugin_id_of
from nutch2py.plugins.plugin_failures import PluginCall
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class ScoringFilters:
    """Runs the enabled scoring filters in order; without any, scores stay unchanged.

    An exception of a filter becomes a :class:`nutch2py.plugins.plugin_failures.PluginError` with the filter and page.
    """

    def __init__(self, conf: Configuration) -> None:
        self.filters: list[ScoringFilter] = create_ordered_plugins(conf, "scoringfilter", "scoring.filter.order")
        self.fields: frozenset[RecordField] = frozenset().union(*(each.fields for each in self.filters))
        """Fields that the filters read and change."""
        self.generator_fields: frozenset[RecordField] = frozenset().union(
            *(each.generator_fields for each in self.filters)
        )
        """Fields that :meth:`generator_sort_value` reads; few, because it runs on every row."""

    @property
    def sorts_by_score(self) -> bool:
        """Whether the GeneratorJob selects pages by descending ``page.score`` alone."""
        return all(each.sorts_by_score for each in self.filters)

    @property
    def ignores_seed_url(self) -> bool:
        """Whether the setup of a seed without metadata does not depend on its URL."""
        return all(_ignores_seed_url(type(each)) for each in self.filters)

    def without(self, plugins: Collection[str]) -> ScoringFilters:
        """Return these filters without the plug-ins with the ids ``plugins``."""
        fewer = copy(self)
        fewer.filters = [each for each in self.filters if plugin_id_of(each) not in plugins]
        return fewer

    def injected_score(self, url: str, page: WebPage) -> None:
        """Set up a seed whose ``score`` is already set."""
        for each in self.filters:
            with PluginCall(each, url):
                each.injected_score(url, page)

    def initial_score(self, url: str, page: WebPage) -> None:
        """Set up a newly found page."""
        for each in self.filters:
            with PluginCall(each, url):
                each.initial_score(url, page)

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return ``init`` passed through every filter; the GeneratorJob starts from the page's score, as Nutch does."""
        for each in self.filters:
            with PluginCall(each, url):
                init = each.generator_sort_value(url, page, init)
        return init

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links that the filters keep, with their scores."""
        for each in self.filters:
            with PluginCall(each, url):
                links = each.distribute(url, page, links, total)
        return links

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Add the scores of a batch; ``inlinks`` in descending order of score, which the float sums depend on."""
        for each in self.filters:
            with PluginCall(each, url):
                each.update_score(url, page, inlinks)

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document: ``init`` passed through every filter."""
        for each in self.filters:
            with PluginCall(each, url):
                init = each.indexer_score(url, page, init)
        return init


def _ignores_seed_url(kind: type) -> bool:
    """Return the flag of a filter class; a subclass that overrides ``injected_score`` must set it again."""
    for each in kind.__mro__:
        if "ignores_seed_url" in vars(each):
            return bool(vars(each)["ignores_seed_url"])
        if "injected_score" in vars(each):
            return False
    return False
