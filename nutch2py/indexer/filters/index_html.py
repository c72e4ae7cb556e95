"""index-html: the source of a page, for the view of cached pages."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.robots_directives import caching_restriction
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import MetadataKey, WebPage


def decode_page_source(page: WebPage) -> str | None:
    """Return the content as text, by the charset of the parser; None without content.

    Nutch decodes every page as UTF-8.
    """
    content = page.content
    if content is None:
        return None
    charset = (page.metadata.get(MetadataKey.CHARSET) or b"utf-8").decode("ascii", "replace")
    try:
        return content.decode(charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


class HtmlIndexingFilter(IndexingFilter):
    """Adds ``rawcontent``, unless the page forbids caching; only text pages have it."""

    java_class = "org.apache.nutch.indexer.html.HtmlIndexingFilter"
    fields = frozenset({WebPage.content, WebPage.content_type, WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        """Accept the configuration; the filter has no properties."""

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the source."""
        kind = page.content_type or ""
        if not (kind.startswith("text/") or kind.endswith("xml")):
            return document
        source = decode_page_source(page) if caching_restriction(page) is None else None
        if source:
            document.add("rawcontent", source.replace("\ufffd", ""))
        return document
