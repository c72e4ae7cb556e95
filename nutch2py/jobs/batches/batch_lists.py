"""Batch lists: which rows a batch has, so that jobs read these and not the whole table.

They live in the derived table ``<crawlId>_batch``. The marks in the rows stay the truth: whoever reads through a list
checks the mark of each row; a batch without a complete list (Nutch 2 made it, or it is ``-all``) is found by a scan.
Keys, the batch id being percent-encoded:

- ``s/<batch>``: state, its time, and the number of rows;
- ``l/<batch>/<partition>/<order>``: an entry, ``key`` naming the row;
- ``l/<batch>/redirected/<row key>``: the same for a row that came into the batch while it was fetched;
- ``u/<batch>/<row key>``: links that a parsed page no longer has (``data``, a JSON list), for updatedb to drop;
- ``c/<batch>/<bucket>/<number>``: entries from which a batch is cut, see :mod:`nutch2py.jobs.generate.candidate_blocks`;
- ``j/<batch>/…``: the journal of updatedb, see :mod:`nutch2py.jobs.batches.update_journal`;
- ``run/gate/…``: see :mod:`nutch2py.jobs.fetch.address_recheck`;
- ``run/jobs``: the jobs that are at work, see :mod:`nutch2py.jobs.locking.job_lock`; one scan reads it and all states;
- ``run/unranked``: see :mod:`nutch2py.crawl_loop.crawl_session`;
- ``r/…`` and ``m/…``: what pagerank keeps, see :mod:`nutch2py.jobs.pagerank.graph_blocks`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise
from typing import Any
from urllib.parse import quote, unquote

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.input_splits import BatchListSplit, Split, range_splits
from nutch2py.mapreduce.job_parameters import ALL, REINDEX
from nutch2py.mapreduce.lock_check import LOCKS_KEY, LockHolder, decode_holders
from nutch2py.records.record import Field
from nutch2py.records.webpage import DerivedRow, Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, KeyRange, MarkCondition, TableQuery, WriteBatch, open_store, prefix_range

_TIMESTAMPED_ID = re.compile(r"(\d{9,11})-\d+")  # <unix seconds>-<random>, as Nutch makes batch ids
_ROWS_PER_READ = 500  # rows looked up at once
_LONG_LIST_ENTRIES = 100_000  # entries of a list that is long
_LISTED_STATES = ("generated", "applying", "updated")
_STATE_FIELDS: frozenset[Field[Any]] = frozenset({DerivedRow.state, DerivedRow.time, DerivedRow.count})


class BatchState(StrEnum):
    """How far a batch is."""

    GENERATING = "generating"  # interrupted, unless a GeneratorJob is at work
    GENERATED = "generated"
    SEEN = "seen"  # made elsewhere; the time is when it was first met
    APPLYING = "applying"  # updatedb has computed every change and is writing them
    UPDATED = "updated"


UNKNOWN_COUNT = -1
"""Count of a batch whose list lacks rows that carry its marks, or that has no list."""


@dataclass(frozen=True)
class BatchRecord:
    """A batch that is known by its ``batch_id``.

    ``state``: one of :class:`BatchState`, and ``time`` since when it is in it (ms since 1970). ``count``: how many rows were
    generated, :data:`UNKNOWN_COUNT` when the list does not tell.
    """

    batch_id: str
    state: str
    time: int
    count: int


class BatchListStore:
    """The batch lists of a crawl."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.store: DataStore[DerivedRow] = open_store(conf, DerivedRow)
        self.enabled = conf.get_bool("storage.batch.list", True)

    # states

    def read_lock_row_and_records(self) -> tuple[bytes | None, list[BatchRecord]]:
        """Return what the row :data:`nutch2py.mapreduce.lock_check.LOCKS_KEY` holds, None for nothing, then the states.

        They are read in this order, so that a job that is not at work any more has left its last state.
        """
        data = None
        states = []
        for key, row in self.store.scan(TableQuery(_STATE_FIELDS | {DerivedRow.data}, KeyRange(LOCKS_KEY, "s0"))):
            if key == LOCKS_KEY:
                data = row.data or None
            elif key.startswith("s/"):
                states.append(_decode_record(key, row))
        return data, states

    def read_lock_holders(self) -> list[LockHolder]:
        """Return the jobs that hold a lock, living or dead."""
        row = self.store.get(LOCKS_KEY, {DerivedRow.data}) if self.store.exists() else None
        return decode_holders(row.data if row is not None else None)

    def list_records(self) -> list[BatchRecord]:
        """Return the states of all batches that are known, in the order of their ids."""
        if not self.store.exists():
            return []
        rows = self.store.scan(TableQuery(_STATE_FIELDS, prefix_range("s/")))
        return [_decode_record(key, row) for key, row in rows]

    def get_record(self, batch_id: str) -> BatchRecord | None:
        """Return the state of one batch, None when nothing is known of it."""
        if not self.store.exists():
            return None
        row = self.store.get(f"s/{_encode_id(batch_id)}", _STATE_FIELDS)
        return None if row is None else BatchRecord(batch_id, row.state or "", row.time, row.count)

    def set_state(self, batch_id: str, state: BatchState, count: int = 0, time: int = 0) -> None:
        """Set the state of a batch, as of ``time``, 0 for now; durable when it returns."""
        self.store.create()
        entry = DerivedRow()
        entry.state, entry.time, entry.count = state, time or now_ms(), count
        with self.store.batch() as batch:
            batch.put(f"s/{_encode_id(batch_id)}", entry)

    def get_creation_time(self, batch_id: str) -> int | None:
        """Return when a batch was made (ms): by its state, else by its id if that tells, else None."""
        state = self.get_record(batch_id)
        if state is not None:
            return state.time
        timed = _TIMESTAMPED_ID.fullmatch(batch_id)
        return int(timed.group(1)) * 1000 if timed else None

    # lists

    @property
    def can_split_ranges(self) -> bool:
        """Whether the store cuts a range of keys without reading all of them."""
        return self.store.row_estimate() is not None

    def is_complete(self, batch_id: str) -> bool:
        """Tell whether the list of a batch holds every row that carries its marks."""
        state = self.get_record(batch_id)
        return self.enabled and state is not None and state.count >= 0 and state.state in _LISTED_STATES

    def make_list_splits(self, batch_id: str, task_count: int) -> list[BatchListSplit]:
        """Cut a list into about ``task_count`` parts, in the order of the list."""
        whole = TableQuery(frozenset({DerivedRow.key}), prefix_range(f"l/{_encode_id(batch_id)}/"))
        state = self.get_record(batch_id)
        if task_count > 1 and state is not None and state.count >= _LONG_LIST_ENTRIES and not self.can_split_ranges:
            cuts = [*self._split_keys(whole.range, -(-state.count // task_count))]
            cuts = (
                [cuts[len(cuts) * part // (2 * task_count)] for part in range(2 * task_count)]
                if len(cuts) > 2 * task_count
                else cuts
            )
            ends = [whole.range.start, *cuts, whole.range.stop]
            return [BatchListSplit(KeyRange(*each)) for each in pairwise(ends)]
        return [BatchListSplit(key_range) for key_range in self.store.key_ranges(whole, task_count)]

    def _split_keys(self, key_range: KeyRange, step: int) -> Iterator[str]:
        """Yield keys of a list, ``step`` entries apart or the first of a partition, whose entries are numbered."""
        key = next(self.store.keys(key_range), None)
        while key is not None:
            partition = f"{key_range.start}{key.removeprefix(key_range.start).partition('/')[0]}"
            for order in itertools.count(step, step):
                if self.store.get(at := f"{partition}/{order:09d}", {DerivedRow.key}) is None:
                    break
                yield at
            key = next(self.store.keys(KeyRange(f"{partition}0", key_range.stop)), None)  # "0" comes after "/"
            if key is not None:
                yield key

    def iter_row_keys(self, batch_id: str) -> Iterator[str]:
        """Yield the keys of the rows that a list names."""
        whole = prefix_range(f"l/{_encode_id(batch_id)}/")
        for _, entry in self.store.scan(TableQuery(frozenset({DerivedRow.key}), whole)):
            if entry.key is not None:
                yield entry.key

    def delete_batch(self, batch_id: str) -> None:
        """Delete all that is held of a batch."""
        name = _encode_id(batch_id)
        for kind in ("l", "u", "j", "c"):
            self.delete_range(prefix_range(f"{kind}/{name}/"))
        self.delete_range(KeyRange(f"s/{name}", f"s/{name}\x00"))

    def delete_range(self, key_range: KeyRange) -> None:
        """Delete the rows of a key range."""
        if not self.store.exists():
            return
        with self.store.batch() as batch:
            for key in self.store.keys(key_range):
                batch.delete(key)

    def remove_generate_marks(self, store: DataStore[WebPage], batch_id: str, check_lock: Callable[[], None]) -> None:
        """Take the generate marks of an interrupted run off, but from rows that were fetched since.

        The list is written before the marks, so it names every row; it is to go only when this is done. ``check_lock``: see
        :attr:`nutch2py.table.WriteBatch.before_flush`.
        """
        keys = self.iter_row_keys(batch_id)
        with store.batch(check_lock) as batch:
            while part := [*islice(keys, _ROWS_PER_READ)]:
                for key, page in zip(part, store.get_many(part, {WebPage.markers}), strict=True):
                    if page is None or page.markers.get(Mark.GENERATE) != batch_id or Mark.FETCH in page.markers:
                        continue
                    page.markers.pop(Mark.GENERATE)
                    batch.put(key, page)

    # links that are gone

    def put_dropped_links(self, batch: WriteBatch, batch_id: str, row_key: str, urls: Iterable[str]) -> None:
        """Remember links that a page had before it was parsed again; joins what was remembered before."""
        key = f"u/{_encode_id(batch_id)}/{row_key}"
        before = self.store.get(key, {DerivedRow.data})
        known = set(orjson.loads(before.data)) if before is not None and before.data else set()
        entry = DerivedRow()
        entry.data = orjson.dumps(sorted(known | set(urls)))
        batch.put(key, entry)

    def dropped_links_range(self, batch_id: str) -> KeyRange:
        """Return the key range of what :meth:`put_dropped` wrote, for one batch or for all."""
        return prefix_range("u/" if batch_id == ALL else f"u/{_encode_id(batch_id)}/")

    def iter_dropped_links(self, key_range: KeyRange) -> Iterator[tuple[str, list[str]]]:
        """Yield (row key of the page, URLs that it no longer links to)."""
        if not self.store.exists():
            return
        for key, entry in self.store.scan(TableQuery(frozenset({DerivedRow.data}), key_range)):
            if entry.data:
                yield key.split("/", 2)[2], orjson.loads(entry.data)


def _decode_record(key: str, row: DerivedRow) -> BatchRecord:
    return BatchRecord(unquote(key[2:]), row.state or "", row.time, row.count)


def compress_cell(data: bytes) -> bytes:
    """Compress what an entry shall hold in ``data``.

    The bytes that the compressor gives keep the memory that the worst case would have needed; the copy of them does
    not, so that a write buffer is as large as what it counts.
    """
    import zstandard

    return bytes(memoryview(zstandard.compress(data, 1)))


def decompress_cell(data: bytes) -> bytes:
    """Return what :func:`compress_cell` was given."""
    import zstandard

    return zstandard.decompress(data)


def put_list_entry(batch: WriteBatch, batch_id: str, partition: str, order: int, row_key: str) -> None:
    """Write an entry of a list: the row ``row_key`` is the ``order``-th of a partition."""
    entry = DerivedRow()
    entry.key = row_key
    batch.put(f"l/{_encode_id(batch_id)}/{partition}/{order:09d}", entry)


def put_redirect_target(batch: WriteBatch, batch_id: str, row_key: str) -> None:
    """Add a row to a list: the target of a redirect that was fetched with the batch. A repeat changes nothing."""
    entry = DerivedRow()
    entry.key = row_key
    batch.put(f"l/{_encode_id(batch_id)}/redirected/{row_key}", entry)


def journal_prefix(batch_id: str) -> str:
    """Return the prefix of the keys of a batch's journal."""
    return f"j/{_encode_id(batch_id)}/"


def candidate_prefix(batch_id: str) -> str:
    """Return the prefix of the keys of the entries from which a batch is cut."""
    return f"c/{_encode_id(batch_id)}/"


def _encode_id(batch_id: str) -> str:
    return quote(batch_id, safe="")


def mark_condition(mark: Mark, batch_id: str) -> MarkCondition:
    """Return the condition for the rows of a batch, or of every batch for ``-all``."""
    return MarkCondition(mark, None if batch_id in (ALL, REINDEX) else batch_id)


def make_batch_splits(
    conf: Configuration,
    store: DataStore[WebPage],
    fields: frozenset[Field[Any]],
    mark: Mark,
    batch_id: str,
    task_count: int,
) -> tuple[list[Split], int | None]:
    """Return the map input for the rows of a batch, and about how many rows that is.

    Through the batch list when there is a complete one, else by scanning the table for the mark.
    """
    lists = BatchListStore(conf)
    if batch_id not in (ALL, REINDEX) and lists.is_complete(batch_id):
        state = lists.get_record(batch_id)
        return [*lists.make_list_splits(batch_id, task_count)], state.count if state else None
    query = TableQuery(fields, mark=mark_condition(mark, batch_id))
    return range_splits(store, query, task_count), None


class StaleMarkChecker:
    """Tells which generate marks are older than ``crawl.gen.delay``: their batch died before updatedb."""

    def __init__(self, batch_lists: BatchListStore, max_age_ms: int, now: int) -> None:
        self._batch_lists, self._max_age_ms, self._now = batch_lists, max_age_ms, now
        self._is_stale_by_batch: dict[str, bool] = {}

    def __call__(self, batch_id: str) -> bool:
        """Tell whether the marks of a batch are too old to count."""
        if batch_id not in self._is_stale_by_batch:
            made = self._batch_lists.get_creation_time(batch_id)
            if made is None:  # from elsewhere, and its id does not tell its age: it counts from now
                self._batch_lists.set_state(batch_id, BatchState.SEEN)
            self._is_stale_by_batch[batch_id] = made is not None and self._now - made > self._max_age_ms
        return self._is_stale_by_batch[batch_id]
