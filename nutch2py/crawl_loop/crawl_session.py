"""State that the command ``crawl`` keeps in a table from its first job to its last: its lock, and notes for resuming.

Each of its jobs takes its own lock in addition. Between them another job may run, but no other ``crawl``. The note
``run/unranked`` in the derived table means that pages were fetched since the last ranking; the record of a finished
batch does not show this. The note ``run/indexed`` names the index that had all documents at the end, and their number.
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
    """A running crawl. :meth:`check_lock` raises LockLostError when another one has taken over its lock."""

    def __init__(self, tables: CrawlTables) -> None:
        self._batch_lists, self.check_lock = tables.batch_lists, tables.check_lock

    def has_unranked_pages(self) -> bool:
        """Return whether pages were fetched since the last ranking."""
        return self._batch_lists.store.get(_UNRANKED_KEY, {DerivedRow.data}) is not None

    def mark_unranked(self) -> None:
        """Note that a ranking is due after the rounds. The note is durable on return."""
        entry = DerivedRow()
        entry.data = b"1"
        with self._batch_lists.store.batch(self.check_lock) as batch:
            batch.put(_UNRANKED_KEY, entry)

    def get_indexed_count(self, index: str) -> int | None:
        """Return how many documents the index had at the end of the last crawl, None for another index or none."""
        entry = self._batch_lists.store.get(_INDEXED_KEY, {DerivedRow.data})
        name, _, documents = ((entry.data if entry is not None else None) or b"").decode().partition(" ")
        return int(documents) if name == index else None

    def set_indexed_count(self, index: str, documents: int) -> None:
        """Note which index has all documents, and their number. ``index``: a name without blanks."""
        entry = DerivedRow()
        entry.data = f"{index} {documents}".encode()
        with self._batch_lists.store.batch(self.check_lock) as batch:
            batch.put(_INDEXED_KEY, entry)

    def clear_unranked(self) -> None:
        """Note that all pages are ranked, and that the index has the ranks."""
        self.check_lock()
        self._batch_lists.delete_range(KeyRange(_UNRANKED_KEY, f"{_UNRANKED_KEY}\x00"))


@contextmanager
def open_crawl_session(conf: Configuration) -> Iterator[CrawlSession]:
    """Hold the lock of ``crawl`` within the block; create the tables if there are none.

    Raises :class:`nutch2py.errors.LockedError` while another ``crawl`` runs.
    """
    with open_job(conf, CRAWL, creates_table=True) as tables:
        yield CrawlSession(tables)
