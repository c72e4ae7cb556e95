"""What the command ``crawl`` holds of a table from its first job to its last: its lock, and a note of what is left.

Each job of it takes its own lock beside that; between them another job may run, but no other ``crawl``. The note,
``run/unranked`` of the derived table, says that pages were fetched whose ranks are yet to be made: no state of a batch
tells that once the batch is done. Another, ``run/indexed``, says which index had all documents at the end, and how
many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf import Configuration
from nutch2py.jobs.beginning import CrawlTables, begin
from nutch2py.jobs.works import CRAWL
from nutch2py.table import KeyRange
from nutch2py.webpage import BatchEntry

_UNRANKED = "run/unranked"
_INDEXED = "run/indexed"


class WholeCrawl:
    """A crawl that is at work. :meth:`check` raises LockLostError when another has taken its place."""

    def __init__(self, tables: CrawlTables) -> None:
        self._lists, self.check = tables.lists, tables.check

    def unranked(self) -> bool:
        """Tell whether pages were fetched since ranks were made."""
        return self._lists.store.get(_UNRANKED, {BatchEntry.data}) is not None

    def note_unranked(self) -> None:
        """Note that ranks are to be made when the rounds are over; durable when it returns."""
        entry = BatchEntry()
        entry.data = b"1"
        with self._lists.store.batch(self.check) as batch:
            batch.put(_UNRANKED, entry)

    def indexed(self, index: str) -> int | None:
        """Return how many documents an index had when a crawl ended last; None: it was another one, or none."""
        entry = self._lists.store.get(_INDEXED, {BatchEntry.data})
        name, _, documents = ((entry.data if entry is not None else None) or b"").decode().partition(" ")
        return int(documents) if name == index else None

    def note_indexed(self, index: str, documents: int) -> None:
        """Note which index has all documents, and how many; ``index``: a name of it without blanks."""
        entry = BatchEntry()
        entry.data = f"{index} {documents}".encode()
        with self._lists.store.batch(self.check) as batch:
            batch.put(_INDEXED, entry)

    def ranked(self) -> None:
        """Note that all ranks are made, and the index knows them."""
        self.check()
        self._lists.delete(KeyRange(_UNRANKED, f"{_UNRANKED}\x00"))


@contextmanager
def whole_crawl(conf: Configuration) -> Iterator[WholeCrawl]:
    """Hold the lock of ``crawl`` within the block; the tables are made when there are none.

    Raises :class:`nutch2py.errors.LockedError` beside another one.
    """
    with begin(conf, CRAWL, makes=True) as tables:
        yield WholeCrawl(tables)
