"""IsolatingSearcher: runs cheap searches in the server's process and expensive ones in a worker.

Threads of one Python process share its interpreter lock, so that one expensive search would delay all others. Both
processes call the same functions on the same index, so the results are equal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher, ExpensivePlanError
from nutch2py.search.engines.embedded_searcher_manager import EmbeddedSearcherManager
from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.query.search_cost import estimate_planning
from nutch2py.search.results.search_results import SearchResult
from nutch2py.search.search_worker.search_messages import SearchCall, SearchMethod
from nutch2py.search.search_worker.search_metrics import SERVER, SearchMetrics
from nutch2py.search.search_worker.search_worker_pool import SearchWorkerPool
from nutch2py.search.suggestions.suggester import Suggestions
from nutch2py.support.invariants import not_none

T = TypeVar("T")


class IsolatingSearcherManager:
    """Searchers of the embedded index for the threads of a server. ``metrics``: counts their searches."""

    def __init__(self, conf: Configuration, metrics: SearchMetrics) -> None:
        self._searchers, self.metrics = EmbeddedSearcherManager(conf), metrics
        self._pool = SearchWorkerPool(conf, metrics)

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the running workers."""
        return self._pool.worker_pids

    @contextmanager
    def acquire(self) -> Iterator[IsolatingSearcher]:
        """Yield a searcher for one response."""
        with self._searchers.acquire() as searcher:
            yield IsolatingSearcher(searcher, self._pool, self.metrics)

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


class IsolatingSearcher:
    """Searches for one response. After an expensive search, all calls run in the worker."""

    def __init__(self, searcher: EmbeddedSearcher, pool: SearchWorkerPool, metrics: SearchMetrics) -> None:
        self._searcher, self._pool, self._metrics = searcher, pool, metrics
        self._is_expensive = False

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
        """Run a query."""

        def search() -> SearchResult:
            planned = self._searcher.plan_cheap_search(query, rows, options)
            return self._searcher.search(
                query, start, rows, options, cursor=cursor, with_facets=with_facets, planned=planned
            )

        call = SearchCall(SearchMethod.SEARCH, query, start, rows, options, cursor, with_facets)
        return self._run(call, search, lambda: not_none(self._pool.run(call).result, "result"))

    def explain(self, query: str, document_id: str) -> str | None:
        """Return the explanation of a score as text; None when the query does not find the document."""
        call = SearchCall(SearchMethod.EXPLAIN, query, document_id=document_id)
        return self._run(call, lambda: self._searcher.explain(query, document_id), lambda: self._pool.run(call).text)

    def correct_query(self, query: str) -> str:
        """Return a corrected query with matches for a query with few hits; "" when there is none."""
        call = SearchCall(SearchMethod.CORRECT_QUERY, query)
        return self._run(call, lambda: self._searcher.correct_query(query), lambda: self._pool.run(call).text or "")

    def suggest(self, prefix: str) -> Suggestions:
        """Return suggestions for the start of a query."""
        call = SearchCall(SearchMethod.SUGGEST, prefix)
        return self._run(
            call,
            lambda: self._searcher.suggest(prefix),
            lambda: not_none(self._pool.run(call).suggestions, "suggestions"),
        )

    def get_document(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of a document, None when it is not in the index."""
        return self._searcher.get_document(document_id)

    def count(self) -> int:
        """Return the number of documents."""
        return self._searcher.count()

    def close(self) -> None:
        """Nothing to close."""

    def _run(self, call: SearchCall, run_here: Callable[[], T], run_in_worker: Callable[[], T]) -> T:
        if not self._is_expensive and estimate_planning(call.query) <= self._searcher.expensive_millis:
            started, outcome = time.monotonic(), "error"
            try:
                result = run_here()
                outcome = "ok"
                return result
            except ExpensivePlanError:
                outcome = ""
            finally:
                if outcome:
                    self._metrics.count_search(SERVER, outcome, time.monotonic() - started)
        self._is_expensive = True
        return run_in_worker()
