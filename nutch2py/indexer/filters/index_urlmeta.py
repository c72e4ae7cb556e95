"""urlmeta: metadata from the seed file as fields."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.cells import decode_text
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class URLMetaIndexingFilter(IndexingFilter):
    """Adds metadata that a seed file attaches to a URL (``key=value`` after it), for the keys in ``urlmeta.tags``."""

    java_class = "org.apache.nutch.indexer.urlmeta.URLMetaIndexingFilter"
    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self.tags = conf.get_strings("urlmeta.tags")

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        for name in self.tags:
            cell = page.metadata.get(name)
            if cell is not None:
                document.add(name, decode_text(cell))
        return document
