"""Searches the configured index; used by the command, the search page and the REST service."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, InputError
from nutch2py.indexer.index_writers import enabled_writers
from nutch2py.records.document import clean_text
from nutch2py.search.engines.elastic_engine import ElasticEngine
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.engines.server_searcher import EngineResult, ServerSearcher
from nutch2py.search.engines.solr_engine import SolrEngine
from nutch2py.search.engines.solr_handler_searcher import search_solr_handler
from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.results.collapse import collapse_hits
from nutch2py.search.results.search_results import MAX_ROWS, MAX_START, Hit, ScoredDocument, SearchResult, first_value
from nutch2py.search.results.snippet import Snippet, highlight_text, make_snippet

if TYPE_CHECKING:
    from nutch2py.backends.analysis.analyzer import Analyzer


def search_backend_name(conf: Configuration) -> str:
    """Return the name of the index for queries: ``embedded``, ``solr`` or ``elastic`` (OpenSearch, Elasticsearch).

    It is the value of ``search.backend``, or the first of embedded, Solr and search server that documents are sent to.
    """
    backend = conf.get_trimmed("search.backend")
    if not backend:
        writers = enabled_writers(conf)
        names = (("indexer-embedded", "embedded"), ("indexer-solr", "solr"), ("indexer-elastic", "elastic"))
        return next((name for writer, name in names if writer in writers), "embedded")
    backend = {"opensearch": "elastic"}.get(backend, backend)
    if backend not in ("embedded", "solr", "elastic"):
        raise ConfigurationError(f"search.backend is {backend!r}: write embedded, solr or elastic")
    return backend


def make_server_searcher(conf: Configuration) -> ServerSearcher:
    """Return a searcher of the search server for the back end ``elastic``, or else of Solr."""
    return ServerSearcher(conf, ElasticEngine(conf) if search_backend_name(conf) == "elastic" else SolrEngine(conf))


def open_server_searcher(conf: Configuration) -> ServerSearcher | None:
    """Return a searcher of Solr or the search server; None for a Solr collection without our term fields.

    Raise :class:`IndexingError` when a search server has no documents with our term fields.
    """
    searcher = make_server_searcher(conf)
    if search_backend_name(conf) == "elastic":
        searcher.require_ready()
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
    options: SearchOptions = DEFAULT_SEARCH_OPTIONS,
) -> SearchResult:
    """Run a query: words, "phrases", ``field:value``, ``-minus``, AND, OR, parentheses.

    Args:
        conf: The configuration; :func:`search_backend_name` names the index.
        query: The query.
        start: Number of hits to skip, limited to 0–100,000.
        rows: Number of hits, limited to 0–1,000.
        searcher: An open searcher to reuse.
        options: Filters, order and collapsing.

    Raises:
        IndexingError: The index does not exist, is empty, or is of an incompatible version.
    """
    if searcher is None and search_backend_name(conf) != "embedded":
        server = open_server_searcher(conf)
        if server is None:
            return search_solr_handler(conf, query, start, rows)
        with closing(server):
            return search(conf, query, start, rows, server, options)
    started = time.perf_counter()
    searcher = searcher or EmbeddedSearcher(conf)
    if isinstance(searcher, EmbeddedSearcher) and not searcher.count():
        raise IndexingError(f"the index {searcher.index_dir.path} is empty: run nutch2py index first")
    start, rows = min(max(start, 0), MAX_START), min(max(rows, 0), MAX_ROWS)
    result, _ = search_with_cursor(searcher, query, start, rows, options)
    return result._replace(millis=(time.perf_counter() - started) * 1000)


def search_with_cursor(
    searcher: EmbeddedSearcher | ServerSearcher,
    query: str,
    start: int,
    rows: int,
    options: SearchOptions = DEFAULT_SEARCH_OPTIONS,
    cursor: str = "",
) -> tuple[SearchResult, str]:
    """Return hits from ``start`` or ``cursor`` on ("*": the first), and the next cursor, "" at the end."""
    started = time.perf_counter()
    text, next_cursor = clean_text(query)[:10_000], ""
    mode = searcher.collapse_mode if options.collapse_mode is None else options.collapse_mode
    terms: frozenset[str] = frozenset()
    result = EngineResult(0, [])
    if mode and not cursor:

        def find(begin: int, number: int, excluded: tuple[str, ...]) -> tuple[int, list[ScoredDocument]]:
            nonlocal terms, result
            result, terms = searcher.search_with_cursor(
                text, begin, number, options._replace(excluded_sketches=excluded)
            )
            return result.total, result.hits

        total, best, collapsed_total, note = collapse_hits(find, mode, start, rows)
    else:
        result, terms = searcher.search_with_cursor(text, start, rows, options, cursor)
        total, best, collapsed_total, note, next_cursor = result.total, result.hits, None, "", result.cursor
    hits = [highlight_hit(searcher.analyzer, each, terms) for each in best]
    found = SearchResult(
        query,
        start,
        total,
        hits,
        (time.perf_counter() - started) * 1000,
        collapsed_total,
        note,
        result.is_relaxed,
        result.unknown_words,
        result.corrected_query,
    )
    return found, next_cursor


def highlight_hit(analyzer: Analyzer, document: ScoredDocument, terms: Iterable[str]) -> Hit:
    """Return the hit of a document, with highlighted matches."""
    fields = document.fields
    url = first_value(fields, "url") or first_value(fields, "id")
    lang = first_value(fields, "lang") or "en"
    title = highlight_text(analyzer, (first_value(fields, "title") or url)[:500], terms, lang)
    snippet = _make_hit_snippet(analyzer, fields, terms, lang)
    return Hit(
        first_value(fields, "id"),
        url,
        title,
        snippet,
        document.score,
        fields,
        document.sketch,
        document.more,
        document.others,
    )


def _make_hit_snippet(analyzer: Analyzer, fields: dict[str, Any], terms: Iterable[str], lang: str) -> Snippet:
    """Return passages with the terms, preferably of the main text, without menus."""
    title = first_value(fields, "title")
    main = first_value(fields, "maintext")
    if main:
        snippet = make_snippet(analyzer, main, terms, lang=lang, title=title)
        if snippet.highlights:
            return snippet
    return make_snippet(analyzer, first_value(fields, "content"), terms, lang=lang, title=title)
