"""Reading rows in short transactions: scans in chunks that continue after the last key, and point reads.

A chunk reads each database on its own, a run of neighbours at once, and joins the runs by key up to the smallest last
key: that costs little more than the values themselves. Nothing is held between two chunks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from nutch2py.cells import encode_text
from nutch2py.table.embedded import content
from nutch2py.table.embedded.files import TableFiles
from nutch2py.table.embedded.packing import (
    LONGEST_KEY,
    DamagedCellsError,
    columns,
    expand,
    needle,
    place,
    unpack_bucket,
)
from nutch2py.table.embedded.selection import Row, Selection
from nutch2py.table.query import KeyRange, MarkCondition

MARKS = b"mk"
CHUNK_ROWS, LONGEST_MARK_RUN, FIRST_CHUNK = 2_000, 20_000, 100
_POINT_READS = 2_000  # of all families, in one transaction
_KEYS = 5_000  # looked at in one transaction
_CONTENT_BYTES, _CONTENT_ROWS = 4 << 20, 256
Rows = list[tuple[bytes, Row]]


class Chunk(NamedTuple):
    """Rows in key order, and the LMDB key to continue from (None: the range is read to its end)."""

    rows: Rows
    next: bytes | None


class Bounds:
    """A key range in bytes, and the LMDB keys between which its rows lie."""

    def __init__(self, key_range: KeyRange) -> None:
        self.start, self.stop = encode_text(key_range.start), encode_text(key_range.stop)
        self.first = place(self.start)
        last = place(self.stop)
        self.end = last if last == self.stop else last + b"\0"  # the stop's own bucket is read and then cut

    def clip(self, rows: Rows) -> Rows:
        """Drop the rows of the first and last bucket that lie outside the range."""
        while rows and rows[0][0] < self.start:
            del rows[0]
        while self.stop and rows and rows[-1][0] >= self.stop:
            del rows[-1]
        return rows


def _run(txn: Any, handle: Any, start: bytes, end: bytes, limit: int) -> tuple[dict[bytes, bytes], bool]:
    """Return up to ``limit`` neighbours from ``start`` on, before ``end``, and whether there may be more."""
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


def scan_chunk(files: TableFiles, selection: Selection, bounds: Bounds, position: bytes, size: int) -> Chunk:
    """Read about ``size`` rows from the LMDB key ``position`` on."""
    runs: list[dict[bytes, bytes]] = []
    bound: bytes | None = None
    with files.reading() as txn:
        handles = [files.database(name) for name in selection.names]
        entries = [0 if handle is None else txn.stat(handle)["entries"] for handle in handles]
        most = max(entries, default=0)
        for handle, count in zip(handles, entries, strict=True):
            run, more = _run(txn, handle, position, bounds.end, 1 + size * count // max(1, most) + size // 16)
            runs.append(run)
            if more:
                last = next(reversed(run))
                bound = last if bound is None or last < bound else bound
    for index, run in enumerate(runs):
        if bound is not None and run and next(reversed(run)) > bound:
            run = dict(islice(run.items(), bisect_right(list(run), bound)))
        runs[index] = expand(run)
    return Chunk(bounds.clip(_join(runs, selection)), None if bound is None else bound + b"\0")


def _join(runs: list[dict[bytes, bytes]], selection: Selection) -> Rows:
    """Join the runs by key; drop rows of which no wanted cell is there."""
    if not runs:
        return []
    keys = list(runs[0])
    if all(len(run) == len(keys) and list(run) == keys for run in runs[1:]):
        rows = list(zip(keys, zip(*(run.values() for run in runs), strict=True), strict=True))
    else:
        keys = sorted(set().union(*runs))
        rows = list(zip(keys, zip(*(map(run.get, keys) for run in runs), strict=True), strict=True))
    if any(len(runs[index]) == len(keys) for index in selection.whole) or not selection.partial:
        return rows
    return [(key, row) for key, row in rows if selection.has_cell(row)]


def marked_chunk(
    files: TableFiles, selection: Selection, bounds: Bounds, position: bytes, mark: MarkCondition, size: int
) -> Chunk:
    """Look through a run of marks from ``position`` on; read the rows whose mark fits."""
    name = encode_text(mark.name)
    value = None if mark.value is None else encode_text(mark.value)
    wanted = needle(name, value)
    handle = files.database(MARKS)
    if handle is None:
        return Chunk([], None)
    with files.reading() as txn:
        cursor = txn.cursor(handle)
        if not (cursor.set_range(position) if position else cursor.first()):
            return Chunk([], None)
        hits = {key: packed for key, packed in islice(cursor.iternext(), size) if wanted in packed}
        last = cursor.key()
        finished = not last or bool(bounds.end and last >= bounds.end)
        if finished and bounds.end:
            hits = {key: packed for key, packed in hits.items() if key < bounds.end}
        keys = [key for key, packed in expand(hits).items() if wanted in packed and _fits(packed, name, value)]
        rows = _point_rows(txn, files, selection, keys)
    return Chunk(bounds.clip(rows), None if finished else last + b"\0")


def _fits(packed: bytes, name: bytes, value: bytes | None) -> bool:
    found = columns(packed).get(name)
    return found is not None and (value is None or found == value)


def _point_rows(txn: Any, files: TableFiles, selection: Selection, keys: Sequence[bytes]) -> Rows:
    """Return the rows of ``keys`` (sorted) that have a wanted cell; every one of them when nothing is wanted."""
    if not selection.names:
        return [(key, ()) for key in keys]
    found = [point_read(txn, files.database(name), keys) for name in selection.names]
    if not any(found):  # as of seeds and links that are new
        return []
    rows = zip(keys, zip(*(map(run.get, keys) for run in found), strict=True), strict=True)
    return [(key, row) for key, row in rows if selection.has_cell(row)]


def point_read(txn: Any, handle: Any, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the packed values of those ``keys`` (sorted) that are there."""
    if handle is None:
        return {}
    if len(keys) == 1 and place(keys[0]) == keys[0]:
        value = txn.get(keys[0], db=handle) if keys[0] else None
        return {} if value is None else {keys[0]: value}
    short = [key for key in keys if key and place(key) == key]
    found: dict[bytes, bytes] = dict(txn.cursor(handle).getmulti(short))
    if len(short) < len(keys):
        for key in keys:
            if place(key) != key:
                bucket = txn.get(place(key), db=handle)
                packed = None if bucket is None else unpack_bucket(place(key), bucket).get(key)
                if packed is not None:
                    found[key] = packed
    return found


