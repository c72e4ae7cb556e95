"""Messages between :mod:`nutch2py.search.search_worker.search_worker` and the server's process."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from nutch2py.search.query.query_plan import DEFAULT_SEARCH_OPTIONS, SearchOptions
from nutch2py.search.results.search_results import SearchResult
from nutch2py.search.suggestions.suggester import Suggestions

MAX_RESPONSE_BYTES = 1 << 30
"""A thousand hits with long texts."""


class SearchMethod(StrEnum):
    """A method of a searcher."""

    SEARCH = "search"
    EXPLAIN = "explain"
    CORRECT_QUERY = "correct_query"
    SUGGEST = "suggest"


class SearchCall(msgspec.Struct, array_like=True):
    """A call of a searcher's method.

    ``cpu_seconds``, ``wall_seconds``: limits in CPU time of the worker and by the clock.
    """

    method: SearchMethod
    query: str
    start: int = 0
    rows: int = 10
    options: SearchOptions = DEFAULT_SEARCH_OPTIONS
    cursor: str = ""
    with_facets: bool = False
    document_id: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class SearchReply(msgspec.Struct, array_like=True):
    """Result of one call, in the field of its type.

    ``error``: class, message and public message of an error that the query or the index caused; ``traceback``: of any
    other one, which is a bug.
    """

    result: SearchResult | None = None
    text: str | None = None
    suggestions: Suggestions | None = None
    error: tuple[str, str, str] | None = None
    traceback: str = ""
