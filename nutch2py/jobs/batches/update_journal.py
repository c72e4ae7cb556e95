"""The journal of updatedb: all changes of a batch are computed and stored first, then written; both can be repeated.

Scores accumulate, and a page's cash is distributed, so updatedb must change each row exactly once, even when it is
killed. Its reducers therefore write no page. They put the changes, as absolute values, into the derived table. When all
are stored, the state of the batch becomes APPLYING: this is the commit point. Then the changes are written. If updatedb
is killed before that point, nothing has changed, and the journal is discarded and recomputed. If it is killed later,
the next job of any kind writes the changes again, with the same timestamps, before it does anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, journal_prefix
from nutch2py.jobs.batches.cell_compression import compress_cell, decompress_cell
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.mapreduce.job_parameters import ALL, TIME_RANGE, BatchParameters
from nutch2py.mapreduce.table_job import KeyValuePair, TableJob
from nutch2py.records.record import Mutation
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.invariants import not_none
from nutch2py.support.reporting import log_line
from nutch2py.table import DataStore, TableQuery, prefix_range

_CHANGES_PER_ENTRY = 500  # rows in one entry of the journal
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(
    list[tuple[str, dict[bytes, dict[bytes, bytes]], dict[bytes, list[bytes]], list[bytes]]]
)


class JournalWriter:
    """Collects the changes of one reduce task. Entries have the key of their first row, so a repeat replaces them."""

    def __init__(
        self, store: DataStore[DerivedRow], batch_id: str, before_write: Callable[[], object] | None = None
    ) -> None:
        self._batch, self._prefix = store.batch(before_write), journal_prefix(batch_id)
        self._changes: list[tuple[str, object, object, object]] = []

    def add(self, key: str, mutation: Mutation | None) -> None:
        """Add the changes of a row."""
        if mutation is None:
            return
        self._changes.append((key, mutation.puts, mutation.deletes, mutation.cleared_families))
        if len(self._changes) >= _CHANGES_PER_ENTRY:
            self._write()

    def _write(self) -> None:
        if self._changes:
            entry = DerivedRow()
            entry.data = compress_cell(_ENCODER.encode(self._changes))
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
    """``timestamp``: when the batch was committed, ms since 1970; all cells get this timestamp."""

    timestamp: int
    ranges: ClassVar = {"timestamp": TIME_RANGE}


class JournalJob(TableJob[JournalParameters]):
    """Write the changes of a journal, in map tasks."""

    reduce_steps = 0

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Write the changes of some entries."""
        timestamp = self.parameters.timestamp
        with self.write_batch() as batch:
            for _, entry in self.derived_store.scan(TableQuery(frozenset({DerivedRow.data}), split.key_range)):
                changes = _DECODER.decode(decompress_cell(not_none(entry.data, "journal entry")))
                for key, puts, deletes, cleared in changes:
                    batch.mutate(key, Mutation(puts, deletes, cleared), timestamp)
                self.channel.advance(len(changes))
                self.count("updatedb", "rows_written", len(changes))
        yield from ()


def apply_journal(conf: Configuration, batch_id: str, check_lock: Callable[[], None]) -> None:
    """Write the changes of a complete journal, then delete it. ``check_lock`` raises when the lock is lost.

    The state changes last. Notes of dropped links that remained would be applied by a later update of ``-all``, when
    their pages may have these links again.
    """
    lists = BatchListStore(conf)
    record = not_none(lists.get_record(batch_id), "record of the batch")
    parameters = JournalParameters(batch_id=batch_id, timestamp=record.time)
    whole = prefix_range(journal_prefix(batch_id))
    ranges = lists.store.key_ranges(TableQuery(frozenset({DerivedRow.data}), whole), map_task_count(conf))
    splits = [DerivedTableSplit(key_range) for key_range in ranges]
    run_job(JournalJob, conf, splits, parameters, title="DbUpdaterJob: writing")
    check_lock()
    lists.delete_range(lists.dropped_links_range(batch_id))
    delete_journal(lists, batch_id)
    if batch_id == ALL:
        _mark_all_updated(lists)
    else:
        lists.set_state(batch_id, BatchState.UPDATED, record.count)


def _mark_all_updated(batch_lists: BatchListStore) -> None:
    """Set every batch to updated, as no row carries its mark; delete those that have no complete list.

    The record of ``-all`` is deleted last: while it exists, the next job repeats this.
    """
    for record in batch_lists.list_records():
        if record.state == BatchState.GENERATED and record.count >= 0:
            batch_lists.set_state(record.batch_id, BatchState.UPDATED, record.count)
        elif record.state != BatchState.UPDATED and record.batch_id != ALL:
            batch_lists.delete_batch(record.batch_id)
    batch_lists.delete_batch(ALL)


def delete_journal(batch_lists: BatchListStore, batch_id: str) -> None:
    """Delete the journal of a batch."""
    batch_lists.delete_range(prefix_range(journal_prefix(batch_id)))


def finish_interrupted_update(conf: Configuration, batch_id: str, check_lock: Callable[[], None]) -> None:
    """Write the changes that a killed updatedb had committed.

    :func:`nutch2py.jobs.job_context.open_job` calls it for every job.
    """
    log_line(f"DbUpdaterJob: finishing the interrupted update of batch {batch_id}")
    apply_journal(conf, batch_id, check_lock)
