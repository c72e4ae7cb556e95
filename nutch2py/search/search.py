"""Searching the index: what the command, the search page and the REST service call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import chosen
from nutch2py.search.plan import NOT_NARROWED, Narrowed
from nutch2py.search.results import MAX_ROWS, MAX_START, Hit, SearchResult
from nutch2py.search.searcher import EmbeddedSearcher
from nutch2py.search.snippet import Snippet, make_snippet, mark
from nutch2py.search.solr_search import solr_search

if TYPE_CHECKING:
    from nutch2py.backends.analysis import Analyzer


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
    conf: Configuration,
    query: str,
    start: int = 0,
    rows: int = 10,
    searcher: EmbeddedSearcher | None = None,
    narrowed: Narrowed = NOT_NARROWED,
) -> SearchResult:
    """Answer a query: words, "phrases", ``field:value``, ``-minus``, AND, OR, parentheses.

    ``start`` and ``rows`` are held within 0–100,000 and 0–1,000. A ``searcher`` that is kept saves opening the index.
    Where :func:`search_backend` says so, the answer is Solr's (:mod:`nutch2py.search.solr_search`).
    Raise :class:`IndexingError` when there is no index, when it is empty, or when another version made it.
    """
    if searcher is None and search_backend(conf) == "solr":
        return solr_search(conf, query, start, rows)
    began = time.perf_counter()
    searcher = searcher or EmbeddedSearcher(conf)
    if not searcher.count():
        raise IndexingError(f"the index {searcher.folder.path} is empty: run nutch2py index first")
    start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
    total, found, terms = searcher.search(clean_text(query)[:10_000], start, rows, narrowed)
    hits = [hit_of(searcher.analyzer, score, fields, terms) for score, fields in found]
    return SearchResult(query, start, total, hits, (time.perf_counter() - began) * 1000)


def hit_of(analyzer: Analyzer, score: float, fields: dict[str, Any], terms: Iterable[str]) -> Hit:
    """Return a document that was found, with the words marked that it was found by."""
    url = _first(fields, "url") or _first(fields, "id")
    lang = _first(fields, "lang") or "en"
    title = mark(analyzer, (_first(fields, "title") or url)[:500], terms, lang)
    return Hit(_first(fields, "id"), url, title, _snippet(analyzer, fields, terms, lang), score, fields)


def _snippet(analyzer: Analyzer, fields: dict[str, Any], terms: Iterable[str], lang: str) -> Snippet:
    """Return words around the terms, out of the main text when they stand in it: menus say little of a page."""
    title = _first(fields, "title")
    main = _first(fields, "maintext")
    if main:
        found = make_snippet(analyzer, main, terms, lang=lang, title=title)
        if found.marks:
            return found
    return make_snippet(analyzer, _first(fields, "content"), terms, lang=lang, title=title)


def _first(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return str(value[0] if isinstance(value, list) and value else value or "")
