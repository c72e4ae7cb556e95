"""The HTML of the search page. Everything that comes from a page or a query is escaped; no script is used."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from urllib.parse import unquote, urlencode

from nutch2py.search.results import MAX_START, Hit, SearchResult, html
from nutch2py.search.search_backends import Facets

ROWS = 10
MAX_QUERY = 1000
"""Characters of a query."""
_FACET_NAMES = {"host": "Site", "type": "Type", "lang": "Language"}
_LANGUAGES = {
    "zh": "Chinese", "en": "English", "de": "German", "fr": "French", "es": "Spanish", "ja": "Japanese", "ko": "Korean",
    "ru": "Russian", "pt": "Portuguese", "it": "Italian", "pl": "Polish", "nl": "Dutch", "unknown": "unknown",
}  # fmt: skip
_HINT = (
    '<code>"words side by side"</code> <code>-without</code> <code>title:word</code> <code>one OR other</code> '
    "<code>host:example.org</code>"
)


def document(title: str, body: str) -> str:
    """Return a whole HTML document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="/icon.svg">'
        f'<link rel="stylesheet" href="/style.css"></head><body>{body}</body></html>\n'
    )


def _form(query: str, focus: bool = False) -> str:
    return (
        '<form action="/" role="search"><input type="search" name="q" aria-label="Search" '
        f'placeholder="Search" value="{escape(query)}"{" autofocus" if focus else ""} maxlength="{MAX_QUERY}">'
        "<button>Search</button></form>"
    )


def _header(query: str) -> str:
    bar = f'<a class="name" href="/">nutch2py</a>{_form(query)}'
    return f'<a class="skip" href="#main">To the content</a><header><div class="bar">{bar}</div></header>'


def home(documents: int) -> str:
    """Return the page without a query."""
    noun = "document" if documents == 1 else "documents"
    room = '<p class="count"><a href="/crawl">Control room</a></p>'
    count = f'<p class="count">{documents:,} {noun}</p><p class="count">{_HINT}</p>{room}'
    return document("nutch2py search", f'<main class="home"><h1>nutch2py</h1>{_form("", focus=True)}{count}</main>')


def message(title: str, text: str, query: str = "") -> str:
    """Return a page that says one thing."""
    inner = f'<p class="note">{escape(text)}</p>'
    return document(title, f'{_header(query)}<main id="main" class="single"><h1>{escape(title)}</h1>{inner}</main>')


def results(result: SearchResult, facets: Facets, filters: dict[str, str], meant: str = "") -> str:
    """Return a page of hits. ``meant``: a query that perhaps was meant, and finds more."""
    query = result.query
    parts = ["<h1>Results</h1>"]
    if result.hits:
        last = result.start + len(result.hits)
        noun = "document" if result.total == 1 else "documents"
        parts.append(
            f'<p class="count" role="status">{result.total:,} {noun} · {result.start + 1}–{last} · '
            f'{result.millis / 1000:.3f} s<a class="narrow" href="#narrow">Narrow</a></p>'
        )
    parts.append(_chosen(query, filters))
    if meant:
        parts.append(f'<p class="meant">Did you mean <a href="/?{_args(q=meant)}">{escape(meant)}</a>?</p>')
    if result.hits:
        parts.append(f'<ol class="hits" start="{result.start + 1}">')
        parts += [_hit(hit, query) for hit in result.hits]
        parts.append("</ol>")
    elif result.total:
        why = f"Only {result.total:,} match." if result.total <= result.start else f"{MAX_START:,} are shown at most."
        parts.append(f'<p class="note" role="status">No documents here. {why}</p>')
    else:
        parts.append(f'<p class="note" role="status">No document matches <b>{escape(query)}</b>.</p>')
    parts.append(_paging(result, filters))
    aside = _aside(query, facets, filters)
    return document(
        f"{query} – search", f'{_header(query)}<main id="main"><section>{"".join(parts)}</section>{aside}</main>'
    )


