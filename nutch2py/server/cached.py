"""The cached view of a page: what the table holds of it, made harmless.

The content is sent as it was fetched, under headers that keep a browser from doing anything with it but show it: no
scripts, forms, plug-ins or pop-ups, an origin of its own, nothing loaded from anywhere, no guessing of types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.indexer.filters.index_html import page_source
from nutch2py.record import Field
from nutch2py.table import open_store
from nutch2py.webpage import MetadataKey, WebPage

HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every page of another site."""

_HTML = ("text/html", "application/xhtml+xml")
_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.content, WebPage.content_type, WebPage.metadata, WebPage.text})


class CachedPage(NamedTuple):
    """What to show: the media type (text/html or text/plain) and the text; or why nothing is shown."""

    content_type: str
    text: str
    refusal: str = ""


def cached_page(conf: Configuration, key: str) -> CachedPage:
    """Return the cached view of a row. A page that forbids to be cached, or that is not text, is not shown."""
    store = open_store(conf, WebPage)
    page = store.get(key, _FIELDS) if key and store.exists() else None
    if page is None:
        return CachedPage("", "", "The crawl's table has no such page.")
    if page.metadata.get(MetadataKey.CACHING_FORBIDDEN) not in (None, b"none"):
        return CachedPage("", "", "The page asks not to be shown from a cache.")
    kind = page.content_type or ""
    source = page_source(page) if kind.startswith("text/") or kind in _HTML else None
    if source is not None:
        return CachedPage("text/html" if kind in _HTML else "text/plain", source)
    if page.text:
        return CachedPage("text/plain", page.text)
    return CachedPage("", "", "The content of this page was not kept, or is not text.")
