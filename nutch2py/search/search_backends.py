"""Search back ends of the search page, the API and the commands: embedded index, search server, Solr handler."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.engines.explanation_tree import format_tree
from nutch2py.search.engines.server_searcher import ServerSearcher
from nutch2py.search.engines.solr_handler_searcher import SolrHandlerSearcher
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.collapse import COLLAPSE_BY_HOST, NO_SKETCHES_MESSAGE, collapse_hits, read_collapse_mode
from nutch2py.search.results.facets import MAX_COUNTED_VALUES, FacetCounts, select_facets
from nutch2py.search.results.search_results import Hit, SearchResult
from nutch2py.search.search_service import (
    make_server_searcher,
    open_server_searcher,
    search,
    search_backend_name,
    search_with_cursor,
)
from nutch2py.search.suggestions.suggester import MAX_TITLE_SUGGESTIONS, Suggester, SuggestionCache, Suggestions

T = TypeVar("T")
_FEW_HITS = 3  # minimum number of hits without a spelling suggestion
_HANDLER_FACETS = ("host", "type", "lang")  # facets of a Solr without our term fields
_SUGGESTION_TTL = 60.0  # seconds; lifetime of cached suggestions of a server
COMMIT_CHECK_INTERVAL = 5.0
"""Seconds between checks for newer commits."""


class SearchBackend(Protocol):
    """An index for searches from several threads."""

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits. ``filters``: values by facet."""

    def search_with_cursor(
        self, query: str, options: SearchOptions, start: int, rows: int, cursor: str = ""
    ) -> tuple[SearchResult, str]:
        """Return hits from ``start`` or ``cursor`` on ("*": the first), and the next cursor, "" at the end."""

    def facets(self, query: str, filters: dict[str, str]) -> FacetCounts:
        """Return the values of facets that can filter the result."""

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document, None when it is not in the index."""

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a score as text; None when the query does not match the document."""

    def correct_query(self, query: str) -> str:
        """Return a corrected query with matches for a query with few hits; "" when there is none."""

    def suggest(self, prefix: str) -> Suggestions:
        """Return suggestions for the start of a query."""

    def count(self) -> int:
        """Return the number of documents."""


def needs_correction(result: SearchResult) -> bool:
    """Return whether a spelling suggestion may help: a word is unknown, or there are few hits."""
    return bool(result.unknown_words) or result.total < _FEW_HITS


def open_search_backend(conf: Configuration) -> SearchBackend:
    """Return the back end of :func:`nutch2py.search.search_service.search_backend_name`."""
    if search_backend_name(conf) == "embedded":
        return EmbeddedSearchBackend(conf)
    searcher = open_server_searcher(conf)
    return SolrHandlerBackend(conf) if searcher is None else ServerSearchBackend(conf, searcher)


class EmbeddedSearchBackend:
    """The embedded index. It is reopened after a rebuild, and shows new commits after some seconds."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._lock = threading.Lock()
        self._searcher: EmbeddedSearcher | None = None
        self._checked_at = 0.0
        self._suggester: Suggester | None = None
        self._current_commit: object = None

    def _open_searcher(self) -> EmbeddedSearcher:
        now = time.monotonic()
        if self._searcher is not None and now - self._checked_at > COMMIT_CHECK_INTERVAL:
            self._checked_at = now
            try:
                self._searcher.index_dir.check_version()
                # Read before the reload, which may load an even newer commit.
                commit = self._searcher.index_dir.current_commit()
                if commit != self._current_commit:
                    self._searcher.reload()
                    self._current_commit, self._suggester = commit, None  # other documents have other terms
            except (IndexingError, ValueError, OSError):
                self._searcher = self._current_commit = self._suggester = None
        if self._searcher is None:
            self._searcher, self._checked_at = EmbeddedSearcher(self.conf), now
        return self._searcher

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._lock:
            return search(self.conf, query, start, rows, self._open_searcher(), SearchOptions.from_filters(filters))

    def search_with_cursor(
        self, query: str, options: SearchOptions, start: int, rows: int, cursor: str = ""
    ) -> tuple[SearchResult, str]:
        """Return hits and the next cursor."""
        with self._lock:
            return search_with_cursor(self._open_searcher(), query, start, rows, options, cursor)

    def count(self) -> int:
        """Return the number of documents."""
        with self._lock:
            return self._open_searcher().count()

    def suggest(self, prefix: str) -> Suggestions:
        """Return completions of the last word, and titles."""
        with self._lock:
            searcher = self._open_searcher()
            self._suggester = self._suggester or Suggester(searcher)
            return self._suggester.suggest(prefix)

    def correct_query(self, query: str) -> str:
        """Return the query with unknown words replaced by similar ones."""
        with self._lock:
            return self._open_searcher().correct_query(query)

    def facets(self, query: str, filters: dict[str, str]) -> FacetCounts:
        """Return the values of all hits."""
        with self._lock:
            return select_facets(
                self._open_searcher().count_facets(query, SearchOptions.from_filters(filters)), filters
            )

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        with self._lock:
            return self._open_searcher().get_document(document_id)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return BM25's parts as an indented tree, and the weight."""
        with self._lock:
            searcher = self._open_searcher()
            explanation = searcher.explain(query, document_id)
            fields = searcher.get_document(document_id)
            freshness = searcher.explain_freshness(fields) if fields else ""
        if explanation is None or fields is None:
            return None
        tree = json.loads(explanation)
        powers = DocumentWeights(self.conf).powers
        weight = " · ".join(f"({name} {fields.get(name, '1')}) ^ {power:g}" for name, power in powers.items()) or "1"
        rule = f" × freshness\n{freshness}" if freshness else ""
        return f"score = relevance × weight{rule}\nweight: {weight}\nrelevance:\n" + "\n".join(format_tree(tree))


