"""Writing: changes are collected by family and row, and applied in key order inside one write transaction."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nutch2py.cells import encode_text
from nutch2py.errors import StoreError
from nutch2py.record import Columns, Mutation
from nutch2py.table.clock import CrawlClock, now_ms
from nutch2py.table.embedded import content
from nutch2py.table.embedded.files import GARBAGE, SAMPLE, TableFiles, explained
from nutch2py.table.embedded.keeping import KEPT, Keeping, Written, is_kept, stamp
from nutch2py.table.embedded.mapped import pieces
from nutch2py.table.embedded.packing import (
    LONGEST_KEY,
    Change,
    changed,
    columns,
    pack_bucket,
    place,
    unpack_bucket,
)
from nutch2py.table.embedded.selection import CONTENT, content_database
from nutch2py.table.store import RowCells, WriteBatch

_SAMPLED = 1 << 24  # of the 1 << 32 values of a hash: one row in 256

Changes = dict[bytes, dict[bytes, Sequence[Change]]]
_NOTHING: Columns = {}


class EmbeddedBatch(WriteBatch):
    """Writes to an embedded table; flushed at ``most_rows`` changed rows or ``most_bytes`` of values.

    ``keeps``: with the rows the index of what is due and the figures, where the table has them.

    A flush that fails raises :class:`StoreError`, leaves the table as it was, and keeps what was collected.
    """

    def __init__(
        self,
        live: Callable[[], TableFiles],
        schema: str,
        where: str,
        most_rows: int,
        most_bytes: int,
        clock: CrawlClock,
        keeps: bool = False,
    ) -> None:
        self.schema, self._keeps = schema, keeps
        self._live, self._where, self._clock = live, where, clock
        self._most_rows, self._most_bytes = max(1, most_rows), max(1, most_bytes)
        self._content_column = CONTENT.get(schema, (b"", b""))
        self._content_database = content_database(schema)
        self._changes: Changes = {}
        self._families: list[bytes] | None = None  # those that a deletion goes through; looked up once a flush
        self._written = self._bytes = 0
        self._last: tuple[Mutation | None, int, bool] = (None, 0, False)
        self._alike: tuple[list[tuple[bytes, tuple[Change]]], int] = ([], 0)  # what that became, and its bytes

    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Collect changes to a row; with an explicit ``timestamp`` they leave newer cells as they are.

        A mutation that makes one row after the other, as of seeds that are alike, is looked at once a millisecond.
        """
        row, guarded = _row_key(key), timestamp is not None
        time = (self._clock.now() if timestamp is None else timestamp) - 1
        last, last_time, last_guarded = self._last
        if mutation is not last or time != last_time or guarded != last_guarded:
            self._last, self._alike = (mutation, time, guarded), _changes_of(mutation, time, guarded)
        changes, size = self._alike
        for family, made in changes:
            rows = self._changes.get(family)
            if rows is None or row in rows or family == self._content_column[0]:
                self._add(family, row, made[0])
            else:
                rows[row] = made
        self._count(size)

    def put_cells(self, key: str, cells: RowCells) -> None:
        """Collect cells with their own timestamps; newer ones in the table stay."""
        row, size = _row_key(key), 0
        for family, entries in cells.items():
            by_time: dict[int, Columns] = {}
            for qualifier, (value, time) in entries.items():
                by_time.setdefault(time, {})[qualifier] = value
                size += len(qualifier) + len(value)
            self._clock.see(max(by_time, default=0))
            for time, put in by_time.items():
                self._add(family, row, Change(False, (), put, time, True))
        self._count(size)

    def delete(self, key: str) -> None:
        """Collect the deletion of a row: all its cells in all families, foreign ones included."""
        row = _row_key(key)
        if self._families is None:
            with explained(self._where):
                self._families = self._live().families()
        for family in {*self._families, *self._changes}:
            self._add_change(family, row, Change(True, (), {}, self._clock.now(), False))
        self._count(0)

    def _add(self, family: bytes, row: bytes, change: Change) -> None:
        if family == self._content_column[0] and self._content_database:
            qualifier = self._content_column[1]
            if change.cleared or qualifier in change.puts or qualifier in change.deletes:
                self._add_content(qualifier, row, change)
                change = replace(
                    change,
                    puts={q: value for q, value in change.puts.items() if q != qualifier},
                    deletes=[q for q in change.deletes if q != qualifier],
                )
                if not (change.cleared or change.puts or change.deletes):
                    return
        self._add_change(family, row, change)

    def _add_change(self, family: bytes, row: bytes, change: Change) -> None:
        rows = self._changes.setdefault(family, {})
        listed = rows.get(row, ())
        if isinstance(listed, list):
            listed.append(change)
        else:  # rows that are alike may share it
            rows[row] = [*listed, change] if listed else (change,)

    def _add_content(self, qualifier: bytes, row: bytes, change: Change) -> None:
        assert self._content_database is not None
        value = change.puts.get(qualifier)
        change = replace(
            change,
            puts={} if value is None else {qualifier: content.compress(value)},
            deletes=[qualifier] if qualifier in change.deletes else (),
        )
        self._add_change(self._content_database, row, change)

    def _count(self, size: int) -> None:
        self._written += 1
        self._bytes += size
        if self._written >= self._most_rows or self._bytes >= self._most_bytes:
            self.flush()

    def pending(self) -> bool:
        """Tell whether something was collected that was not written."""
        return bool(self._changes)

    def _write(self) -> None:
        """Apply what was collected in one transaction; when it returns, that is on the disk."""
        with explained(self._where):
            self._apply(self._live())
        self._changes, self._families = {}, None
        self._last = (None, 0, False)
        self._written = self._bytes = 0

    def _apply(self, files: TableFiles) -> None:
        plain = {name: rows for name, rows in self._changes.items() if name != self._content_database}
        stored = self._changes.get(self._content_database, {}) if self._content_database else {}
        contents = [value for listed in stored.values() for change in listed for value in change.puts.values()]
        with files.writing(tuple(self._changes)) as (txn, handles):
            if not files.alive():
                raise StoreError(f"table {self._where} was dropped while it was being written: start the job again")
            first = files.write_contents(txn, handles, contents)
            if stored:
                self._apply_contents(txn, handles, stored, first, files.look)
            keeping = Keeping(txn, handles, files.look) if self._keeps and is_kept(txn, handles, txn.id() - 1) else None
            for name in sorted(plain):
                kept = keeping is not None and name in KEPT
                before, after = apply_changes(txn, handles[name], plain[name], files.look, reads_all=kept)
                if keeping is not None and kept:
                    keeping.saw(name, Written(plain[name], before, after))
            if keeping is not None:
                keeping.write()
                stamp(txn, handles)
            _note_sample(txn, handles[SAMPLE], max(self._changes.values(), key=len))

    def _apply_contents(
        self,
        txn: Any,
        handles: dict[bytes, Any],
        stored: dict[bytes, Sequence[Change]],
        number: int,
        look: Callable[[], object],
    ) -> None:
        """Write references to the contents just stored; note which contents no row refers to any more."""
        assert self._content_database is not None
        referring: dict[bytes, list[Change]] = {}
        new: set[bytes] = set()
        for row, listed in stored.items():
            numbered = []
            for change in listed:
                put = {}
                for qualifier, value in change.puts.items():
                    put[qualifier] = content.reference(number, value)
                    new.add(content.number_of(put[qualifier]))
                    number += 1
                numbered.append(replace(change, puts=put))
            referring[row] = numbered
        before, after = apply_changes(txn, handles[self._content_database], referring, look, reads_all=True)
        lost = (_numbers(before) | new) - _numbers(after)
        for garbage in sorted(lost):
            txn.put(garbage, b"", db=handles[GARBAGE])


