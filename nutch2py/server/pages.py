"""The HTML of the search page. Everything that comes from a page or a query is escaped; no script is used."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

from nutch2py.indexer.search import Hit, SearchResult, html
from nutch2py.server.backends import Facets

ROWS = 10
_FACET_NAMES = {"host": "Site", "type": "Type", "lang": "Language"}
_LANGUAGES = {
    "zh": "Chinese", "en": "English", "de": "German", "fr": "French", "es": "Spanish", "ja": "Japanese", "ko": "Korean",
    "ru": "Russian", "pt": "Portuguese", "it": "Italian", "pl": "Polish", "nl": "Dutch", "unknown": "unknown",
}  # fmt: skip


def document(title: str, body: str) -> str:
    """Return a whole HTML document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/style.css"></head><body>{body}</body></html>\n'
    )


def _form(query: str, focus: bool = False) -> str:
    return (
        '<form action="/" role="search"><input type="search" name="q" aria-label="Search" '
        f'placeholder="Search" value="{escape(query)}"{" autofocus" if focus else ""} maxlength="1000">'
        "<button>Search</button></form>"
    )


def _header(query: str) -> str:
    return f'<header><div class="bar"><a class="name" href="/">nutch2py</a>{_form(query)}</div></header>'


def home(documents: int) -> str:
    """Return the page without a query."""
    count = f'<p class="count">{documents:,} documents</p>'
    return document("nutch2py search", f'<div class="home"><h1>nutch2py</h1>{_form("", focus=True)}{count}</div>')


def message(title: str, text: str, query: str = "") -> str:
    """Return a page that says one thing."""
    inner = f'<p class="note">{escape(text)}</p>'
    return document(title, f'{_header(query)}<main class="single"><h1>{escape(title)}</h1>{inner}</main>')


def results(result: SearchResult, facets: Facets, filters: dict[str, str]) -> str:
    """Return a page of hits."""
    query = result.query
    if result.hits:
        last = result.start + len(result.hits)
        noun = "document" if result.total == 1 else "documents"
        count = f"{result.total:,} {noun} · {result.start + 1}–{last} · {result.millis / 1000:.3f} s"
        hits = f'<ol class="hits">{"".join(_hit(hit, query) for hit in result.hits)}</ol>'
    else:
        count, hits = "", f'<p class="note">No document matches <b>{escape(query)}</b>.</p>'
    body = f'<section><p class="count">{count}</p>{hits}{_paging(result, filters)}</section>'
    return document(f"{query} – search", f"{_header(query)}<main>{body}{_aside(query, facets, filters)}</main>")


def _hit(hit: Hit, query: str) -> str:
    title = html(hit.title)
    if hit.url.lower().startswith(("http://", "https://", "ftp://")):
        title = f'<a href="{escape(hit.url)}" rel="noreferrer noopener">{title}</a>'
    about = [f"<span>score {hit.score:.3f}</span>", f'<a href="/explain?{_args(q=query, id=hit.id)}">why?</a>']
    if hit.fields.get("cache") in (None, "none"):
        about.append(f'<a href="/cached?{_args(id=hit.id, q=query)}">cached</a>')
    date = str(hit.fields.get("date", hit.fields.get("tstamp", "")))[:10]
    if date:
        about.append(f"<span>{escape(date)}</span>")
    return (
        f'<li><h2>{title}</h2><div class="url">{escape(hit.url)}</div>'
        f'<p class="snippet">{html(hit.snippet)}</p><div class="more">{"".join(about)}</div></li>'
    )


def _args(**values: str | int) -> str:
    return escape(urlencode({name: value for name, value in values.items() if value not in ("", 0)}))


def _paging(result: SearchResult, filters: dict[str, str]) -> str:
    current, pages = result.start // ROWS, -(-result.total // ROWS)
    if pages <= 1:
        return ""
    first = max(0, min(current - 4, pages - 9))
    links = []
    if current > 0:
        links.append(_page(result.query, filters, current - 1, "Previous", "prev"))
    links += [
        f"<b>{number + 1}</b>" if number == current else _page(result.query, filters, number, str(number + 1))
        for number in range(first, min(pages, first + 9))
    ]
    if current + 1 < pages:
        links.append(_page(result.query, filters, current + 1, "Next", "next"))
    return f'<nav class="pages" aria-label="Pages">{"".join(links)}</nav>'


def _page(query: str, filters: dict[str, str], number: int, text: str, relation: str = "") -> str:
    rel = f' rel="{relation}"' if relation else ""
    return f'<a href="/?{_args(q=query, start=number * ROWS, **filters)}"{rel}>{text}</a>'


def _aside(query: str, facets: Facets, filters: dict[str, str]) -> str:
    parts = []
    for name, values in facets.items():
        chosen = filters.get(name)
        others = {key: value for key, value in filters.items() if key != name}
        lines = [f'<li><a href="/?{_args(q=query, **others)}">all</a></li>'] if chosen else []
        for value, count in values:
            shown = escape(_LANGUAGES.get(value, value) if name == "lang" else value)
            link = f'<a href="/?{_args(q=query, **{**others, name: value})}">{shown}</a>'
            text = f'<b class="chosen">{shown}</b>' if value == chosen else link
            lines.append(f"<li>{text}<span>{count:,}</span></li>")
        if lines:
            parts.append(f'<h3>{_FACET_NAMES.get(name, name)}</h3><ul data-facet="{name}">{"".join(lines)}</ul>')
    return f"<aside>{''.join(parts)}</aside>"


def cached_frame(url: str, document_id: str, query: str) -> str:
    """Return the page around a cached view, which stands in a frame that can do nothing."""
    shown = escape(url)
    link = (
        f'<a href="{shown}" rel="noreferrer noopener">{shown}</a>' if url.startswith(("http://", "https://")) else shown
    )
    note = f'<p class="note">As it was fetched from {link}. Scripts, forms, pictures and links do not work here.</p>'
    frame = f'<iframe sandbox="" src="/cached/view?{_args(id=document_id)}" title="Cached page"></iframe>'
    return document(f"Cached: {url}", f'{_header(query)}<main class="single">{note}{frame}</main>')


def explanation(url: str, query: str, text: str) -> str:
    """Return the page that says why a document was found."""
    inner = f'<p class="note"><b>{escape(url)}</b> for <b>{escape(query)}</b></p><pre>{escape(text)}</pre>'
    return document("Why this score", f'{_header(query)}<main class="single">{inner}</main>')
