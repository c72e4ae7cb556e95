"""How every job begins, in one place: its lock, its tables, what a killed job left, and that what it works on is there.

A job works within the block of :func:`open_job`, before which it reads and writes nothing, and gets the crawl's tables
from it alone. So no job can forget to hold what must not be worked on twice (:mod:`nutch2py.jobs.locking.lock_scopes`), to finish a
journal that waits (:mod:`nutch2py.jobs.batches.update_journal`), or to refuse a crawl or a batch that is not there before it makes
tables of a mistyped name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, NutchError, StoreError, UnknownBatchError
from nutch2py.joblog.job_recorder import JobRecorder, record_job
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchRecord, BatchState
from nutch2py.jobs.batches.update_journal import finish_interrupted_update
from nutch2py.jobs.locking.job_lock import ConflictFinder, hold_job_lock
from nutch2py.jobs.locking.lock_scopes import READ, UPDATEDB, LockScope, scopes_conflict
from nutch2py.jobs.stats.stats_snapshot import snapshot_table_stats
from nutch2py.mapreduce.driver import raise_on_sigterm
from nutch2py.mapreduce.job_parameters import ALL, REINDEX, BatchParameters
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import DataStore, MarkCondition, TableQuery, open_store


class CrawlTables(NamedTuple):
    """The tables of a crawl that is ready to be worked on. ``unknown_batch_error``: why the batch is not, None when it is.

    ``check_lock`` raises :class:`nutch2py.errors.LockLostError` when another job has taken this one's place; tasks look by
    themselves before they write.
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
    find_conflict: ConflictFinder | None = None,
    parameters_class: Callable[..., BatchParameters] = BatchParameters,
) -> Iterator[CrawlTables]:
    """Give the crawl's tables, with what a killed updatedb had committed written, and hold the job's lock in the block.

    ``creates_table``: the job may make the crawl's table, as inject does; any other raises :class:`StoreError` when there is
    none. ``parameters_class`` refuses an id that cannot be one.
    With ``batch_id`` and the ``mark`` that its rows carry, a batch of which nothing is known and whose mark no
    row carries is an :class:`UnknownBatchError`, which is given, not raised, to a ``allows_unknown_batch`` job. ``-all`` and
    ``-reindex`` are known always. Raises :class:`nutch2py.errors.LockedError` when another job is at work on what
    ``scope`` names, or one to which there is an ``find_conflict`` (:func:`nutch2py.jobs.locking.job_lock.hold_job_lock`); who only reads
    (:data:`nutch2py.jobs.locking.lock_scopes.READ`) takes no lock. The job has its entry in the job log, except for ``READ`` itself.
    """
    conf.check_numbers()
    if mark is not None:
        parameters_class(batch_id=batch_id)  # before anything is looked at: a batch must be named
    store, lists = open_store(conf, WebPage), BatchListStore(conf)
    if creates_table:
        store.create()
    else:
        require_crawl_table(store)
    if scope.is_read_only:
        _finish_interrupted_updates(conf, lists, lists.list_records(), READ)
        with nullcontext() if scope is READ else record_job(JobRecorder(conf, scope.name, is_quiet=True)):
            yield CrawlTables(store, lists)
        return
    lists.store.create()
    if batch_id:
        scope = scope.for_batch(batch_id)
    with ExitStack() as stack:
        ledger = JobRecorder(conf, scope.name, batch_id)
        stack.callback(ledger.export_metrics)
        stack.enter_context(raise_on_sigterm())  # else SIGTERM would leave the lock
        try:
            held = stack.enter_context(hold_job_lock(conf, lists, scope, find_conflict=find_conflict))
        except LockedError as error:
            ledger.finish(error)
            raise
        stack.enter_context(record_job(ledger, held.token, partial(snapshot_table_stats, store)))
        _finish_interrupted_updates(conf, lists, held.batch_records, scope)
        unknown = None
        if mark is not None and batch_id not in (ALL, REINDEX) and not _is_known_batch(store, lists, batch_id, mark):
            unknown = UnknownBatchError(
                f"there is no batch {batch_id} to work on in {store.name} at {store.location}: it was never generated, "
                "or is done; readdb -batches lists those that are open"
            )
            if not allows_unknown_batch:
                raise unknown
        yield CrawlTables(store, lists, unknown, held.check_held)


@contextmanager
def log_rejected_job(conf: Configuration, scope: LockScope, batch_id: str = "") -> Iterator[None]:
    """Let the log of a crawl have a job that is refused in the block, before it begins."""
    try:
        yield
    except NutchError as error:
        JobRecorder(conf, scope.name, batch_id, is_quiet=True).finish(error)
        raise


def require_crawl_table(store: DataStore[WebPage]) -> None:
    """Raise :class:`StoreError` when there is no such crawl."""
    if not store.exists():
        raise StoreError(f"there is no table {store.name} at {store.location}: inject seeds first, or correct -crawlId")


def finish_interrupted_updates(conf: Configuration) -> None:
    """Finish what a killed updatedb had committed, as every job does when it begins."""
    lists = BatchListStore(conf)
    _finish_interrupted_updates(conf, lists, lists.list_records(), READ)


def _finish_interrupted_updates(
    conf: Configuration, batch_lists: BatchListStore, records: list[BatchRecord], scope: LockScope
) -> None:
    """Finish the journals that wait, under the lock that their updatedb had.

    When that is refused, a living job is writing the journal, or works on what it changes. Then a job goes on without
    if it may run beside an updatedb of that batch: it reads rows of which some are changed already and some are not
    yet, as it does beside any updatedb, and the journal is finished by whoever holds the lock, or comes next. A job
    that may not run beside it would compute from rows that the journal is yet to change, and is refused.
    """
    for state in records:
        if state.state != BatchState.APPLYING:
            continue
        update = UPDATEDB.for_batch(state.batch_id)
        try:
            with hold_job_lock(conf, batch_lists, update) as own:
                found = batch_lists.get_record(state.batch_id)
                if found is not None and found.state == BatchState.APPLYING:
                    finish_interrupted_update(conf, state.batch_id, own.check_held)
        except LockedError:
            if scopes_conflict(scope.exclusive, scope.shared, update.exclusive, update.shared):
                raise


def _is_known_batch(store: DataStore[WebPage], batch_lists: BatchListStore, batch_id: str, mark: Mark) -> bool:
    if batch_lists.get_record(batch_id) is not None:
        return True
    # a batch that Nutch 2 made has no state: any row with its mark will do
    return next(store.scan(TableQuery(frozenset(), mark=MarkCondition(mark, batch_id))), None) is not None
