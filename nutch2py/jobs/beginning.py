"""How every job begins, in one place: its lock, its tables, what a killed job left, and that what it works on is there.

A job works within the block of :func:`begin`, before which it reads and writes nothing, and gets the crawl's tables
from it alone. So no job can forget to hold what must not be worked on twice (:mod:`nutch2py.jobs.works`), to finish a
journal that waits (:mod:`nutch2py.jobs.journal`), or to refuse a crawl or a batch that is not there before it makes
tables of a mistyped name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import LockedError, NutchError, StoreError, UnknownBatchError
from nutch2py.joblog.ledger import Ledger, keeping
from nutch2py.jobs.batchlist import BatchLists, BatchState, State
from nutch2py.jobs.journal import finish
from nutch2py.jobs.locks import Objection, holding
from nutch2py.jobs.snapshot import snapshot
from nutch2py.jobs.works import READ, UPDATEDB, Work, meet
from nutch2py.mapreduce.driver import stoppable
from nutch2py.mapreduce.parameters import ALL, REINDEX, BatchParameters
from nutch2py.table import DataStore, MarkCondition, Query, open_store
from nutch2py.webpage import Mark, WebPage


class CrawlTables(NamedTuple):
    """The tables of a crawl that is ready to be worked on. ``unknown``: why the batch is not, None when it is.

    ``check`` raises :class:`nutch2py.errors.LockLostError` when another job has taken this one's place; tasks look by
    themselves before they write.
    """

    store: DataStore[WebPage]
    lists: BatchLists
    unknown: UnknownBatchError | None = None
    check: Callable[[], None] = lambda: None


@contextmanager
def begin(
    conf: Configuration,
    work: Work,
    *,
    makes: bool = False,
    batch_id: str = "",
    mark: Mark | None = None,
    lenient: bool = False,
    objection: Objection | None = None,
    named: Callable[..., BatchParameters] = BatchParameters,
) -> Iterator[CrawlTables]:
    """Give the crawl's tables, with what a killed updatedb had committed written, and hold the job's lock in the block.

    ``makes``: the job may make the crawl's table, as inject does; any other raises :class:`StoreError` when there is
    none. ``named`` refuses an id that cannot be one.
    With ``batch_id`` and the ``mark`` that its rows carry, a batch of which nothing is known and whose mark no
    row carries is an :class:`UnknownBatchError`, which is given, not raised, to a ``lenient`` job. ``-all`` and
    ``-reindex`` are known always. Raises :class:`nutch2py.errors.LockedError` when another job is at work on what
    ``work`` names, or one to which there is an ``objection`` (:func:`nutch2py.jobs.locks.holding`); who only reads
    (:data:`nutch2py.jobs.works.READ`) takes no lock. The job has its entry in the job log, except for ``READ`` itself.
    """
    conf.check_numbers()
    if mark is not None:
        named(batch_id=batch_id)  # before anything is looked at: a batch must be named
    store, lists = open_store(conf, WebPage), BatchLists(conf)
    if makes:
        store.create()
    else:
        check_crawl(store)
    if work.only_reads:
        _recover(conf, lists, lists.states(), READ)
        with nullcontext() if work is READ else keeping(Ledger(conf, work.name, quiet=True)):
            yield CrawlTables(store, lists)
        return
    lists.store.create()
    if batch_id:
        work = work.on(batch_id)
    with ExitStack() as stack:
        ledger = Ledger(conf, work.name, batch_id)
        stack.callback(ledger.publish)
        stack.enter_context(stoppable())  # else SIGTERM would leave the lock
        try:
            held = stack.enter_context(holding(conf, lists, work, objection=objection))
        except LockedError as error:
            ledger.ends(error)
            raise
        stack.enter_context(keeping(ledger, held.token, partial(snapshot, store)))
        _recover(conf, lists, held.states, work)
        unknown = None
        if mark is not None and batch_id not in (ALL, REINDEX) and not _is_known(store, lists, batch_id, mark):
            unknown = UnknownBatchError(
                f"there is no batch {batch_id} to work on in {store.name} at {store.location}: it was never generated, "
                "or is done; readdb -batches lists those that are open"
            )
            if not lenient:
                raise unknown
        yield CrawlTables(store, lists, unknown, held.check)


@contextmanager
def refusals(conf: Configuration, work: Work, batch_id: str = "") -> Iterator[None]:
    """Let the log of a crawl have a job that is refused in the block, before it begins."""
    try:
        yield
    except NutchError as error:
        Ledger(conf, work.name, batch_id, quiet=True).ends(error)
        raise


def check_crawl(store: DataStore[WebPage]) -> None:
    """Raise :class:`StoreError` when there is no such crawl."""
    if not store.exists():
        raise StoreError(f"there is no table {store.name} at {store.location}: inject seeds first, or correct -crawlId")


def recover(conf: Configuration) -> None:
    """Finish what a killed updatedb had committed, as every job does when it begins."""
    lists = BatchLists(conf)
    _recover(conf, lists, lists.states(), READ)


def _recover(conf: Configuration, lists: BatchLists, states: list[BatchState], work: Work) -> None:
    """Finish the journals that wait, under the lock that their updatedb had.

    When that is refused, a living job is writing the journal, or works on what it changes. Then a job goes on without
    if it may run beside an updatedb of that batch: it reads rows of which some are changed already and some are not
    yet, as it does beside any updatedb, and the journal is finished by whoever holds the lock, or comes next. A job
    that may not run beside it would compute from rows that the journal is yet to change, and is refused.
    """
    for state in states:
        if state.state != State.APPLYING:
            continue
        update = UPDATEDB.on(state.batch_id)
        try:
            with holding(conf, lists, update) as own:
                found = lists.state(state.batch_id)
                if found is not None and found.state == State.APPLYING:
                    finish(conf, state.batch_id, own.check)
        except LockedError:
            if meet(work.alone, work.shared, update.alone, update.shared):
                raise


def _is_known(store: DataStore[WebPage], lists: BatchLists, batch_id: str, mark: Mark) -> bool:
    if lists.state(batch_id) is not None:
        return True
    # a batch that Nutch 2 made has no state: any row with its mark will do
    return next(store.scan(Query(frozenset(), mark=MarkCondition(mark, batch_id))), None) is not None
