"""Entries of the search log: searches with their shown results, and clicks on results."""

from __future__ import annotations

import secrets
from typing import Literal

from msgspec import Struct

from nutch2py.support.clock import now_ms

SearchSource = Literal["page", "api"]
"""Where a search came from: the search page, or the search API."""
MAX_QUERY_LENGTH = 300
"""Characters of a query that are logged."""
_MAX_IDS_LENGTH = 8_000
"""Characters of all logged document ids of an entry: ids are URLs, which can be long."""
_MAX_TIME = 9_999_999_999_999


class LoggedSearch(Struct, frozen=True, kw_only=True):
    """A page of results that was shown.

    Attributes:
        query: The query, shortened to 300 characters.
        total: Number of matching documents.
        start: Number of results before the first shown one; 0 for the first page of a query.
        shown: Number of shown results.
        ids: Document ids of the shown results in order; the last ones are omitted when they are too long together.
        source: Search page or search API.
        session: Hash of the session, "" without one.
    """

    query: str
    total: int
    start: int
    shown: int
    ids: list[str]
    source: SearchSource = "page"
    session: str = ""


class LoggedClick(Struct, frozen=True, kw_only=True):
    """A click on a result.

    Attributes:
        position: Position of the result, 1 for the first of all pages.
        dwell_ms: Time until the user came back to the results, in ms; None if the user did not.
        session: Hash of the session, "" without one.
    """

    position: int
    dwell_ms: int | None = None
    session: str = ""


def new_search_id() -> str:
    """Return an id for a search: later ones are smaller, so that a scan returns the newest first."""
    return f"{time_prefix(now_ms())}-{secrets.token_hex(6)}"


def time_prefix(time_ms: int) -> str:
    """Return the start of the ids of a time in ms since 1970.

    >>> time_prefix(2) < time_prefix(1)
    True
    """
    return f"{_MAX_TIME - time_ms:013d}"


def search_time(search_id: str) -> int:
    """Return the time of a search in ms since 1970.

    >>> search_time(f"{time_prefix(5)}-00")
    5
    """
    return _MAX_TIME - int(search_id[:13])


def shorten_ids(ids: list[str]) -> list[str]:
    """Return the first ids that have at most 8,000 characters together."""
    kept, length = list[str](), 0
    for each in ids:
        length += len(each)
        if length > _MAX_IDS_LENGTH:
            break
        kept.append(each)
    return kept