class _SearcherPool(Generic[T]):
    """Pool of searchers, one per concurrent request; ``create`` makes another when none is idle."""

    def __init__(self, create: Callable[[], T], first: T) -> None:
        self._create, self._idle_searchers = create, [first]

    @contextmanager
    def acquire(self) -> Iterator[T]:
        """Yield a searcher for exclusive use within the block."""
        try:
            searcher = self._idle_searchers.pop()
        except IndexError:
            searcher = self._create()
        try:
            yield searcher
        finally:
            self._idle_searchers.append(searcher)


class ServerSearchBackend:
    """A server with our term fields. Each concurrent request has its own connection."""

    def __init__(self, conf: Configuration, first: ServerSearcher) -> None:
        self.conf = conf
        self._pool = _SearcherPool(lambda: make_server_searcher(conf), first)
        self._suggestion_cache, self._cached_since = SuggestionCache(), time.monotonic()

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        with self._pool.acquire() as searcher:
            return search(self.conf, query, start, rows, searcher, SearchOptions.from_filters(filters))

    def search_with_cursor(
        self, query: str, options: SearchOptions, start: int, rows: int, cursor: str = ""
    ) -> tuple[SearchResult, str]:
        """Return hits and the next cursor."""
        with self._pool.acquire() as searcher:
            return search_with_cursor(searcher, query, start, rows, options, cursor)

    def count(self) -> int:
        """Return the number of documents."""
        with self._pool.acquire() as searcher:
            return searcher.count()

    def suggest(self, prefix: str) -> Suggestions:
        """Return completions of the last word, and titles."""
        if time.monotonic() - self._cached_since > _SUGGESTION_TTL:
            self._suggestion_cache, self._cached_since = SuggestionCache(), time.monotonic()
        with self._pool.acquire() as searcher:
            return Suggester(searcher, self._suggestion_cache).suggest(prefix)

    def correct_query(self, query: str) -> str:
        """Return the query with unknown words replaced by similar ones."""
        with self._pool.acquire() as searcher:
            return searcher.correct_query(query)

    def facets(self, query: str, filters: dict[str, str]) -> FacetCounts:
        """Return the values of all hits."""
        with self._pool.acquire() as searcher:
            return select_facets(searcher.count_facets(query, SearchOptions.from_filters(filters)), filters)

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        with self._pool.acquire() as searcher:
            return searcher.get_document(document_id)

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the server's explanation."""
        with self._pool.acquire() as searcher:
            return searcher.explain(query, document_id)


