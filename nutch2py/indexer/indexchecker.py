"""indexchecker: shows the document of a page without an index."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.indexing_filters import IndexingFilters
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

DISCARDED = "Document discarded by indexing filter"


def check_document(conf: Configuration, url: str, page: WebPage) -> NutchDocument | None:
    """Return the document of a fetched and parsed page, None when a filter drops it.

    As in Nutch's IndexingFiltersChecker, ``id`` is the plain URL here, and there is neither ``boost`` nor ``batchId``.
    """
    document = NutchDocument()
    document.add("id", url)
    document.add("digest", (page.signature or b"").hex())
    return IndexingFilters(conf).filter(document, url, page)


def format_checked_document(conf: Configuration, url: str, page: WebPage) -> str:
    """Return the output of indexchecker: ``name :<tab>value``, one line for each value of each field."""
    document = check_document(conf, url, page)
    if document is None:
        return f"{DISCARDED}\n"
    return "".join(f"{name} :\t{value}\n" for name, values in document for value in values)
