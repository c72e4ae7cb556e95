"""How far the open batches are: by the marks of their rows, which are right whatever jobs ran, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists, BatchState, State
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.locks import at_work
from nutch2py.jobs.works import READ, touches_batch
from nutch2py.mapreduce.held import Holder, decode_holders
from nutch2py.record import Field
from nutch2py.table import DataStore
from nutch2py.table.clock import now_ms
from nutch2py.webpage import Mark, WebPage

INTERRUPTED, FETCHED, PARSED = "interrupted", "fetched", "parsed"
_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.markers})
_ROWS = 500  # read at once


@dataclass(frozen=True)
class BatchReport(BatchState):
    """A batch, and how far it is.

    ``state``: what was done last with any of its rows: ``generating``, ``interrupted`` (a generate that died),
    ``generated``, ``fetched``, ``parsed``, ``applying``, ``updated``, or ``seen`` (made elsewhere). ``time``: when it
    was made or updated, ms since 1970. ``count``: its rows, -1 when no list tells. ``done``: how many of them are as
    far as the state says, None when no list tells, or nobody counted. ``age``: seconds since ``time``. ``at_work``:
    jobs at work on it.
    """

    done: int | None
    age: int
    at_work: tuple[str, ...]


def open_batches(conf: Configuration, count: bool = True) -> list[BatchReport]:
    """Return the batches that are open; ``count``: reads the marks of the rows of each that has a list."""
    with begin(conf, READ) as tables:
        if not tables.lists.store.exists():
            return []
        data, states = tables.lists.jobs_and_states()
        holders = at_work(decode_holders(data))
        return [_report(tables.store, tables.lists, state, holders, count) for state in states]


def _report(
    store: DataStore[WebPage], lists: BatchLists, state: BatchState, holders: list[Holder], count: bool
) -> BatchReport:
    ours = [holder for holder in holders if touches_batch(holder.alone, state.batch_id)]
    name, done = state.state, None
    if state.state == State.GENERATING and not ours:
        name = INTERRUPTED
    elif count and state.state in (State.GENERATED, State.UPDATED) and lists.complete(state.batch_id):
        name, done = _progress(store, lists, state)
    work = tuple(f"{holder.job} on {holder.host} ({holder.pid})" for holder in ours)
    age = max(0, now_ms() - state.time) // 1000
    return BatchReport(state.batch_id, name, state.time, state.count, done, age, work)


def _progress(store: DataStore[WebPage], lists: BatchLists, state: BatchState) -> tuple[str, int | None]:
    """Return what was done last with any row of a batch, and with how many."""
    listed = generated = fetched = parsed = 0
    for markers in _markers(store, lists, state.batch_id):
        listed += 1
        if markers.get(Mark.GENERATE) == state.batch_id:
            generated += 1
            fetched += markers.get(Mark.FETCH) == state.batch_id
            parsed += markers.get(Mark.PARSE) == state.batch_id
    if listed < state.count:  # the list was thrown away
        return state.state, None
    if not generated:  # updatedb takes the marks off
        return State.UPDATED, state.count
    if parsed:
        return PARSED, parsed
    return (FETCHED, fetched) if fetched else (State.GENERATED, generated)


def _markers(store: DataStore[WebPage], lists: BatchLists, batch_id: str) -> Iterator[Any]:
    keys = lists.row_keys(batch_id)
    while part := list(islice(keys, _ROWS)):
        for row in store.get_many(part, _FIELDS):
            if row is not None:
                yield row.markers


def age_text(seconds: int) -> str:
    """Return a duration as its two largest units: ``3d4h``, ``15m7s``."""
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds % 60}s"
