"""language-identifier: the field ``lang``."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_more import response_header
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.filters.language_identifier import LANGUAGE_KEY, LanguagePolicy, language_code
from nutch2py.records.cells import decode_text
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class LanguageIndexingFilter(IndexingFilter):
    """Adds ``lang``, a code of ISO 639-1, or ``unknown``.

    The parse filter of the same id stores the language of HTML pages. The language of other pages (plain text, or
    parsed before the plug-in was enabled) is detected here by header and text. ``lang.index.languages``: index only
    pages in these languages.
    """

    java_class = "org.apache.nutch.analysis.lang.LanguageIndexingFilter"
    fields = frozenset({WebPage.metadata, WebPage.headers, WebPage.title, WebPage.text})

    def __init__(self, conf: Configuration) -> None:
        self.rules = LanguagePolicy(conf)
        self.allowed_languages = frozenset(conf.get_strings("lang.index.languages"))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the language, or drop the page."""
        cell = page.metadata.get(LANGUAGE_KEY)
        language = decode_text(cell) if cell else self._detect_language(page)
        if self.allowed_languages and language not in self.allowed_languages:
            return None
        document.add("lang", language or "unknown")
        return document

    def _detect_language(self, page: WebPage) -> str | None:
        declared = language_code(response_header(page, "Content-Language"))
        return self.rules.choose_language(declared, f"{page.title or ''} {page.text or ''}")