def _chosen(query: str, filters: dict[str, str]) -> str:
    """Return what the result is narrowed by, each with a link that takes it back."""
    links = []
    for name, value in filters.items():
        others = {key: each for key, each in filters.items() if key != name}
        label = f"Do not narrow by {_FACET_NAMES.get(name, name).lower()} {value}"
        shown = f"{escape(_shown(name, value))} <span>×</span>"
        links.append(f'<a href="/?{_args(q=query, **others)}" aria-label="{escape(label)}">{shown}</a>')
    return f'<p class="chips">{"".join(links)}</p>' if links else ""


def _shown(name: str, value: str) -> str:
    return _LANGUAGES.get(value, value) if name == "lang" else value


def readable(url: str) -> str:
    """Return a URL for the eye: escapes of letters are undone, those of anything that could deceive stay.

    >>> readable("http://a/%E5%8C%97%E4%BA%AC?x=%26%20"), readable("http://a/%E2%80%AE")
    ('http://a/北京?x=%26%20', 'http://a/%E2%80%AE')
    """
    return _LETTERS.sub(_undone, url)


_TAG = re.compile("[a-z]{2,3}(?:-[A-Za-z]{2,8})?")
_LETTERS = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")


def _undone(match: re.Match[str]) -> str:
    text = unquote(match.group(), errors="replace")
    safe = text.isalpha() and all(unicodedata.bidirectional(letter) == "L" for letter in text)
    return text if safe else match.group()


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
    lang = str(hit.fields.get("lang", ""))
    language = f' lang="{lang}"' if _TAG.fullmatch(lang) else ""
    return (
        f'<li{language}><h2>{title}</h2><div class="url">{escape(readable(hit.url))}</div>'
        f'<p class="snippet">{html(hit.snippet)}</p><div class="more">{"".join(about)}</div></li>'
    )


def _args(**values: str | int) -> str:
    return escape(urlencode({name: value for name, value in values.items() if value not in ("", 0)}))


def _paging(result: SearchResult, filters: dict[str, str]) -> str:
    current, pages = result.start // ROWS, min(-(-result.total // ROWS), MAX_START // ROWS + 1)
    if pages <= 1:
        return ""
    first = max(0, min(current - 4, pages - 9))
    links = []
    if current > 0:
        links.append(_page(result.query, filters, current - 1, "Previous", "prev"))
    links += [
        f'<b aria-current="page">{number + 1}</b>'
        if number == current
        else _page(result.query, filters, number, str(number + 1))
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
            shown = escape(_shown(name, value))
            link = f'<a href="/?{_args(q=query, **{**others, name: value})}">{shown}</a>'
            text = f'<b class="chosen">{shown}</b>' if value == chosen else link
            lines.append(f"<li>{text}<span>{count:,}</span></li>")
        if lines:
            parts.append(f'<h2>{_FACET_NAMES.get(name, name)}</h2><ul data-facet="{name}">{"".join(lines)}</ul>')
    return f'<aside id="narrow" aria-label="Narrow">{"".join(parts)}</aside>'


def cached_frame(url: str, document_id: str, query: str) -> str:
    """Return the page around a cached view, which stands in a frame that can do nothing."""
    shown = escape(url)
    link = (
        f'<a href="{shown}" rel="noreferrer noopener">{shown}</a>' if url.startswith(("http://", "https://")) else shown
    )
    note = f'<p class="note">As it was fetched from {link}. Scripts, forms, pictures and links do not work here.</p>'
    frame = f'<iframe sandbox="" src="/cached/view?{_args(id=document_id)}" title="Cached page"></iframe>'
    return document(f"Cached: {url}", f'{_header(query)}<main id="main" class="single">{note}{frame}</main>')


def explanation(url: str, query: str, text: str) -> str:
    """Return the page that says why a document was found."""
    inner = f'<p class="note"><b>{escape(url)}</b> for <b>{escape(query)}</b></p><pre>{escape(text)}</pre>'
    return document("Why this score", f'{_header(query)}<main id="main" class="single">{inner}</main>')