def compare_and_set(
    files: TableFiles, where: str, place_of: tuple[bytes, bytes], key: str, expected: bytes | None, new: bytes | None
) -> bool:
    """Set the cell ``place_of`` (family, qualifier) of a row if it holds ``expected``, in one transaction."""
    (family, qualifier), row = place_of, _row_key(key)
    with explained(where), files.writing((family,)) as (txn, handles):
        if not files.alive():
            raise StoreError(f"table {where} was dropped while it was being written: start the job again")
        handle = handles[family]
        packed = txn.get(place(row), db=handle)
        if packed is not None and len(row) > LONGEST_KEY:
            packed = unpack_bucket(place(row), packed).get(row)
        found = None if packed is None else columns(packed).get(qualifier)
        if (found or None) != expected:
            return False
        put = _NOTHING if new is None else {qualifier: new}
        change = Change(False, [qualifier] if new is None else (), put, now_ms() - 1, False)
        apply_changes(txn, handle, {row: [change]}, files.look)
    return True


def _changes_of(mutation: Mutation, time: int, guarded: bool) -> tuple[list[tuple[bytes, tuple[Change]]], int]:
    """Return what a mutation does to each family, and the bytes of its values."""
    puts, deletes, cleared = mutation
    families = {*puts, *deletes, *cleared} if deletes or cleared else puts
    made = [
        (family, (Change(family in cleared, deletes.get(family, ()), puts.get(family, _NOTHING), time, guarded),))
        for family in families
    ]
    return made, sum(sum(map(len, put.values())) for put in puts.values())


