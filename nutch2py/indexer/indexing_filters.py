"""IndexingFilters: the plug-ins that fill a document, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nutch2py.conf import Configuration
from nutch2py.errors import NutchError
from nutch2py.plugins import ordered

if TYPE_CHECKING:
    from nutch2py.indexer.document import NutchDocument
    from nutch2py.record import Field
    from nutch2py.webpage import WebPage


class PageNotIndexable(NutchError):
    """A page that no document can be made of, such as one whose URL has no host: it is skipped with a warning."""


class IndexingFilter(Protocol):
    """Adds fields to a document. A plug-in is called with the Configuration."""

    fields: frozenset[Field[Any]]
    """What it reads of a page."""

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Return the document with more fields, or None to leave the page out of the index.

        Raise :class:`PageNotIndexable` when the page is broken.
        """


class IndexingFilters:
    """The enabled IndexingFilters in the order of ``indexingfilter.order``; those it does not name come after."""

    def __init__(self, conf: Configuration) -> None:
        self.filters: list[IndexingFilter] = ordered(conf, "indexingfilter", "indexingfilter.order")
        self.fields: frozenset[Field[Any]] = frozenset().union(*(f.fields for f in self.filters))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Run every filter; None as soon as one gives None."""
        current: NutchDocument | None = document
        for each in self.filters:
            if current is None:
                return None
            current = each.filter(current, url, page)
        return current
