"""Batch lists: the rows of each batch, so that jobs read these rows and not the whole table.

The lists are in the derived table ``<crawlId>_batch``. The marks in the rows remain authoritative: a job that reads
through a list checks the mark of each row. The rows of a batch without a complete list (from Nutch 2, or ``-all``) are
found by a scan. Keys, with the batch id percent-encoded:

- ``s/<batch>``: record of the batch: state, its time, and the number of rows;
- ``l/<batch>/<partition>/<order>``: an entry of the list, ``key`` is the row key;
- ``l/<batch>/redirected/<row key>``: an entry for a row that joined the batch during the fetch;
- ``u/<batch>/<row key>``: links that a page no longer has after parsing (``data``, a JSON list), for updatedb to drop;
- ``c/<batch>/<bucket>/<number>``: candidates for a batch, see :mod:`nutch2py.jobs.generate.candidate_blocks`;
- ``j/<batch>/…``: the journal of updatedb, see :mod:`nutch2py.jobs.batches.update_journal`;
- ``run/gate/…``: see :mod:`nutch2py.jobs.fetch.address_recheck`;
- ``run/jobs``: the job locks, see :mod:`nutch2py.jobs.locking.job_lock`; one scan reads it and all records;
- ``run/unranked``: see :mod:`nutch2py.crawl_loop.crawl_session`;
- ``r/…`` and ``m/…``: data of pagerank, see :mod:`nutch2py.jobs.pagerank.graph_blocks`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise
from urllib.parse import quote, unquote

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.input_splits import BatchListSplit, Split, range_splits
from nutch2py.mapreduce.job_parameters import ALL, REINDEX
from nutch2py.mapreduce.lock_check import LOCKS_KEY, LockHolder, decode_holders
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import DerivedRow, Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, KeyRange, MarkCondition, TableQuery, WriteBatch, open_store, prefix_range

_TIMESTAMPED_ID = re.compile(r"(\d{9,11})-\d+")  # <unix seconds>-<random>, as Nutch makes batch ids
_ROWS_PER_READ = 500  # rows looked up at once
LONG_LIST_ENTRIES = 100_000
"""Entries of a list above which its splits are sampled."""
_LISTED_STATES = ("generated", "applying", "updated")
_STATE_FIELDS: frozenset[RecordField] = frozenset({DerivedRow.state, DerivedRow.time, DerivedRow.count})


class BatchState(StrEnum):
    """Stage of a batch."""

    GENERATING = "generating"  # interrupted, unless a GeneratorJob is running
    GENERATED = "generated"
    SEEN = "seen"  # generated elsewhere; the time is when a job first saw it
    APPLYING = "applying"  # updatedb has computed all changes and is writing them
    UPDATED = "updated"


UNKNOWN_COUNT = -1
"""Count of a batch without a list, or whose list lacks rows with the batch's mark."""


@dataclass(frozen=True)
class BatchRecord:
    """Record of a known batch.

    ``state`` is one of :class:`BatchState`; ``time`` is when the batch entered it (ms since 1970). ``count`` is the
    number of generated rows, :data:`UNKNOWN_COUNT` when it is unknown.
    """

    batch_id: str
    state: str
    time: int
    count: int


