"""Search back ends of the page, the API and the commands: embedded index, search server, Solr with a plain schema.

A back end is a searcher of :mod:`nutch2py.search.engines`. A server of many requests takes searchers from the one
:class:`SearcherManager` of its process: one index is opened, and all of a response is from one commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, Protocol

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.indexer.index_writers import enabled_writers
from nutch2py.search.engines.elastic_searcher import ElasticSearcher
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.engines.embedded_searcher_manager import EmbeddedSearcherManager
from nutch2py.search.engines.server_searcher import ServerSearcher
from nutch2py.search.engines.solr_edismax_searcher import SolrEdismaxSearcher
from nutch2py.search.engines.solr_searcher import SolrSearcher
from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.results.search_results import SearchResult
from nutch2py.search.search_worker.isolating_searcher import IsolatingSearcherManager
from nutch2py.search.search_worker.search_metrics import SearchMetrics
from nutch2py.search.suggestions.suggester import Suggestions

_FEW_HITS = 3  # minimum number of hits without a spelling suggestion


class SearchBackend(Protocol):
    """A searcher of an index."""

    def search(
        self,
        query: str,
        start: int = 0,
        rows: int = 10,
        options: SearchOptions = DEFAULT_SEARCH_OPTIONS,
        *,
        cursor: str = "",
        with_facets: bool = False,
    ) -> SearchResult:
        """Return hits, and with ``with_facets`` the values of facets among all of them.

        ``cursor``: continue after the hits of an earlier request instead of from ``start``; "*": from the first hit.
        """

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

    def close(self) -> None:
        """Close the connections."""


def needs_correction(result: SearchResult) -> bool:
    """Return whether a spelling suggestion may help: a word is unknown, or there are few hits."""
    return bool(result.unknown_words) or result.total < _FEW_HITS


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


def open_search_backend(conf: Configuration) -> SearchBackend:
    """Return a searcher of the index of :func:`search_backend_name`.

    Raise :class:`IndexingError` when the embedded index does not exist, or a search server has no documents with our
    term fields. A Solr collection without them is searched by its handler.
    """
    if search_backend_name(conf) == "embedded":
        return EmbeddedSearcher(conf)
    searcher = make_server_searcher(conf)
    if isinstance(searcher, ElasticSearcher):
        searcher.require_documents()
        return searcher
    try:
        if searcher.is_ready():
            return searcher
    except InputError:  # no field terms_analysis
        pass
    searcher.close()
    return SolrEdismaxSearcher(conf)


def make_server_searcher(conf: Configuration) -> ServerSearcher:
    """Return a searcher of the search server for the back end ``elastic``, or else of Solr."""
    return ElasticSearcher(conf) if search_backend_name(conf) == "elastic" else SolrSearcher(conf)


class SearcherManager(Protocol):
    """Searchers for the threads of a process."""

    def acquire(self) -> AbstractContextManager[SearchBackend]:
        """Yield a searcher for one response, within the block."""

    def close(self) -> None:
        """End what serves the searchers; calls that are running may fail."""


def open_searcher_manager(conf: Configuration, metrics: SearchMetrics | None = None) -> SearcherManager:
    """Return the searchers of the index of :func:`search_backend_name`; they open it at the first request.

    ``metrics`` counts the searches of the embedded index.
    """
    if search_backend_name(conf) != "embedded":
        return ServerSearcherPool(conf)
    if conf.get_int("search.worker.processes", 1) < 1:
        return EmbeddedSearcherManager(conf)
    return IsolatingSearcherManager(conf, metrics or SearchMetrics())


class ServerSearcherPool:
    """Pool of searchers of a server, one per concurrent request, since each has its own connection."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._idle_searchers: list[SearchBackend] = []

    @contextmanager
    def acquire(self) -> Iterator[SearchBackend]:
        """Yield a searcher for exclusive use; open another when none is idle."""
        try:
            searcher = self._idle_searchers.pop()
        except IndexError:
            searcher = open_search_backend(self._conf)
        try:
            yield searcher
        finally:
            self._idle_searchers.append(searcher)

    def close(self) -> None:
        """Close the connections of idle searchers."""
        while self._idle_searchers:
            self._idle_searchers.pop().close()


def search(
    conf: Configuration,
    query: str,
    start: int = 0,
    rows: int = 10,
    searcher: SearchBackend | None = None,
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
    if searcher is not None:
        return searcher.search(query, start, rows, options)
    with closing(open_search_backend(conf)) as opened:
        return opened.search(query, start, rows, options)