class SolrHandlerBackend:
    """A Solr collection without our term fields, searched by its handler; one connection per concurrent request."""

    def __init__(self, conf: Configuration) -> None:
        self._pool = _SearcherPool(lambda: SolrHandlerSearcher(conf), SolrHandlerSearcher(conf))
        self._collapse_mode = read_collapse_mode(conf)

    def search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        """Return hits."""
        return self._search_collapsed(query, filters, start, rows, self._collapse_mode)

    def _search(self, query: str, filters: dict[str, str], start: int, rows: int) -> SearchResult:
        if unknown := [name for name in filters if name not in _HANDLER_FACETS]:
            raise InputError(f"this Solr has no term fields, so no filter {unknown[0]}: run index -reindex")
        with self._pool.acquire() as searcher:
            return searcher.search(add_filters(query, filters), start, rows)._replace(query=query)

    def search_with_cursor(
        self, query: str, options: SearchOptions, start: int, rows: int, cursor: str = ""
    ) -> tuple[SearchResult, str]:
        """Return hits; the handler supports neither cursors nor sorting by date."""
        if cursor or options.newest_first or options.half_life_days:
            raise InputError(
                "this Solr has no term fields, so no cursor, no sorting by date and no freshness: run index -reindex"
            )
        filters = {{"site": "host"}.get(name, name): value for name, value in options.filters}
        mode = self._collapse_mode if options.collapse_mode is None else options.collapse_mode
        return self._search_collapsed(query, filters, start, rows, mode), ""

    def _search_collapsed(self, query: str, filters: dict[str, str], start: int, rows: int, mode: str) -> SearchResult:
        if mode != COLLAPSE_BY_HOST:
            result = self._search(query, filters, start, rows)
            return result._replace(note=NO_SKETCHES_MESSAGE) if mode else result
        started = time.perf_counter()

        def find(begin: int, number: int, _: tuple[str, ...]) -> tuple[int, list[Hit]]:
            result = self._search(query, filters, begin, number)
            return result.total, result.hits

        total, hits, collapsed_total, note = collapse_hits(find, mode, start, rows)
        return SearchResult(query, start, total, hits, (time.perf_counter() - started) * 1000, collapsed_total, note)

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._query_handler("*:*", rows=0)["response"]["numFound"])

    def facets(self, query: str, filters: dict[str, str]) -> FacetCounts:
        """Return the values of all hits."""
        parameters = {
            "facet.field": list(_HANDLER_FACETS),
            "facet.limit": MAX_COUNTED_VALUES,
            "facet.mincount": 1,
        }
        response = self._query_handler(add_filters(query, filters), rows=0, facet="true", **parameters)
        counts: dict[str, list[Any]] = response.get("facet_counts", {}).get("facet_fields", {})
        pairs = {name: [*zip(map(str, flat[::2]), flat[1::2], strict=False)] for name, flat in counts.items()}
        return select_facets(pairs, filters)

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document."""
        documents = self._query_handler("*:*", rows=1, fq="{!term f=id v=$id}", id=document_id)["response"]["docs"]
        document: dict[str, Any] | None = documents[0] if documents else None
        return document

    def explain(self, query: str, document_id: str) -> str | None:
        """Return Solr's explanation."""
        response = self._query_handler(query, rows=1, fq="{!term f=id v=$id}", id=document_id, debug="results")
        explanation: str | None = response.get("debug", {}).get("explain", {}).get(document_id)
        return explanation

    def suggest(self, prefix: str) -> Suggestions:
        """Return titles of Solr's hits for the input."""
        return _suggest_titles(self, prefix)

    def correct_query(self, query: str) -> str:
        """Return the correction of Solr's spell checker."""
        response = self._query_handler(query, rows=0, spellcheck="true", **{"spellcheck.collate": "true"})
        collations: list[Any] = response.get("spellcheck", {}).get("collations", [])
        return str(collations[1]) if len(collations) > 1 and isinstance(collations[1], str) else ""

    def _query_handler(self, query: str, **parameters: Any) -> dict[str, Any]:
        off = {"hl": "false", "facet": "false", "spellcheck": "false"}
        with self._pool.acquire() as searcher:
            return searcher.query_handler(query, **{**off, **parameters})


def _suggest_titles(index: SearchBackend, prefix: str) -> Suggestions:
    """Return the titles of the hits for the input."""
    hits = index.search(prefix, {}, 0, MAX_TITLE_SUGGESTIONS).hits if prefix.strip() else []
    return Suggestions([], [(hit.title.text, hit.url) for hit in hits])


def add_filters(query: str, filters: dict[str, str], host_field: str = "host") -> str:
    """Return the query with its filters as ``+field:"value"``.

    >>> add_filters("a OR b", {"lang": "zh"})
    '(a OR b) +lang:"zh"'
    """
    if not filters:
        return query
    parts = [f"+{host_field if name == 'host' else name}:{quote_value(value)}" for name, value in filters.items()]
    return " ".join([f"({query})", *parts])


def quote_value(value: str) -> str:
    """Return a value in quotes, without quotes and backslashes."""
    return '"' + value.replace("\\", "").replace('"', "") + '"'