def read_rows(files: TableFiles, selection: Selection, keys: Iterable[bytes]) -> dict[bytes, Row]:
    """Return the rows of those ``keys`` that are there, contents included."""
    ordered = sorted(set(keys))
    rows: dict[bytes, Row] = {}
    families = max(1, len(selection.names))
    size = max(1, _POINT_READS // families)
    for at in range(0, len(ordered), size):
        part = ordered[at : at + size]
        lost: dict[bytes, bytes] = {}
        while part:
            with files.reading(len(part) * families) as txn:
                found = _point_rows(txn, files, selection, part)
            if selection.content_at is None:
                rows.update(found)
                break
            filled, part = content.fill(files, selection.content_at, found)  # those replaced meanwhile are read again
            rows.update(filled)
            former, missing = lost, frozenset(part)
            lost = {key: row[selection.content_at] for key, row in found if key in missing}
            for key, reference in lost.items():
                if former.get(key) == reference:  # nobody has replaced it
                    raise DamagedCellsError(f"row {key.decode('utf-8', 'replace')}: its content is not there")
    return rows


def scan_rows(
    live: Callable[[], TableFiles], selection: Selection, key_range: KeyRange, mark: MarkCondition | None = None
) -> Iterator[tuple[bytes, Row]]:
    """Yield the rows of a range. ``live`` gives the open files anew for each chunk."""
    bounds = Bounds(key_range)
    position: bytes | None = bounds.first
    size = FIRST_CHUNK
    while position is not None:
        if mark is None:
            chunk = scan_chunk(live(), selection, bounds, position, size)
            size = min(size * 4, CHUNK_ROWS)
        else:
            chunk = marked_chunk(live(), selection, bounds, position, mark, size)
            size = min(size * 4, LONGEST_MARK_RUN) if len(chunk.rows) < CHUNK_ROWS else CHUNK_ROWS
        position = chunk.next
        if selection.content_at is None:
            yield from chunk.rows
        else:
            yield from _with_contents(live, selection, chunk.rows, mark)


def _with_contents(
    live: Callable[[], TableFiles], selection: Selection, rows: Rows, mark: MarkCondition | None
) -> Iterator[tuple[bytes, Row]]:
    assert selection.content_at is not None
    for part in content.portions(rows, selection.content_at, _CONTENT_ROWS, _CONTENT_BYTES):
        filled, missing = content.fill(live(), selection.content_at, part)
        if missing:  # another process has replaced them since this chunk was read
            again = read_marked(live(), selection, missing, mark)
            filled = sorted({**dict(filled), **again}.items())
        yield from filled


def read_marked(
    files: TableFiles, selection: Selection, keys: Sequence[bytes], mark: MarkCondition | None
) -> dict[bytes, Row]:
    """Return the rows of ``keys`` that are there and still have the mark."""
    if mark is not None:
        value = None if mark.value is None else encode_text(mark.value)
        with files.reading(len(keys)) as txn:
            marks = point_read(txn, files.database(MARKS), sorted(keys))
        keys = [key for key, packed in marks.items() if _fits(packed, encode_text(mark.name), value)]
    return read_rows(files, selection, keys)


def scan_keys(live: Callable[[], TableFiles], key_range: KeyRange) -> Iterator[bytes]:
    """Yield the row keys of a range in order; no value is read but those of buckets, which hold the long keys."""
    bounds = Bounds(key_range)
    position: bytes | None = bounds.first
    while position is not None:
        files = live()
        handles = [files.database(name) for name in files.families()]
        places: set[bytes] = set()
        position_of_next: bytes | None = None
        with files.reading() as txn:
            for handle in handles:
                cursor = txn.cursor(handle)
                if not (cursor.set_range(position) if position else cursor.first()):
                    continue
                run = list(islice(cursor.iternext(values=False), _KEYS))
                if len(run) == _KEYS and (position_of_next is None or run[-1] < position_of_next):
                    position_of_next = run[-1]
                places.update(run)
            found: list[bytes] = []
            for key in sorted(places):
                if (position_of_next is not None and key >= position_of_next) or (bounds.end and key >= bounds.end):
                    break
                found += _keys_in(txn, handles, key) if len(key) > LONGEST_KEY else [key]
        yield from (key for key in found if key >= bounds.start and (not bounds.stop or key < bounds.stop))
        position = None if bounds.end and position_of_next and position_of_next >= bounds.end else position_of_next


def _keys_in(txn: Any, handles: Sequence[Any], place_key: bytes) -> list[bytes]:
    """Return the keys of the rows that a bucket holds."""
    values = [value for handle in handles if (value := txn.get(place_key, db=handle)) is not None]
    return sorted({key for value in values for key in unpack_bucket(place_key, value)})
