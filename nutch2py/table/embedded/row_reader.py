"""Reads rows in short transactions: scans in chunks that continue after the last key, and point reads.

A chunk reads a run of consecutive keys from each database, and joins the runs by key up to the smallest last key. No
transaction is open between two chunks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import lmdb

from nutch2py.records.cells import encode_text
from nutch2py.records.webpage import WebPage
from nutch2py.support.invariants import not_none
from nutch2py.table.embedded import blobs
from nutch2py.table.embedded.database_selection import DatabaseSelection, PackedRow
from nutch2py.table.embedded.storage.packing import (
    LONGEST_KEY,
    DamagedCellsError,
    expand_buckets,
    lmdb_key,
    needle,
    unpack_bucket,
    unpack_columns,
)
from nutch2py.table.embedded.storage.table_files import TableFiles
from nutch2py.table.table_query import KeyRange, MarkCondition

MARKS_FAMILY = WebPage.markers.family
CHUNK_ROWS, MAX_MARK_RUN, FIRST_CHUNK = 2_000, 20_000, 100
POINT_READS = 2_000
"""Values of all families per transaction."""
_KEYS_PER_READ = 5_000  # keys per transaction
_CONTENT_BYTES, _CONTENT_ROWS = 4 << 20, 256
PackedRows = list[tuple[bytes, PackedRow]]


class RowChunk(NamedTuple):
    """Rows in key order, and the LMDB key to continue from (None at the end of the range)."""

    rows: PackedRows
    next_key: bytes | None


class KeyBounds:
    """A key range in bytes, and the LMDB keys that bound its rows."""

    def __init__(self, key_range: KeyRange) -> None:
        self.start, self.stop = encode_text(key_range.start), encode_text(key_range.stop)
        self.first_key = lmdb_key(self.start)
        last = lmdb_key(self.stop)
        self.end_key = last if last == self.stop else last + b"\0"  # clip() cuts the bucket of the stop key

    def clip(self, rows: PackedRows) -> PackedRows:
        """Drop rows of the first and last bucket that are outside the range."""
        while rows and rows[0][0] < self.start:
            del rows[0]
        while self.stop and rows and rows[-1][0] >= self.stop:
            del rows[-1]
        return rows


def _read_run(
    txn: lmdb.Transaction[bytes], handle: lmdb._Database | None, start: bytes, end: bytes, limit: int
) -> tuple[dict[bytes, bytes], bool]:
    """Return up to ``limit`` consecutive values from ``start`` to before ``end``, and whether there may be more."""
    if handle is None:
        return {}, False
    cursor = txn.cursor(handle)
    if not (cursor.set_range(start) if start else cursor.first()):
        return {}, False
    found: dict[bytes, bytes] = dict(islice(cursor.iternext(), limit))
    more = len(found) == limit
    if end and found:
        keys = list(found)
        if keys[-1] >= end:
            return dict(islice(found.items(), bisect_left(keys, end))), False
    return found, more


def scan_chunk(
    files: TableFiles, selection: DatabaseSelection, bounds: KeyBounds, position: bytes, size: int
) -> RowChunk:
    """Read about ``size`` rows from the LMDB key ``position`` on."""
    runs: list[dict[bytes, bytes]] = []
    bound: bytes | None = None
    with files.read_transaction() as txn:
        handles = [files.database_handle(name) for name in selection.database_names]
        entries = [0 if handle is None else txn.stat(handle)["entries"] for handle in handles]
        most = max(entries, default=0)
        for handle, count in zip(handles, entries, strict=True):
            run, more = _read_run(txn, handle, position, bounds.end_key, 1 + size * count // max(1, most) + size // 16)
            runs.append(run)
            if more:
                last = next(reversed(run))
                bound = last if bound is None or last < bound else bound
    for index, run in enumerate(runs):
        if bound is not None and run and next(reversed(run)) > bound:
            run = dict(islice(run.items(), bisect_right(list(run), bound)))
        runs[index] = expand_buckets(run)
    return RowChunk(bounds.clip(_join_runs(runs, selection)), None if bound is None else bound + b"\0")


def _join_runs(runs: list[dict[bytes, bytes]], selection: DatabaseSelection) -> PackedRows:
    """Join the runs by key; drop rows without a selected cell."""
    if not runs:
        return []
    keys = list(runs[0])
    if all(len(run) == len(keys) and list(run) == keys for run in runs[1:]):
        rows = list(zip(keys, zip(*(run.values() for run in runs), strict=True), strict=True))
    else:
        keys = sorted(set().union(*runs))
        rows = list(zip(keys, zip(*(map(run.get, keys) for run in runs), strict=True), strict=True))
    if any(len(runs[index]) == len(keys) for index in selection.whole_databases) or not selection.partial_databases:
        return rows
    return [(key, row) for key, row in rows if selection.has_cell(row)]


def scan_marked_chunk(
    files: TableFiles, selection: DatabaseSelection, bounds: KeyBounds, position: bytes, mark: MarkCondition, size: int
) -> RowChunk:
    """Search a run of ``size`` mark values from ``position`` on; read the rows with a matching mark."""
    name = encode_text(mark.name)
    value = None if mark.value is None else encode_text(mark.value)
    wanted = needle(name, value)
    handle = files.database_handle(MARKS_FAMILY)
    if handle is None:
        return RowChunk([], None)
    with files.read_transaction() as txn:
        cursor = txn.cursor(handle)
        if not (cursor.set_range(position) if position else cursor.first()):
            return RowChunk([], None)
        hits = {key: packed for key, packed in islice(cursor.iternext(), size) if wanted in packed}
        last = cursor.key()
        finished = not last or bool(bounds.end_key and last >= bounds.end_key)
        if finished and bounds.end_key:
            hits = {key: packed for key, packed in hits.items() if key < bounds.end_key}
        keys = [
            key
            for key, packed in expand_buckets(hits).items()
            if wanted in packed and _mark_matches(packed, name, value)
        ]
        rows = _read_point_rows(txn, files, selection, keys)
    return RowChunk(bounds.clip(rows), None if finished else last + b"\0")


def _mark_matches(packed: bytes, name: bytes, value: bytes | None) -> bool:
    found = unpack_columns(packed).get(name)
    return found is not None and (value is None or found == value)


def _read_point_rows(
    txn: lmdb.Transaction[bytes], files: TableFiles, selection: DatabaseSelection, keys: Sequence[bytes]
) -> PackedRows:
    """Return the rows of ``keys`` (sorted) that have a selected cell; all of them if nothing is selected."""
    if not selection.database_names:
        return [(key, ()) for key in keys]
    found = [point_read(txn, files.database_handle(name), keys) for name in selection.database_names]
    if not any(found):  # usual for new seeds and links
        return []
    rows = zip(keys, zip(*(map(run.get, keys) for run in found), strict=True), strict=True)
    return [(key, row) for key, row in rows if selection.has_cell(row)]


def point_read(
    txn: lmdb.Transaction[bytes], handle: lmdb._Database | None, keys: Sequence[bytes]
) -> dict[bytes, bytes]:
    """Return the packed values of those ``keys`` (sorted) that exist."""
    if handle is None:
        return {}
    if len(keys) == 1 and lmdb_key(keys[0]) == keys[0]:
        value = txn.get(keys[0], db=handle) if keys[0] else None
        return {} if value is None else {keys[0]: value}
    short = [key for key in keys if key and lmdb_key(key) == key]
    found: dict[bytes, bytes] = dict(txn.cursor(handle).getmulti(short))
    if len(short) < len(keys):
        for key in keys:
            if lmdb_key(key) != key:
                bucket = txn.get(lmdb_key(key), db=handle)
                packed = None if bucket is None else unpack_bucket(lmdb_key(key), bucket).get(key)
                if packed is not None:
                    found[key] = packed
    return found


def read_rows(files: TableFiles, selection: DatabaseSelection, keys: Iterable[bytes]) -> dict[bytes, PackedRow]:
    """Return the rows of those ``keys`` that exist, including contents."""
    ordered = sorted(set(keys))
    rows: dict[bytes, PackedRow] = {}
    families = max(1, len(selection.database_names))
    size = max(1, POINT_READS // families)
    for at in range(0, len(ordered), size):
        part = ordered[at : at + size]
        lost: dict[bytes, bytes] = {}
        while part:
            with files.read_transaction(len(part) * families) as txn:
                found = _read_point_rows(txn, files, selection, part)
            if selection.content_index is None:
                rows.update(found)
                break
            # rows with contents that another process has replaced meanwhile are read again
            filled, part = blobs.load_contents(files, selection.content_index, found)
            rows.update(filled)
            former, missing = lost, frozenset(part)
            lost = {key: row[selection.content_index] for key, row in found if key in missing}
            for key, reference in lost.items():
                if former.get(key) == reference:  # not replaced, so it is lost
                    raise DamagedCellsError(f"row {key.decode('utf-8', 'replace')}: its content is missing")
    return rows


def scan_rows(
    get_files: Callable[[], TableFiles],
    selection: DatabaseSelection,
    key_range: KeyRange,
    mark: MarkCondition | None = None,
) -> Iterator[tuple[bytes, PackedRow]]:
    """Yield the rows of a range. ``get_files`` returns the open files, and is called for each chunk."""
    bounds = KeyBounds(key_range)
    position: bytes | None = bounds.first_key
    size = FIRST_CHUNK
    while position is not None:
        if mark is None:
            chunk = scan_chunk(get_files(), selection, bounds, position, size)
            size = min(size * 4, CHUNK_ROWS)
        else:
            chunk = scan_marked_chunk(get_files(), selection, bounds, position, mark, size)
            size = min(size * 4, MAX_MARK_RUN) if len(chunk.rows) < CHUNK_ROWS else CHUNK_ROWS
        position = chunk.next_key
        if selection.content_index is None:
            yield from chunk.rows
        else:
            yield from _load_contents(get_files, selection, chunk.rows, mark)


def _load_contents(
    get_files: Callable[[], TableFiles], selection: DatabaseSelection, rows: PackedRows, mark: MarkCondition | None
) -> Iterator[tuple[bytes, PackedRow]]:
    index = not_none(selection.content_index, "index of the contents")
    for part in blobs.split_by_size(rows, index, _CONTENT_ROWS, _CONTENT_BYTES):
        filled, missing = blobs.load_contents(get_files(), index, part)
        if missing:  # another process has replaced them since this chunk was read
            again = read_marked_rows(get_files(), selection, missing, mark)
            filled = sorted({**dict(filled), **again}.items())
        yield from filled


def read_marked_rows(
    files: TableFiles, selection: DatabaseSelection, keys: Sequence[bytes], mark: MarkCondition | None
) -> dict[bytes, PackedRow]:
    """Return the rows of ``keys`` that exist and still have the mark."""
    if mark is not None:
        value = None if mark.value is None else encode_text(mark.value)
        with files.read_transaction(len(keys)) as txn:
            marks = point_read(txn, files.database_handle(MARKS_FAMILY), sorted(keys))
        keys = [key for key, packed in marks.items() if _mark_matches(packed, encode_text(mark.name), value)]
    return read_rows(files, selection, keys)


def scan_keys(get_files: Callable[[], TableFiles], key_range: KeyRange) -> Iterator[bytes]:
    """Yield the row keys of a range in order; of values, only buckets are read, which hold the long keys."""
    bounds = KeyBounds(key_range)
    position: bytes | None = bounds.first_key
    while position is not None:
        files = get_files()
        handles = [files.database_handle(name) for name in files.current_families()]
        places: set[bytes] = set()
        position_of_next: bytes | None = None
        with files.read_transaction() as txn:
            for handle in handles:
                cursor = txn.cursor(handle)
                if not (cursor.set_range(position) if position else cursor.first()):
                    continue
                run = list(islice(cursor.iternext(values=False), _KEYS_PER_READ))
                if len(run) == _KEYS_PER_READ and (position_of_next is None or run[-1] < position_of_next):
                    position_of_next = run[-1]
                places.update(run)
            found: list[bytes] = []
            for key in sorted(places):
                if (position_of_next is not None and key >= position_of_next) or (
                    bounds.end_key and key >= bounds.end_key
                ):
                    break
                found += _bucket_keys(txn, handles, key) if len(key) > LONGEST_KEY else [key]
        yield from (key for key in found if key >= bounds.start and (not bounds.stop or key < bounds.stop))
        position = (
            None if bounds.end_key and position_of_next and position_of_next >= bounds.end_key else position_of_next
        )


def _bucket_keys(
    txn: lmdb.Transaction[bytes], handles: Sequence[lmdb._Database | None], bucket_key: bytes
) -> list[bytes]:
    """Return the row keys of a bucket."""
    values = [value for handle in handles if (value := txn.get(bucket_key, db=handle)) is not None]
    return sorted({key for value in values for key in unpack_bucket(bucket_key, value)})
