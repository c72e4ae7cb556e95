"""Reports the progress of open batches by the marks of their rows, which are correct for any order of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchRecord, BatchState
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.job_lock import select_living_holders
from nutch2py.jobs.locking.lock_scopes import READ, covers_batch
from nutch2py.mapreduce.lock_check import LockHolder, decode_holders
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore

INTERRUPTED, FETCHED, PARSED = "interrupted", "fetched", "parsed"
_MARK_FIELDS: frozenset[RecordField] = frozenset({WebPage.markers})
_ROWS_PER_READ = 500  # rows


@dataclass(frozen=True)
class BatchReport(BatchRecord):
    """A batch and its progress.

    Attributes:
        batch_id: Identifier.
        state: Last step of any of its rows: ``generating``, ``interrupted`` (its generate died), ``generated``,
            ``fetched``, ``parsed``, ``applying``, ``updated``, or ``seen`` (created by another program).
        time: Time of creation or update, ms since 1970.
        count: Number of rows, -1 if unknown.
        done: Number of rows in this state; None if unknown or not counted.
        age: Seconds since ``time``.
        running_jobs: Jobs that run on the batch.
    """

    done: int | None
    age: int
    running_jobs: tuple[str, ...]


def list_open_batches(conf: Configuration, count_rows: bool = True, finishes_updates: bool = True) -> list[BatchReport]:
    """Return the open batches; ``count_rows``: read the marks of the rows of each batch with a list."""
    with open_job(conf, READ, finishes_updates=finishes_updates) as tables:
        if not tables.batch_lists.store.exists():
            return []
        data, states = tables.batch_lists.read_lock_row_and_records()
        holders = select_living_holders(decode_holders(data))
        return [_build_report(tables.store, tables.batch_lists, state, holders, count_rows) for state in states]


def _build_report(
    store: DataStore[WebPage],
    batch_lists: BatchListStore,
    state: BatchRecord,
    holders: list[LockHolder],
    count_rows: bool,
) -> BatchReport:
    batch_holders = [holder for holder in holders if covers_batch(holder.exclusive, state.batch_id)]
    name, done = state.state, None
    if state.state == BatchState.GENERATING and not batch_holders:
        name = INTERRUPTED
    elif (
        count_rows
        and state.state in (BatchState.GENERATED, BatchState.UPDATED)
        and batch_lists.is_complete(state.batch_id)
    ):
        name, done = _count_progress(store, batch_lists, state)
    running_jobs = tuple(f"{holder.job} on {holder.host} ({holder.pid})" for holder in batch_holders)
    age = max(0, now_ms() - state.time) // 1000
    return BatchReport(state.batch_id, name, state.time, state.count, done, age, running_jobs)


def _count_progress(
    store: DataStore[WebPage], batch_lists: BatchListStore, state: BatchRecord
) -> tuple[str, int | None]:
    """Return the last step of any row of a batch, and the number of rows that are done with it."""
    listed = generated = fetched = parsed = 0
    for markers in _iter_markers(store, batch_lists, state.batch_id):
        listed += 1
        if markers.get(Mark.GENERATE) == state.batch_id:
            generated += 1
            fetched += markers.get(Mark.FETCH) == state.batch_id
            parsed += markers.get(Mark.PARSE) == state.batch_id
    if listed < state.count:  # the list was deleted
        return state.state, None
    if not generated:  # updatedb removed the marks
        return BatchState.UPDATED, state.count
    if parsed:
        return PARSED, parsed
    return (FETCHED, fetched) if fetched else (BatchState.GENERATED, generated)


def _iter_markers(store: DataStore[WebPage], batch_lists: BatchListStore, batch_id: str) -> Iterator[Any]:
    keys = batch_lists.iter_row_keys(batch_id)
    while part := list(islice(keys, _ROWS_PER_READ)):
        for row in store.get_many(part, _MARK_FIELDS):
            if row is not None:
                yield row.markers


def format_age(seconds: int) -> str:
    """Return a duration as its two largest units: ``3d4h``, ``15m7s``."""
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds % 60}s"