def _row_key(key: str) -> bytes:
    if not key:
        raise ValueError("a row key cannot be empty")
    return encode_text(key)


def _numbers(values: dict[bytes, bytes]) -> set[bytes]:
    return {content.number_of(cell) for packed in values.values() for cell in columns(packed).values()}


def apply_changes(
    txn: Any, handle: Any, rows: Mapping[bytes, Sequence[Change]], look: Callable[[], object], reads_all: bool = False
) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Change a database; return the packed values of the rows before and after (rows that have none are left out).

    What is deleted whole is not read, and so not among those before, unless ``reads_all``. ``look`` is called after
    each piece.
    """
    keys = sorted(rows)
    short = keys if max(map(len, keys)) <= LONGEST_KEY else [key for key in keys if len(key) <= LONGEST_KEY]
    cursor = txn.cursor(handle)
    behind = not cursor.last() or (bool(short) and short[0] > cursor.key())  # new rows, all after the last there is
    if not reads_all and not behind:
        doomed = [key for key in short if rows[key][-1].wipes()]
        _delete(txn, handle, doomed, look)
        if doomed:
            short = [key for key in short if not rows[key][-1].wipes()]
    before: dict[bytes, bytes] = {}
    for piece in () if behind else pieces(short):
        before.update(cursor.getmulti(piece))
        look()
    after: dict[bytes, bytes] = {}
    puts: list[tuple[bytes, bytes]] = []
    gone: list[bytes] = []
    made: Change | None = None  # the last change that made a family: many a row is new with the same cells
    packed: bytes | None = None
    for key in short:
        old, listed = before.get(key), rows[key]
        if old is not None or len(listed) > 1:
            new = changed(old, listed)
        else:
            (change,) = listed
            if change is not made and (made is None or change.time != made.time or change.puts != made.puts):
                made, packed = change, changed(None, listed)
            new = packed
        if new is not None:
            after[key] = new
            if new != old:
                puts.append((key, new))
        elif old is not None:
            gone.append(key)
    _delete(txn, handle, gone, look)
    for some in pieces(puts):
        txn.cursor(handle).putmulti(some, append=behind)
        look()
    if max(map(len, keys)) > LONGEST_KEY:
        _apply_long(txn, handle, {key: rows[key] for key in keys if len(key) > LONGEST_KEY}, before, after)
    return before, after


def _delete(txn: Any, handle: Any, keys: Sequence[bytes], look: Callable[[], object]) -> None:
    for some in pieces(keys):
        for key in some:
            txn.delete(key, db=handle)
        look()


def _apply_long(
    txn: Any, handle: Any, rows: Mapping[bytes, Sequence[Change]], before: dict[bytes, bytes], after: dict[bytes, bytes]
) -> None:
    """Do the same for rows that lie in buckets."""
    buckets: dict[bytes, list[bytes]] = {}
    for key in rows:
        buckets.setdefault(place(key), []).append(key)
    for place_key, keys in buckets.items():
        value = txn.get(place_key, db=handle)
        bucket = {} if value is None else unpack_bucket(place_key, value)
        for key in keys:
            old = bucket.pop(key, None)
            new = changed(old, rows[key])
            if old is not None:
                before[key] = old
            if new is not None:
                bucket[key] = after[key] = new
        if not bucket:
            txn.delete(place_key, db=handle)
        elif pack_bucket(bucket) != value:
            txn.put(place_key, pack_bucket(bucket), db=handle)


def _note_sample(txn: Any, handle: Any, rows: dict[bytes, Sequence[Change]]) -> None:
    """Keep the sample of keys: one row in 256, the same whoever writes it.

    The product spreads the CRC, which alone is too regular over keys that count up.
    """
    for key, listed in rows.items():
        if (zlib.crc32(key) * 0x9E3779B1) & 0xFFFFFFFF < _SAMPLED:
            if listed[-1].cleared and not listed[-1].puts:
                txn.delete(place(key), db=handle)
            elif txn.get(place(key), db=handle) is None:
                txn.put(place(key), b"", db=handle)
