"""The journal of updatedb: every change of a batch is computed and kept first, then written; both can be repeated.

Scores are added to, and the cash of a page is given away, so updatedb must change each row exactly once, whatever kills
it. Its reducers therefore write no page. They put the changes, as absolute values, into the derived table; when all are
there, the state of the batch becomes APPLYING, which is the commit point; then the changes are written. Killed before
that point, nothing has happened, and the journal is thrown away and computed anew; killed after it, the next job of any
kind writes the changes again, with the same timestamps, before it does anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists, State, journal_prefix, pack, unpack
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pair, TableJob
from nutch2py.mapreduce.parameters import ALL, TIME, BatchParameters
from nutch2py.mapreduce.splits import SideSplit
from nutch2py.record import Mutation
from nutch2py.reporting import tell
from nutch2py.table import DataStore, Query, prefix_range
from nutch2py.webpage import BatchEntry

_CHANGES = 500  # rows in one entry of the journal
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(
    list[tuple[str, dict[bytes, dict[bytes, bytes]], dict[bytes, list[bytes]], list[bytes]]]
)


class JournalWriter:
    """Collects the changes of one reduce task; its entries are named by their first row, so a repeat replaces them."""

    def __init__(self, store: DataStore[BatchEntry], batch_id: str, before: Callable[[], object] | None = None) -> None:
        self._batch, self._prefix = store.batch(before), journal_prefix(batch_id)
        self._changes: list[tuple[str, Any, Any, Any]] = []

    def add(self, key: str, mutation: Mutation | None) -> None:
        """Keep the changes of a row."""
        if mutation is None:
            return
        self._changes.append((key, mutation.puts, mutation.deletes, mutation.cleared))
        if len(self._changes) >= _CHANGES:
            self._write()

    def _write(self) -> None:
        if self._changes:
            entry = BatchEntry()
            entry.data = pack(_ENCODER.encode(self._changes))
            self._batch.put(self._prefix + self._changes[0][0], entry)
            self._changes = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write()
            self._batch.flush()


@dataclass(frozen=True, kw_only=True)
class JournalParameters(BatchParameters):
    """``timestamp``: when the batch was committed, ms since 1970; every cell is stamped by it."""

    timestamp: int
    ranges: ClassVar = {"timestamp": TIME}


class JournalJob(TableJob[JournalParameters]):
    """Write the changes of a journal, in map tasks."""

    reduce_steps = 0

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Write the changes of some entries."""
        timestamp = self.parameters.timestamp
        with self.writing() as batch:
            for _, entry in self.batches.scan(Query(frozenset({BatchEntry.data}), split.range)):
                assert entry.data is not None
                changes = _DECODER.decode(unpack(entry.data))
                for key, puts, deletes, cleared in changes:
                    batch.mutate(key, Mutation(puts, deletes, cleared), timestamp)
                self.channel.advance(len(changes))
                self.count("updatedb", "rows_written", len(changes))
        yield from ()


def apply(conf: Configuration, batch_id: str, check: Callable[[], None]) -> None:
    """Write the changes of a journal that is complete, then let it go; ``check`` tells that the lock is ours still.

    The state says to the end that there is something to finish: notes of links that stayed would be followed by an
    update of ``-all`` long after their pages have these links again.
    """
    lists = BatchLists(conf)
    state = lists.state(batch_id)
    assert state is not None
    parameters = JournalParameters(batch_id=batch_id, timestamp=state.time)
    whole = prefix_range(journal_prefix(batch_id))
    ranges = lists.store.key_ranges(Query(frozenset({BatchEntry.data}), whole), map_tasks(conf))
    splits = [SideSplit(key_range) for key_range in ranges]
    run_job(JournalJob, conf, splits, parameters, title="DbUpdaterJob: writing")
    check()
    lists.delete(lists.dropped_range(batch_id))
    discard(lists, batch_id)
    if batch_id == ALL:
        _settle(lists)
    else:
        lists.set_state(batch_id, State.UPDATED, state.count)


def _settle(lists: BatchLists) -> None:
    """Say of every batch that it is updated, as no row carries its mark; forget those that have no whole list.

    ``-all`` goes last: as long as it is there, this is finished.
    """
    for state in lists.states():
        if state.state == State.GENERATED and state.count >= 0:
            lists.set_state(state.batch_id, State.UPDATED, state.count)
        elif state.state != State.UPDATED and state.batch_id != ALL:
            lists.forget(state.batch_id)
    lists.forget(ALL)


def discard(lists: BatchLists, batch_id: str) -> None:
    """Delete the journal of a batch."""
    lists.delete(prefix_range(journal_prefix(batch_id)))


def finish(conf: Configuration, batch_id: str, check: Callable[[], None]) -> None:
    """Write what a killed updatedb had committed; :func:`nutch2py.jobs.beginning.begin` calls it for every job."""
    tell(f"DbUpdaterJob: finishing the interrupted update of batch {batch_id}")
    apply(conf, batch_id, check)
