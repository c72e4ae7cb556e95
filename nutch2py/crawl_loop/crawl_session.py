"""What the command ``crawl`` holds of a table from its first job to its last: its lock, and a note of what is left.

Each job of it takes its own lock beside that; between them another job may run, but no other ``crawl``. The note,
``run/unranked`` of the derived table, says that pages were fetched whose ranks are yet to be made: no state of a batch
tells that once the batch is done. Another, ``run/indexed``, says which index had all documents at the end, and how
many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.job_context import CrawlTables, open_job
from nutch2py.jobs.locking.lock_scopes import CRAWL
from nutch2py.records.webpage import DerivedRow
from nutch2py.table import KeyRange

_UNRANKED_KEY = "run/unranked"
_INDEXED_KEY = "run/indexed"


class CrawlSession:
    """A crawl that is at work. :meth:`check_lock` raises LockLostError when another has taken its place."""

    def __init__(self, tables: CrawlTables) -> None:
        self._batch_lists, self.check_lock = tables.batch_lists, tables.check_lock

    def has_unranked_pages(self) -> bool:
        """Tell whether pages were fetched since ranks were made."""
        return self._batch_lists.store.get(_UNRANKED_KEY, {DerivedRow.data}) is not None

    def mark_unranked(self) -> None:
        """Note that ranks are to be made when the rounds are over; durable when it returns."""
        entry = DerivedRow()
        entry.data = b"1"
        with self._batch_lists.store.batch(self.check_lock) as batch:
            batch.put(_UNRANKED_KEY, entry)

    def get_indexed_count(self, index: str) -> int | None:
        """Return how many documents an index had when a crawl ended last; None: it was another one, or none."""
        entry = self._batch_lists.store.get(_INDEXED_KEY, {DerivedRow.data})
        name, _, documents = ((entry.data if entry is not None else None) or b"").decode().partition(" ")
        return int(documents) if name == index else None

    def set_indexed_count(self, index: str, documents: int) -> None:
        """Note which index has all documents, and how many; ``index``: a name of it without blanks."""
        entry = DerivedRow()
        entry.data = f"{index} {documents}".encode()
        with self._batch_lists.store.batch(self.check_lock) as batch:
            batch.put(_INDEXED_KEY, entry)

    def clear_unranked(self) -> None:
        """Note that all ranks are made, and the index knows them."""
        self.check_lock()
        self._batch_lists.delete_range(KeyRange(_UNRANKED_KEY, f"{_UNRANKED_KEY}\x00"))


@contextmanager
def open_crawl_session(conf: Configuration) -> Iterator[CrawlSession]:
    """Hold the lock of ``crawl`` within the block; the tables are made when there are none.

    Raises :class:`nutch2py.errors.LockedError` beside another one.
    """
    with open_job(conf, CRAWL, creates_table=True) as tables:
        yield CrawlSession(tables)
