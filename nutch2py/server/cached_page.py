"""Cached copies of pages from the table, sanitized.

The HTML is rewritten without active content and external resources, with the query terms highlighted. As a second
defence, response headers sandbox it: no scripts, forms, plug-ins or pop-ups, an opaque origin, no loading, no sniffing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_builder import has_noindex_directive, is_noindex
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.indexer.filters.index_html import decode_page_source
from nutch2py.parser.html.html_limits import HtmlLimits
from nutch2py.parser.robots_directives import agent_names, caching_restriction, reads_robots_header
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
        WebPage.content, WebPage.content_type, WebPage.metadata, WebPage.text, WebPage.fetch_time, WebPage.title,
        WebPage.prev_fetch_time, WebPage.fetch_interval, WebPage.markers, WebPage.headers,
        WebPage.parse_status,
    }
)  # fmt: skip
_REMOVED_SELECTOR = "script, iframe, object, embed, applet, base, meta[http-equiv], link, frame, frameset, portal"
_LOADING_SELECTOR = "[src], [srcset], [background], [poster], [ping], [href]:not(a):not(area), image, use"
_URL_ATTRIBUTES = ("src", "srcset", "background", "poster", "ping", "href", "xlink:href")
_EXTERNAL_CSS = re.compile(r"""@import[^;]{0,2000}+;?|url\(\s{0,9}+(?!["']?data:)[^)]{0,2000}+\)?""", re.IGNORECASE)
_UNHIGHLIGHTED_ELEMENTS = frozenset(
    {"style", "title", "textarea", "option", "noscript", "template", "xmp", "plaintext"}
)
_DEFAULT_MAX_CHARACTERS = 1_000_000
_MAX_BYTES_OF_CHARACTER = 4  # in the encodings of the web
_MAX_MARKS = 1_000
_MAX_SEARCHED_CHARACTERS = 250_000
"""Characters of text, from the start of a page, in which terms are highlighted."""
_MAX_TEXT_NODES = 50_000
_MAX_STYLE_ELEMENTS = 100
_MAX_TEMPLATES = 500
"""Templates of a page; the parser writes nested ones by recursion, without a limit of its own."""
_TEMPLATE_TAG = re.compile(r"</?template(?=[\s/>])", re.IGNORECASE)
_MAX_TERMS = 20
_MAX_TERM_WORDS = 8
_HIGHLIGHT_CSS = "background:#ffec99;color:#1d2330;border-radius:2px"


class CachedPage(NamedTuple):
    """Media type (text/html or text/plain) and stored text of a page, or the reason why there is no copy.

    ``fetch_time``: in UTC as ``2026-01-31 12:00``, "" if unknown.
    """

    content_type: str
    text: str
    unavailable_reason: str = ""
    fetch_time: str = ""


def load_cached_page(conf: Configuration, key: str) -> CachedPage:
    """Return the stored copy of a row, cut at ``search.cached.max.characters``.

    Pages that forbid indexing or caching, and pages that are not text, have none. The caller checks that the index has
    the page.
    """
    store = open_store(conf, WebPage)
    page = store.get(key, _ROW_FIELDS) if key and store.exists() else None
    if page is None:
        return CachedPage("", "", "The crawl has no such page.")
    if _forbids_indexing(conf, page):
        return CachedPage("", "", "The page forbids indexing.")
    if caching_restriction(page) is not None:
        return CachedPage("", "", "The page forbids cached copies.")
    content_type = page.content_type or ""
    fetch_time = _format_time(page_fetch_time(page))
    limit = max(conf.get_int("search.cached.max.characters", _DEFAULT_MAX_CHARACTERS), 0)
    if page.content is not None:
        page.content = page.content[: _MAX_BYTES_OF_CHARACTER * limit]
    source = decode_page_source(page) if content_type.startswith("text/") or content_type in _HTML_TYPES else None
    if source is None and not page.text:
        return CachedPage("", "", "The content of this page is not stored, or is not text.")
    text = source if source is not None else page.text or ""
    is_html = source is not None and content_type in _HTML_TYPES
    return CachedPage("text/html" if is_html else "text/plain", text[:limit], "", fetch_time)


def _forbids_indexing(conf: Configuration, page: WebPage) -> bool:
    """Return whether the next index job would delete the page's document for a robots directive."""
    forbids = has_noindex_directive if page.parse_status is None else is_noindex  # an unparsed row has no text either
    return conf.get_bool("indexer.delete.robots.noindex", True) and forbids(
        page, agent_names(conf), reads_header=reads_robots_header(conf)
    )


def render_cached_page(page: CachedPage, query: str = "") -> tuple[str, str]:
    """Return media type and text of the view of a page, sanitized, with the terms of ``query`` highlighted."""
    if page.content_type == "text/html":
        return page.content_type, sanitize_html(page.text, query)
    pattern = _terms_pattern(query)
    if pattern is None or not pattern.search(page.text, 0, _MAX_SEARCHED_CHARACTERS):
        return page.content_type, page.text
    highlighted, _ = _highlight(page.text, pattern, _MAX_MARKS, _MAX_SEARCHED_CHARACTERS)
    return "text/html", f'<!doctype html><meta charset="utf-8"><title>-</title><pre>{highlighted}</pre>'


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

    Work, memory and length grow with the source only: slow constructs are removed as for parsing, and the number of
    marks and the text that is searched for them are limited.
    """
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    source, _ = HtmlLimits().apply(source)
    if sum(1 for _ in islice(_TEMPLATE_TAG.finditer(source), _MAX_TEMPLATES + 1)) > _MAX_TEMPLATES:
        source = _TEMPLATE_TAG.sub("<wbr", source)
    try:
        tree = LexborHTMLParser(source)
    except (SelectolaxError, ValueError):
        return escape(source)
    for node in reversed(tree.css(_REMOVED_SELECTOR)):  # inner elements first: an outer one takes them along
        node.decompose()
    for node in tree.css(_LOADING_SELECTOR):
        attributes = node.attributes
        for name in _URL_ATTRIBUTES:
            if name == "href" and node.tag in ("a", "area"):
                continue  # the sandbox blocks navigation
            if name in attributes and not (attributes[name] or "").startswith("data:image/"):
                del node.attrs[name]
    for node in tree.css("[style]"):
        style = node.attributes["style"] or ""
        if (allowed := _EXTERNAL_CSS.sub("", style)) != style:
            node.attrs["style"] = allowed
    for number, node in enumerate(tree.css("style")):
        style = node.text()
        if number >= _MAX_STYLE_ELEMENTS:
            node.decompose()
        elif (allowed := _EXTERNAL_CSS.sub("", style)) != style:
            replacement = LexborHTMLParser(f"<style>{allowed}</style>").css_first("style")
            if replacement is not None:
                node.replace_with(replacement)
    pattern = _terms_pattern(query)
    if pattern is not None and tree.body is not None:
        _highlight_nodes(tree.body, pattern)
    return f"<!doctype html>{tree.html or ''}"


def _highlight_nodes(body: LexborNode, pattern: re.Pattern[str]) -> None:
    from selectolax.lexbor import LexborHTMLParser

    marks, characters = _MAX_MARKS, _MAX_SEARCHED_CHARACTERS
    for node in [*islice(_text_nodes(body), _MAX_TEXT_NODES)]:
        text = node.text_content or ""
        highlighted, count = _highlight(text, pattern, marks, characters)
        if count:
            span = LexborHTMLParser(f"<body><span>{highlighted}</span>").css_first("span")
            if span is not None:
                node.replace_with(span)
        marks, characters = marks - count, characters - len(text)
        if marks <= 0 or characters <= 0:
            return


def _text_nodes(body: LexborNode) -> Iterator[LexborNode]:
    for node in body.traverse(include_text=True):
        if node.tag == "-text" and node.parent is not None and node.parent.tag not in _UNHIGHLIGHTED_ELEMENTS:
            yield node


def _highlight(text: str, pattern: re.Pattern[str], max_marks: int, max_characters: int) -> tuple[str, int]:
    """Return text as HTML with the first matches of ``pattern`` highlighted, and their number.

    ``max_characters``: length of the start of the text in which matches are looked for.
    """
    pieces: list[str] = []
    end = count = 0
    for match in islice(pattern.finditer(text, 0, max_characters), max_marks):
        pieces += [escape(text[end : match.start()]), f'<mark style="{_HIGHLIGHT_CSS}">{escape(match.group())}</mark>']
        end = match.end()
        count += 1
    return "".join([*pieces, escape(text[end:])]) if count else "", count


def _terms_pattern(query: str) -> re.Pattern[str] | None:
    """Return a pattern of the query terms, also with other endings; None for a query without words."""
    parts: dict[str, None] = {}
    for text in islice(query_terms(query), _MAX_TERMS):
        words = re.findall(r"\w+", text)[:_MAX_TERM_WORDS]
        row = r"\W{1,5}+".join(map(re.escape, words))
        if words:
            ascii_word = words[-1].isascii() and len(words[-1]) > 3
            parts[rf"(?<![^\W_]){row}\w{{0,3}}(?!\w)" if ascii_word else row] = None
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def _format_time(time: int) -> str:
    try:
        return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M") if time > 0 else ""
    except (ValueError, OverflowError, OSError):
        return ""
