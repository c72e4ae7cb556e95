"""Stores the search log in the derived table: one row per search and one per clicked result, newest search first.

The key of a search is ``search/log/`` and its id. The key of a click adds the position, so that a scan returns a search
followed by its clicks, and a repeated click replaces its row: a search has at most one row per shown result.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import DerivedRow
from nutch2py.search.search_log.logged_search import LoggedClick, LoggedSearch, search_time, time_prefix
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.table import DataStore, KeyRange, TableQuery, prefix_range
from nutch2py.table.store_factory import open_store_without_wait

SEARCH_LOG_PREFIX = "search/log/"
_DATA = frozenset({DerivedRow.data})
DELETES_PER_BATCH = 10_000
"""Old rows that are deleted in one batch."""
T = TypeVar("T")


class SearchWithClicks(NamedTuple):
    """A logged search, its time in ms since 1970, and its clicks by position."""

    search: LoggedSearch
    time: int
    clicks: list[LoggedClick]


class LogRow(NamedTuple):
    """A row to write. ``position``: the clicked position, 0 for the search itself."""

    search_id: str
    position: int
    entry: LoggedSearch | LoggedClick

    @property
    def key(self) -> str:
        """The row key."""
        key = SEARCH_LOG_PREFIX + self.search_id
        return f"{key}/{self.position:06d}" if self.position else key


def open_log_store(conf: Configuration) -> DataStore[DerivedRow]:
    """Return the derived table of a crawl. While it is unavailable, entries are dropped with a warning."""
    return open_store_without_wait(conf, DerivedRow)


def write_rows(store: DataStore[DerivedRow], rows: list[LogRow]) -> None:
    """Write rows durably."""
    with store.batch() as batch:
        for each in rows:
            row = DerivedRow()
            row.data = msgspec.json.encode(each.entry)
            batch.put(each.key, row)


def read_searches(store: DataStore[DerivedRow], since: int = 0, limit: int | None = None) -> Iterator[SearchWithClicks]:
    """Yield searches, newest first.

    Args:
        store: The derived table.
        since: Time in ms since 1970 of the oldest search.
        limit: Maximum number of searches.
    """
    if store.exists():
        yield from islice(_group_rows(store, since), limit)


def _group_rows(store: DataStore[DerivedRow], since: int) -> Iterator[SearchWithClicks]:
    # "." follows "-", so that searches of the time itself are included
    key_range = KeyRange(SEARCH_LOG_PREFIX, f"{SEARCH_LOG_PREFIX}{time_prefix(since)}.")
    current: SearchWithClicks | None = None
    current_id = ""
    for key, row in store.scan(TableQuery(_DATA, key_range)):
        search_id, _, position = key.removeprefix(SEARCH_LOG_PREFIX).partition("/")
        if not position:
            if current is not None:
                yield current
            search, current_id = _decode(row, LoggedSearch), search_id
            current = None if search is None else SearchWithClicks(search, search_time(search_id), [])
        elif current is not None and search_id == current_id and (click := _decode(row, LoggedClick)) is not None:
            current.clicks.append(click)
    if current is not None:
        yield current


def _decode(row: DerivedRow, entry_type: type[T]) -> T | None:
    """Return the entry of a row; None for one of a later version."""
    try:
        return msgspec.json.decode(row.data or b"", type=entry_type)
    except msgspec.MsgspecError:
        return None


def delete_old_rows(store: DataStore[DerivedRow], keep_days: float, max_rows: int) -> int:
    """Delete rows older than ``keep_days``, and all but the newest ``max_rows``; return the number of deleted rows."""
    log_range = prefix_range(SEARCH_LOG_PREFIX)
    oldest_key = f"{SEARCH_LOG_PREFIX}{time_prefix(now_ms() - int(keep_days * MS_PER_DAY))}."
    deleted = 0
    while True:
        expired = (key for number, key in enumerate(store.keys(log_range)) if number >= max_rows or key >= oldest_key)
        keys = list(islice(expired, DELETES_PER_BATCH))
        with store.batch() as batch:
            for key in keys:
                batch.delete(key)
        deleted += len(keys)
        if len(keys) < DELETES_PER_BATCH:
            return deleted
