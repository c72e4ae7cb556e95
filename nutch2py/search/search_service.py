"""One query to the configured index; used by commands and programs."""

from __future__ import annotations

from contextlib import closing

from nutch2py.conf.configuration import Configuration
from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.results.search_results import SearchResult
from nutch2py.search.search_backends import SearchBackend, open_search_backend


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
        conf: The configuration; :func:`nutch2py.search.search_backends.search_backend_name` names the index.
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
