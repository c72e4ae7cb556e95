"""Searching the index: what the command, the search page and the REST service call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import ConfigurationError, IndexingError, InputError
from nutch2py.indexer.index_writers import chosen
from nutch2py.search.collapse import collapsed
from nutch2py.search.elastic_engine import ElasticEngine
from nutch2py.search.plan import NOT_NARROWED, Narrowed
from nutch2py.search.results import MAX_ROWS, MAX_START, Found, Hit, SearchResult, first_of
from nutch2py.search.searcher import EmbeddedSearcher
from nutch2py.search.server_searcher import ServerSearcher
from nutch2py.search.snippet import Snippet, make_snippet, mark
from nutch2py.search.solr_engine import SolrEngine
from nutch2py.search.solr_search import solr_search

if TYPE_CHECKING:
    from nutch2py.backends.analysis import Analyzer


def search_backend(conf: Configuration) -> str:
    """Return which index answers queries: ``embedded``, ``solr`` or ``elastic`` (OpenSearch, Elasticsearch).

    ``search.backend`` says it. Without it Solr does when documents go there and not to the embedded index, and the
    search server when they go there and to none of these.
    """
    backend = conf.get_trimmed("search.backend")
    if not backend:
        writers = chosen(conf)
        names = (("indexer-embedded", "embedded"), ("indexer-solr", "solr"), ("indexer-elastic", "elastic"))
        return next((name for writer, name in names if writer in writers), "embedded")
    backend = {"opensearch": "elastic"}.get(backend, backend)
    if backend not in ("embedded", "solr", "elastic"):
        raise ConfigurationError(f"search.backend is {backend!r}: write embedded, solr or elastic")
    return backend


def searcher_of(conf: Configuration) -> ServerSearcher:
    """Return what asks the search server, where :func:`search_backend` names it, Solr elsewhere."""
    return ServerSearcher(conf, ElasticEngine(conf) if search_backend(conf) == "elastic" else SolrEngine(conf))


def server_searcher(conf: Configuration) -> ServerSearcher | None:
    """Return what asks Solr or the search server; None for a Solr collection that has only been sent other fields.

    Raise :class:`IndexingError` when a search server has no documents with our words.
    """
    searcher = searcher_of(conf)
    if search_backend(conf) == "elastic":
        searcher.demand_ready()
        return searcher
    try:
        ready = searcher.is_ready()
    except InputError:  # no field terms_analysis
        ready = False
    if ready:
        return searcher
    searcher.close()
    return None


def search(
    conf: Configuration,
    query: str,
    start: int = 0,
    rows: int = 10,
    searcher: EmbeddedSearcher | ServerSearcher | None = None,
    narrowed: Narrowed = NOT_NARROWED,
) -> SearchResult:
    """Answer a query: words, "phrases", ``field:value``, ``-minus``, AND, OR, parentheses.

    ``start`` and ``rows`` are held within 0–100,000 and 0–1,000. A ``searcher`` that is kept saves opening the index.
    Where :func:`search_backend` says so, a server is asked.
    Raise :class:`IndexingError` when there is no index, when it is empty, or when another version made it.
    """
    if searcher is None and search_backend(conf) != "embedded":
        server = server_searcher(conf)
        if server is None:
            return solr_search(conf, query, start, rows)
        with closing(server):
            return search(conf, query, start, rows, server, narrowed)
    began = time.perf_counter()
    searcher = searcher or EmbeddedSearcher(conf)
    if isinstance(searcher, EmbeddedSearcher) and not searcher.count():
        raise IndexingError(f"the index {searcher.folder.path} is empty: run nutch2py index first")
    start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
    result, _ = walk(searcher, query, start, rows, narrowed)
    return result._replace(millis=(time.perf_counter() - began) * 1000)


def walk(
    searcher: EmbeddedSearcher | ServerSearcher,
    query: str,
    start: int,
    rows: int,
    narrowed: Narrowed = NOT_NARROWED,
    cursor: str = "",
) -> tuple[SearchResult, str]:
    """Return hits from ``start`` or a ``cursor`` on ("*": the first), and the cursor behind them, "" at the end."""
    began = time.perf_counter()
    asked, following = clean_text(query)[:10_000], ""
    by = searcher.collapse if narrowed.collapse is None else narrowed.collapse
    terms: frozenset[str] = frozenset()
    if by and not cursor:

        def find(begin: int, number: int, without: tuple[str, ...]) -> tuple[int, list[Found]]:
            nonlocal terms
            found, terms = searcher.walk(asked, begin, number, narrowed._replace(without=without))
            return found.total, found.hits

        total, best, shown, note = collapsed(find, by, start, rows)
    else:
        found, terms = searcher.walk(asked, start, rows, narrowed, cursor)
        total, best, shown, note, following = found.total, found.hits, None, "", found.cursor
    hits = [hit_of(searcher.analyzer, each, terms) for each in best]
    return SearchResult(query, start, total, hits, (time.perf_counter() - began) * 1000, shown, note), following


def hit_of(analyzer: Analyzer, found: Found, terms: Iterable[str]) -> Hit:
    """Return a document that was found, with the words marked that it was found by."""
    fields = found.fields
    url = first_of(fields, "url") or first_of(fields, "id")
    lang = first_of(fields, "lang") or "en"
    title = mark(analyzer, (first_of(fields, "title") or url)[:500], terms, lang)
    snippet = _snippet(analyzer, fields, terms, lang)
    return Hit(first_of(fields, "id"), url, title, snippet, found.score, fields, found.near, found.more, found.others)


def _snippet(analyzer: Analyzer, fields: dict[str, Any], terms: Iterable[str], lang: str) -> Snippet:
    """Return words around the terms, out of the main text when they stand in it: menus say little of a page."""
    title = first_of(fields, "title")
    main = first_of(fields, "maintext")
    if main:
        found = make_snippet(analyzer, main, terms, lang=lang, title=title)
        if found.marks:
            return found
    return make_snippet(analyzer, first_of(fields, "content"), terms, lang=lang, title=title)
