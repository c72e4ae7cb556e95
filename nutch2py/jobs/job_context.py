"""The context in which every job runs: its lock, its tables, its log entry, and the recovery of killed updates.

A job reads and writes only within the block of :func:`open_job`, which gives it the tables of the crawl. So no job can
forget to lock its resources (:mod:`nutch2py.jobs.locking.lock_scopes`), to finish an interrupted update
(:mod:`nutch2py.jobs.interrupted_updates`), or to reject an unknown crawl or batch before it creates tables for a
mistyped name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, NutchError, StoreError, UnknownBatchError
from nutch2py.joblog.job_recorder import JobRecorder, record_job
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.interrupted_updates import finish_interrupted_updates
from nutch2py.jobs.locking.job_lock import ConflictFinder, hold_job_lock
from nutch2py.jobs.locking.lock_scopes import READ, LockScope
from nutch2py.jobs.stats.kept_stats import snapshot_table_stats
from nutch2py.mapreduce.driver import raise_on_sigterm
from nutch2py.mapreduce.job_parameters import ALL, REINDEX, BatchParameters
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import DataStore, MarkCondition, TableQuery, open_store


class CrawlTables(NamedTuple):
    """The tables of a crawl that is ready for a job.

    ``unknown_batch_error``: the error if the batch is unknown, else None. ``check_lock`` raises
    :class:`nutch2py.errors.LockLostError` when another job has taken over the lock; tasks check it themselves before
    they write.
    """

    store: DataStore[WebPage]
    batch_lists: BatchListStore
    unknown_batch_error: UnknownBatchError | None = None
    check_lock: Callable[[], None] = lambda: None


@contextmanager
def open_job(
    conf: Configuration,
    scope: LockScope,
    *,
    creates_table: bool = False,
    batch_id: str = "",
    mark: Mark | None = None,
    allows_unknown_batch: bool = False,
    finishes_updates: bool = True,
    find_conflict: ConflictFinder | None = None,
    parameters_class: Callable[..., BatchParameters] = BatchParameters,
) -> Iterator[CrawlTables]:
    """Open the crawl's tables for a job, finish interrupted updates, and hold the job's lock within the block.

    The job gets an entry in the job log, except for the scope :data:`nutch2py.jobs.locking.lock_scopes.READ`. Readers
    take no lock.

    Args:
        conf: The configuration of the crawl.
        scope: What the job locks.
        creates_table: The job may create the crawl's table, as inject does.
        batch_id: The batch that the job works on.
        mark: The mark that the rows of the batch carry. With it, the batch must be known, or a row must carry its
            mark; ``-all`` and ``-reindex`` are always known.
        allows_unknown_batch: The block gets the error of an unknown batch instead of raising it.
        finishes_updates: A reader finishes interrupted updates first, for which it may wait for their lock.
        find_conflict: See :func:`nutch2py.jobs.locking.job_lock.hold_job_lock`.
        parameters_class: Rejects a batch id that is not valid.

    Raises:
        StoreError: The table does not exist, and the job does not create it.
        nutch2py.errors.LockedError: Another job has a conflicting lock.
        UnknownBatchError: The batch is unknown.
    """
    conf.check_numbers()
    if mark is not None:
        parameters_class(batch_id=batch_id)  # first of all, reject a batch id that is not valid
    store, lists = open_store(conf, WebPage), BatchListStore(conf)
    if creates_table:
        store.create()
    else:
        require_crawl_table(store)
    if scope.is_read_only:
        if finishes_updates:
            finish_interrupted_updates(conf, lists, lists.list_records(), READ)
        with nullcontext() if scope is READ else record_job(JobRecorder(conf, scope.name, is_quiet=True)):
            yield CrawlTables(store, lists)
        return
    lists.store.create()
    if batch_id:
        scope = scope.for_batch(batch_id)
    with ExitStack() as stack:
        recorder = JobRecorder(conf, scope.name, batch_id)
        stack.callback(recorder.export_metrics)
        stack.enter_context(raise_on_sigterm())  # otherwise SIGTERM would leave the lock in the table
        try:
            held = stack.enter_context(hold_job_lock(conf, lists, scope, find_conflict=find_conflict))
        except LockedError as error:
            recorder.finish(error)
            raise
        stack.enter_context(record_job(recorder, held.token, partial(snapshot_table_stats, store)))
        finish_interrupted_updates(conf, lists, held.batch_records, scope)
        unknown = None
        if mark is not None and batch_id not in (ALL, REINDEX) and not _is_known_batch(store, lists, batch_id, mark):
            unknown = UnknownBatchError(
                f"there is no batch {batch_id} to work on in {store.name} at {store.location}: it was never generated, "
                "or is complete; readdb -batches lists the open batches"
            )
            if not allows_unknown_batch:
                raise unknown
        yield CrawlTables(store, lists, unknown, held.check_held)


@contextmanager
def log_rejected_job(conf: Configuration, scope: LockScope, batch_id: str = "") -> Iterator[None]:
    """Log a job that is rejected within the block, before it starts."""
    try:
        yield
    except NutchError as error:
        JobRecorder(conf, scope.name, batch_id, is_quiet=True).finish(error)
        raise


def require_crawl_table(store: DataStore[WebPage]) -> None:
    """Raise :class:`StoreError` when the crawl does not exist."""
    if not store.exists():
        raise StoreError(
            f"there is no table {store.name} at {store.location}: run nutch2py crawl or inject first, "
            "or correct -crawlId"
        )


def _is_known_batch(store: DataStore[WebPage], batch_lists: BatchListStore, batch_id: str, mark: Mark) -> bool:
    if batch_lists.get_record(batch_id) is not None:
        return True
    # a batch of Nutch 2 has no record: any row with its mark proves that it exists
    return next(store.scan(TableQuery(frozenset(), mark=MarkCondition(mark, batch_id))), None) is not None
