"""IndexingFilters: runs the indexing filters of a document in order."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.plugins.loading import create_ordered_plugins
from nutch2py.plugins.plugin_failures import PluginCall
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class IndexingFilters:
    """The enabled indexing filters, in the order of ``indexingfilter.order``; others follow."""

    def __init__(self, conf: Configuration) -> None:
        self.filters: list[IndexingFilter] = create_ordered_plugins(conf, "indexingfilter", "indexingfilter.order")
        self.fields: frozenset[RecordField] = frozenset().union(*(f.fields for f in self.filters))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Run every filter; return None as soon as one does. Failures are PluginError or PageNotIndexableError."""
        current: NutchDocument | None = document
        for each in self.filters:
            if current is None:
                return None
            with PluginCall(each, url):
                current = each.filter(current, url, page)
        return current