class BatchListStore:
    """Access to the batch lists, batch records and other entries of a crawl's derived table."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.store: DataStore[DerivedRow] = open_store(conf, DerivedRow)
        self.enabled = conf.get_bool("storage.batch.list", True)

    # records

    def read_lock_row_and_records(self) -> tuple[bytes | None, list[BatchRecord]]:
        """Return the data of the row :data:`nutch2py.mapreduce.lock_check.LOCKS_KEY`, None if empty, and the records.

        The row is read first: a job that no longer has a lock by then has already written its last record.
        """
        data = None
        records = []
        for key, row in self.store.scan(TableQuery(_STATE_FIELDS | {DerivedRow.data}, KeyRange(LOCKS_KEY, "s0"))):
            if key == LOCKS_KEY:
                data = row.data or None
            elif key.startswith("s/"):
                records.append(_decode_record(key, row))
        return data, records

    def read_lock_holders(self) -> list[LockHolder]:
        """Return the jobs that hold a lock, whether alive or dead."""
        row = self.store.get(LOCKS_KEY, {DerivedRow.data}) if self.store.exists() else None
        return decode_holders(row.data if row is not None else None)

    def list_records(self) -> list[BatchRecord]:
        """Return the records of all known batches, ordered by batch id."""
        if not self.store.exists():
            return []
        rows = self.store.scan(TableQuery(_STATE_FIELDS, prefix_range("s/")))
        return [_decode_record(key, row) for key, row in rows]

    def get_record(self, batch_id: str) -> BatchRecord | None:
        """Return the record of one batch, None when the batch is unknown."""
        if not self.store.exists():
            return None
        row = self.store.get(f"s/{_encode_id(batch_id)}", _STATE_FIELDS)
        return None if row is None else BatchRecord(batch_id, row.state or "", row.time, row.count)

    def set_state(self, batch_id: str, state: BatchState, count: int = 0, time: int = 0) -> None:
        """Set the state of a batch as of ``time`` (ms since 1970, 0 for now). It is durable on return."""
        self.store.create()
        entry = DerivedRow()
        entry.state, entry.time, entry.count = state, time or now_ms(), count
        with self.store.batch() as batch:
            batch.put(f"s/{_encode_id(batch_id)}", entry)

    def get_creation_time(self, batch_id: str) -> int | None:
        """Return when a batch was made (ms since 1970): by its record, else by its id; None when unknown."""
        record = self.get_record(batch_id)
        if record is not None:
            return record.time
        match = _TIMESTAMPED_ID.fullmatch(batch_id)
        return int(match.group(1)) * 1000 if match else None

    # lists

    @property
    def can_split_ranges(self) -> bool:
        """Whether the store can split a key range without reading all of it."""
        return self.store.row_estimate() is not None

    def is_complete(self, batch_id: str) -> bool:
        """Return whether the list of a batch contains every row that carries its marks."""
        record = self.get_record(batch_id)
        return self.enabled and record is not None and record.count >= 0 and record.state in _LISTED_STATES

    def make_list_splits(self, batch_id: str, task_count: int) -> list[BatchListSplit]:
        """Split a list into about ``task_count`` parts, in list order."""
        whole = TableQuery(frozenset({DerivedRow.key}), prefix_range(f"l/{_encode_id(batch_id)}/"))
        record = self.get_record(batch_id)
        if task_count > 1 and record is not None and record.count >= LONG_LIST_ENTRIES and not self.can_split_ranges:
            cuts = [*self._split_keys(whole.range, -(-record.count // task_count))]
            cuts = (
                [cuts[len(cuts) * part // (2 * task_count)] for part in range(2 * task_count)]
                if len(cuts) > 2 * task_count
                else cuts
            )
            ends = [whole.range.start, *cuts, whole.range.stop]
            return [BatchListSplit(KeyRange(*each)) for each in pairwise(ends)]
        return [BatchListSplit(key_range) for key_range in self.store.key_ranges(whole, task_count)]

    def _split_keys(self, key_range: KeyRange, step: int) -> Iterator[str]:
        """Yield keys of a list: ``step`` entries apart, or the first of a partition. Entries of one are numbered."""
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
        """Yield the row keys in a list."""
        whole = prefix_range(f"l/{_encode_id(batch_id)}/")
        for _, entry in self.store.scan(TableQuery(frozenset({DerivedRow.key}), whole)):
            if entry.key is not None:
                yield entry.key

    def delete_batch(self, batch_id: str) -> None:
        """Delete all entries of a batch."""
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
        """Remove the generate marks of an interrupted run, except from rows that were fetched since.

        The list is written before the marks, so it contains every row; delete it only afterwards. ``check_lock``: see
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

    # dropped links

    def put_dropped_links(self, batch: WriteBatch, batch_id: str, row_key: str, urls: Iterable[str]) -> None:
        """Note links that a page had before it was parsed again; adds to earlier notes."""
        key = f"u/{_encode_id(batch_id)}/{row_key}"
        before = self.store.get(key, {DerivedRow.data})
        known = set(orjson.loads(before.data)) if before is not None and before.data else set()
        entry = DerivedRow()
        entry.data = orjson.dumps(sorted(known | set(urls)))
        batch.put(key, entry)

    def dropped_links_range(self, batch_id: str) -> KeyRange:
        """Return the key range of the entries of :meth:`put_dropped_links`, for one batch or for all."""
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


def put_list_entry(batch: WriteBatch, batch_id: str, partition: str, order: int, row_key: str) -> None:
    """Add an entry to a list: the row ``row_key`` is the ``order``-th of a partition."""
    entry = DerivedRow()
    entry.key = row_key
    batch.put(f"l/{_encode_id(batch_id)}/{partition}/{order:09d}", entry)


def put_redirect_target(batch: WriteBatch, batch_id: str, row_key: str) -> None:
    """Add the target of a redirect that was fetched with the batch to its list. A repeat changes nothing."""
    entry = DerivedRow()
    entry.key = row_key
    batch.put(f"l/{_encode_id(batch_id)}/redirected/{row_key}", entry)


def journal_prefix(batch_id: str) -> str:
    """Return the key prefix of a batch's journal."""
    return f"j/{_encode_id(batch_id)}/"


def candidate_prefix(batch_id: str) -> str:
    """Return the key prefix of the candidates of a batch."""
    return f"c/{_encode_id(batch_id)}/"


def _encode_id(batch_id: str) -> str:
    return quote(batch_id, safe="")


def mark_condition(mark: Mark, batch_id: str) -> MarkCondition:
    """Return the condition for the rows of a batch, or of every batch for ``-all`` and ``-reindex``."""
    return MarkCondition(mark, None if batch_id in (ALL, REINDEX) else batch_id)


def make_batch_splits(
    conf: Configuration,
    store: DataStore[WebPage],
    fields: frozenset[RecordField],
    mark: Mark,
    batch_id: str,
    task_count: int,
) -> tuple[list[Split], int | None]:
    """Return the map input for the rows of a batch, and its approximate number of rows, None if unknown.

    Reads through the batch list when it is complete, else scans the table for the mark.
    """
    lists = BatchListStore(conf)
    if batch_id not in (ALL, REINDEX) and lists.is_complete(batch_id):
        record = lists.get_record(batch_id)
        return [*lists.make_list_splits(batch_id, task_count)], record.count if record else None
    query = TableQuery(fields, mark=mark_condition(mark, batch_id))
    return range_splits(store, query, task_count), None
