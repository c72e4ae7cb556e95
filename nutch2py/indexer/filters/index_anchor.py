"""index-anchor: anchor texts of a page's inlinks."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_basic import strip_replacement_characters
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class AnchorIndexingFilter(IndexingFilter):
    """Adds each anchor text of the inlinks as ``anchor``, in the order of the linking URLs.

    ``anchorIndexingFilter.deduplicate``: skip texts that differ only in case.
    """

    java_class = "org.apache.nutch.indexer.anchor.AnchorIndexingFilter"
    fields = frozenset({WebPage.inlinks})

    def __init__(self, conf: Configuration) -> None:
        self.deduplicate = conf.get_bool("anchorIndexingFilter.deduplicate", False)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the anchors; skip empty ones."""
        seen: set[str] = set()
        for _, anchor in sorted(page.inlinks.decoded_items()):
            text = strip_replacement_characters(anchor)
            if not text:
                continue
            if self.deduplicate:
                folded = text.lower()
                if folded in seen:
                    continue
                seen.add(folded)
            document.add("anchor", text)
        return document
