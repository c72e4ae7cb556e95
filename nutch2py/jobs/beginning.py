"""How every job begins, in one place: its tables, what a killed job left, and that what it works on is there.

A job calls :func:`begin` before it reads or writes anything, and gets the crawl's tables from it alone. So no job can
forget to finish a journal that waits (:mod:`nutch2py.jobs.journal`), to refuse a crawl or a batch that is not there
before it makes tables of a mistyped name, or to hold what must not be worked on twice.
"""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import StoreError, UnknownBatchError
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.journal import recover
from nutch2py.mapreduce.parameters import ALL, REINDEX
from nutch2py.table import DataStore, MarkCondition, Query, open_store
from nutch2py.webpage import Mark, WebPage


class CrawlTables(NamedTuple):
    """The tables of a crawl that is ready to be worked on. ``unknown``: why the batch is not, None when it is."""

    store: DataStore[WebPage]
    lists: BatchLists
    unknown: UnknownBatchError | None = None


def begin(
    conf: Configuration, *, makes: bool = False, batch_id: str = "", mark: Mark | None = None, lenient: bool = False
) -> CrawlTables:
    """Return the crawl's tables, with what a killed updatedb had committed written.

    ``makes``: the job may make the crawl's table, as inject does; any other raises :class:`StoreError` when there is
    none. With ``batch_id`` and the ``mark`` that its rows carry, a batch of which nothing is known and whose mark no
    row carries is an :class:`UnknownBatchError`, which is returned, not raised, to a ``lenient`` job. ``-all`` and
    ``-reindex`` are known always.
    """
    store, lists = open_store(conf, WebPage), BatchLists(conf)
    if makes:
        store.create()
    elif not store.exists():
        raise StoreError(f"there is no table {store.name} at {store.location}: inject seeds first, or correct -crawlId")
    recover(conf)
    if not batch_id:
        return CrawlTables(store, lists)
    unknown = None
    if batch_id not in (ALL, REINDEX) and not _is_known(store, lists, batch_id, mark):
        unknown = UnknownBatchError(
            f"there is no batch {batch_id} to work on in {store.name} at {store.location}: it was never generated, or "
            "is done; readdb -batches lists those that are open"
        )
        if not lenient:
            raise unknown
    lists.store.create()
    return CrawlTables(store, lists, unknown)


def _is_known(store: DataStore[WebPage], lists: BatchLists, batch_id: str, mark: Mark | None) -> bool:
    if lists.state(batch_id) is not None:
        return True
    if mark is None:
        return False
    # a batch that Nutch 2 made has no state: any row with its mark will do
    return next(store.scan(Query(frozenset(), mark=MarkCondition(mark, batch_id))), None) is not None
