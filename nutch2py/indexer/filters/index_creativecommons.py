"""creativecommons: the licence of a page and its terms, in the field ``cc``."""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_metadata import metadata_values
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.filters.creativecommons import LICENSE_LOCATION, LICENSE_URL, WORK_TYPE
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import parse_url


class CCIndexingFilter(IndexingFilter):
    """Adds to ``cc``: ``license=URL``, each term (``by``, ``sa``, ``4.0``), ``meta=`` its location, kind of work."""

    java_class = "org.creativecommons.nutch.CCIndexingFilter"
    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        """Accept the configuration; the filter has no properties."""

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the results of the parse filter of the same id."""
        for licence in metadata_values(page, LICENSE_URL)[:1]:
            document.add("cc", f"license={licence}")
            for term in license_terms(licence):
                document.add("cc", term)
        for location in metadata_values(page, LICENSE_LOCATION)[:1]:
            document.add("cc", f"meta={location}")
        for kind in metadata_values(page, WORK_TYPE)[:1]:
            document.add("cc", kind)
        return document


def license_terms(license_url: str) -> list[str]:
    """Return the terms in the path of a licence's URL.

    >>> license_terms("http://creativecommons.org/licenses/by-nc/4.0/")
    ['by', 'nc', '4.0']
    """
    try:
        path = parse_url(license_url).file.partition("?")[0]
    except ValueError:
        return []
    return [term for term in re.split("[/-]", path) if term][1:]
