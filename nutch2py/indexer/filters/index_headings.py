"""headings: headings stored by the parse filter of the same id, as fields of their names."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_metadata import metadata_values
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class HeadingsIndexingFilter(IndexingFilter):
    """Adds a field for each element in ``headings``.

    Nutch 1 requires index-metadata for that.
    """

    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self.heading_names = conf.get_strings("headings", ("h1", "h2"))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the headings."""
        for name in self.heading_names:
            for value in metadata_values(page, name):
                if value.strip():
                    document.add(name, value.strip())
        return document
