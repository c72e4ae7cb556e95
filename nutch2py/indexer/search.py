"""Searching the index: what the command, the search page and the REST service call."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.document import clean_text
from nutch2py.indexer.searcher import EmbeddedSearcher
from nutch2py.indexer.snippet import Snippet, make_snippet, mark
from nutch2py.indexer.writers import chosen

MAX_ROWS = 1_000
MAX_START = 100_000
"""Results beyond are not given: sorting that many for one page is what crawlers of search pages ask for."""


class Hit(NamedTuple):
    """One result. ``title`` and ``snippet`` know which words to mark; ``fields`` are the document's, as JSON types."""

    id: str
    url: str
    title: Snippet
    snippet: Snippet
    score: float
    fields: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON types, marked words within ``<em>`` and the rest escaped for HTML."""
        return {
            "id": self.id,
            "url": self.url,
            "title": html(self.title),
            "snippet": html(self.snippet),
            "score": round(self.score, 6),
            "fields": {name: value for name, value in self.fields.items() if name != "content"},
        }


class SearchResult(NamedTuple):
    """``total`` documents match; ``hits`` are those from ``start`` on; the search took ``millis``."""

    query: str
    start: int
    total: int
    hits: list[Hit]
    millis: float

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        import orjson

        return orjson.dumps(self.to_dict()).decode()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types; the content of the documents is left out."""
        return {
            "query": clean_text(self.query),
            "start": self.start,
            "total": self.total,
            "millis": round(self.millis, 3),
            "hits": [hit.to_dict() for hit in self.hits],
        }


def search_backend(conf: Configuration) -> str:
    """Return which index answers queries: ``embedded`` or ``solr``.

    ``search.backend`` says it. Without it Solr does when documents go there and not to the embedded index.
    """
    backend = conf.get_trimmed("search.backend")
    if not backend:
        writers = chosen(conf)
        return "solr" if "indexer-solr" in writers and "indexer-embedded" not in writers else "embedded"
    if backend not in ("embedded", "solr"):
        raise ConfigurationError(f"search.backend is {backend!r}: write embedded or solr")
    return backend


def search(
    conf: Configuration, query: str, start: int = 0, rows: int = 10, searcher: EmbeddedSearcher | None = None
) -> SearchResult:
    """Answer a query: words, "phrases", ``field:value``, ``-minus``, AND, OR, parentheses.

    ``start`` and ``rows`` are held within 0–100,000 and 0–1,000. A ``searcher`` that is kept saves opening the index.
    Where :func:`search_backend` says so, the answer is Solr's (:mod:`nutch2py.indexer.solr_search`).
    Raise :class:`IndexingError` when there is no index, when it is empty, or when another version made it.
    """
    if searcher is None and search_backend(conf) == "solr":
        from nutch2py.indexer.solr_search import solr_search

        return solr_search(conf, query, start, rows)
    began = time.perf_counter()
    searcher = searcher or EmbeddedSearcher(conf)
    if not searcher.count():
        raise IndexingError(f"the index {searcher.folder.path} is empty: run nutch2py index first")
    start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
    total, found, terms = searcher.search(clean_text(query)[:10_000], start, rows)
    hits = []
    for score, fields in found:
        url = _first(fields, "url") or _first(fields, "id")
        hits.append(
            Hit(
                _first(fields, "id"),
                url,
                mark(searcher.analyzer, (_first(fields, "title") or url)[:500], terms),
                make_snippet(searcher.analyzer, _first(fields, "content"), terms),
                score,
                fields,
            )
        )
    return SearchResult(query, start, total, hits, (time.perf_counter() - began) * 1000)


def _first(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return str(value[0] if isinstance(value, list) else value)


def html(snippet: Snippet) -> str:
    """Return a snippet as HTML: marked words within ``<em>``, everything else escaped.

    >>> html(Snippet("a <b>", ((0, 1),)))
    '<em>a</em> &lt;b&gt;'
    """
    escaped: list[str] = []
    at = 0
    for start, end in snippet.marks:
        escaped += [_escape(snippet.text[at:start]), "<em>", _escape(snippet.text[start:end]), "</em>"]
        at = end
    return "".join([*escaped, _escape(snippet.text[at:])])


def _escape(text: str) -> str:
    from html import escape

    return escape(text)


def render(result: SearchResult, color: bool = False) -> str:
    """Return the result for a terminal: title, URL, snippet and score of each hit, marked words bold when ``color``.

    Control characters of page texts are left out, so that no page can write to the terminal what it wants.
    """
    if not result.hits:
        more = f"no hit from {result.start + 1} on, of {result.total}" if result.total else "no document matches"
        return f"{more} {_printable(result.query)!r} ({result.millis:.1f} ms)\n"
    bold, link, dim, plain = ("\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m") if color else ("", "", "", "")
    before, after = ("\x1b[1;33m", "\x1b[0m") if color else ("", "")
    first = result.start + 1
    noun = "document" if result.total == 1 else "documents"
    lines = [f"{result.total} {noun}, {first}–{first + len(result.hits) - 1} ({result.millis:.1f} ms)"]
    for number, hit in enumerate(result.hits, first):
        title = _safe(hit.title)
        snippet = _safe(hit.snippet)
        heading = title.marked(after + before, plain + bold) if color else title.text
        lines += [
            "",
            f"{bold}{number}. {heading}{plain}",
            f"   {link}{_printable(hit.url)}{plain}  {dim}{hit.score:.3f}{plain}",
        ]
        if snippet.text:
            lines.append(f"   {snippet.marked(before, after)}")
    return "\n".join(lines) + "\n"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _safe(snippet: Snippet) -> Snippet:
    return Snippet(_printable(snippet.text), snippet.marks)
