"""Cached copies of pages from the table, sanitized.

The HTML is rewritten without active content and external resources, with the query terms highlighted. As a second
defence, response headers sandbox it: no scripts, forms, plug-ins or pop-ups, an opaque origin, no loading, no sniffing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.indexer.filters.index_html import decode_page_source
from nutch2py.parser.robots_directives import caching_restriction
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.search.query.query_language import iter_positive_texts, parse_query
from nutch2py.table import open_store

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

SANDBOX_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every cached copy."""

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_ROW_FIELDS: frozenset[RecordField] = frozenset(
    {
        WebPage.content, WebPage.content_type, WebPage.metadata, WebPage.text, WebPage.fetch_time,
        WebPage.prev_fetch_time, WebPage.fetch_interval, WebPage.markers,
    }
)  # fmt: skip
_REMOVED_SELECTOR = "script, iframe, object, embed, applet, base, meta[http-equiv], link, frame, frameset, portal"
_LOADING_SELECTOR = "[src], [srcset], [background], [poster], [ping], [href], image, use"
_URL_ATTRIBUTES = ("src", "srcset", "background", "poster", "ping", "href", "xlink:href")
_STYLE_ELEMENT = re.compile(r"<style\b[^>]*>[^<]*", re.IGNORECASE)
_EXTERNAL_CSS = re.compile(r"""@import[^;]{0,2000};?|url\(\s{0,9}(?!["']?data:)[^)]{0,2000}\)""", re.IGNORECASE)
_UNHIGHLIGHTED_ELEMENTS = frozenset(
    {"style", "title", "textarea", "option", "noscript", "template", "xmp", "plaintext"}
)
_MAX_HIGHLIGHT_CHARACTERS = 2_000_000  # longer pages are shown without highlighting
_MAX_TERMS = 20
_HIGHLIGHT_CSS = "background:#ffec99;color:#1d2330;border-radius:2px"


class CachedPage(NamedTuple):
    """Media type (text/html or text/plain) and text of a copy, or the reason why it is unavailable.

    ``fetch_time``: in UTC as ``2026-01-31 12:00``, "" if unknown.
    """

    content_type: str
    text: str
    unavailable_reason: str = ""
    fetch_time: str = ""


def load_cached_page(conf: Configuration, key: str, query: str = "") -> CachedPage:
    """Return the cached copy of a row with the terms of ``query`` highlighted.

    Pages that forbid caching, and pages that are not text, are unavailable.
    """
    store = open_store(conf, WebPage)
    page = store.get(key, _ROW_FIELDS) if key and store.exists() else None
    if page is None:
        return CachedPage("", "", "The crawl has no such page.")
    if caching_restriction(page) is not None:
        return CachedPage("", "", "The page forbids cached copies.")
    content_type = page.content_type or ""
    fetch_time = _format_time(page_fetch_time(page))
    source = decode_page_source(page) if content_type.startswith("text/") or content_type in _HTML_TYPES else None
    if source is None and not page.text:
        return CachedPage("", "", "The content of this page is not stored, or is not text.")
    if source is not None and content_type in _HTML_TYPES:
        return CachedPage("text/html", sanitize_html(source, query), "", fetch_time)
    text = source if source is not None else page.text or ""
    pattern = _terms_pattern(query) if len(text) <= _MAX_HIGHLIGHT_CHARACTERS else None
    if pattern is None or not pattern.search(text):
        return CachedPage("text/plain", text, "", fetch_time)
    body = f'<!doctype html><meta charset="utf-8"><title>-</title><pre>{_highlight(text, pattern)}</pre>'
    return CachedPage("text/html", body, "", fetch_time)


def query_terms(query: str) -> Iterator[str]:
    """Yield the words and phrases of a query that match text fields.

    >>> [*query_terms('crawl -old title:"the web" host:a.org')]
    ['crawl', 'the web']
    """
    for text in iter_positive_texts(parse_query(query)):
        if text.field in ("", "title", "content", "anchor") and re.search(r"\w", text.text):
            yield text.text


def sanitize_html(source: str, query: str = "") -> str:
    """Return HTML without scripts and external resources, with the query terms highlighted.

    A very long page is returned unchanged: the sandbox headers alone protect the browser.
    """
    if len(source) > _MAX_HIGHLIGHT_CHARACTERS:
        return source
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        tree = LexborHTMLParser(source)
    except (SelectolaxError, ValueError):
        return source
    for node in tree.css(_REMOVED_SELECTOR):
        node.decompose()
    for node in tree.css(_LOADING_SELECTOR):
        for name in _URL_ATTRIBUTES:
            if name == "href" and node.tag in ("a", "area"):
                continue  # the sandbox blocks navigation
            if name in node.attributes and not (node.attributes[name] or "").startswith("data:image/"):
                del node.attrs[name]
    for node in tree.css("[style]"):
        node.attrs["style"] = _EXTERNAL_CSS.sub("", node.attributes["style"] or "")
    pattern = _terms_pattern(query)
    if pattern is not None and tree.body is not None:
        for node in [*_text_nodes(tree.body)]:
            text = node.text_content or ""
            if pattern.search(text):
                span = LexborHTMLParser(f"<body><span>{_highlight(text, pattern)}</span>").css_first("span")
                if span is not None:
                    node.replace_with(span)
    return f"<!doctype html>{_STYLE_ELEMENT.sub(lambda style: _EXTERNAL_CSS.sub('', style.group()), tree.html or '')}"


def _text_nodes(body: LexborNode) -> Iterator[LexborNode]:
    for node in body.traverse(include_text=True):
        if node.tag == "-text" and node.parent is not None and node.parent.tag not in _UNHIGHLIGHTED_ELEMENTS:
            yield node


def _highlight(text: str, pattern: re.Pattern[str]) -> str:
    """Return text as HTML with the matches of ``pattern`` highlighted."""
    pieces: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        pieces += [escape(text[end : match.start()]), f'<mark style="{_HIGHLIGHT_CSS}">{escape(match.group())}</mark>']
        end = match.end()
    return "".join([*pieces, escape(text[end:])])


def _terms_pattern(query: str) -> re.Pattern[str] | None:
    """Return a pattern of the query terms, also with other endings; None for a query without words."""
    parts = []
    for text in [*query_terms(query)][:_MAX_TERMS]:
        words = re.findall(r"\w+", text)[:8]
        row = r"\W{1,5}".join(map(re.escape, words))
        if words:
            ascii_word = words[-1].isascii() and len(words[-1]) > 3
            parts.append(rf"(?<![^\W_]){row}\w{{0,3}}(?!\w)" if ascii_word else row)
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def _format_time(time: int) -> str:
    try:
        return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M") if time > 0 else ""
    except (ValueError, OverflowError, OSError):
        return ""
