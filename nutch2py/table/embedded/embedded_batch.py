"""Collects changes by family and row, and applies them in key order in one write transaction."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

import lmdb
from msgspec.structs import replace

from nutch2py.errors import StoreError
from nutch2py.records.record import Columns, Mutation
from nutch2py.support.clock import now_ms
from nutch2py.support.invariants import not_none
from nutch2py.table.crawl_clock import CrawlClock
from nutch2py.table.data_store import RowCells, WriteBatch, encode_row_key
from nutch2py.table.embedded import blobs
from nutch2py.table.embedded.database_selection import CONTENT_COLUMNS, content_database
from nutch2py.table.embedded.embedded_due_update import (
    INDEXED_FAMILIES,
    EmbeddedDueUpdate,
    FamilyWrites,
    is_up_to_date,
    record_commit,
)
from nutch2py.table.embedded.storage.lmdb_errors import translate_errors
from nutch2py.table.embedded.storage.packing import (
    LONGEST_KEY,
    FamilyChange,
    lmdb_key,
    merge_changes,
    pack_bucket,
    unpack_bucket,
    unpack_columns,
)
from nutch2py.table.embedded.storage.resident_pages import pieces
from nutch2py.table.embedded.storage.table_files import GARBAGE_DATABASE, SAMPLE_DATABASE, TableFiles

_SAMPLE_THRESHOLD = 1 << 24  # of the 1 << 32 values of a hash: one row in 256

ChangesByFamily = dict[bytes, dict[bytes, Sequence[FamilyChange]]]
_NO_CELLS: Columns = {}


class EmbeddedBatch(WriteBatch):
    """Writes to an embedded table, flushed at ``max_rows`` changed rows or ``max_bytes`` of values.

    With ``keeps_due_index`` a flush also updates the due index and the statistics, if the table has them. A failed
    flush raises :class:`StoreError`, leaves the table unchanged, and keeps the collected writes.
    """

    def __init__(
        self,
        get_files: Callable[[], TableFiles],
        schema: str,
        where: str,
        max_rows: int,
        max_bytes: int,
        clock: CrawlClock,
        keeps_due_index: bool = False,
    ) -> None:
        self.schema, self._keeps_due_index = schema, keeps_due_index
        self._get_files, self._where, self._clock = get_files, where, clock
        self._max_rows, self._max_bytes = max(1, max_rows), max(1, max_bytes)
        self._content_column = CONTENT_COLUMNS.get(schema, (b"", b""))
        self._content_database = content_database(schema)
        self._changes: ChangesByFamily = {}
        self._families: list[bytes] | None = None  # families that a deletion clears; read once per flush
        self._row_count = self._byte_count = 0
        self._last_mutation: tuple[Mutation | None, int, bool] = (None, 0, False)
        self._last_changes: tuple[list[tuple[bytes, tuple[FamilyChange]]], int] = ([], 0)  # its changes and bytes

    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Collect changes to a row; with an explicit ``timestamp`` newer cells are kept.

        The changes of a mutation that is used for many rows in a row are computed once per millisecond.
        """
        row, guarded = encode_row_key(key), timestamp is not None
        time = (self._clock.now() if timestamp is None else timestamp) - 1
        last, last_time, last_guarded = self._last_mutation
        if mutation is not last or time != last_time or guarded != last_guarded:
            self._last_mutation, self._last_changes = (
                (mutation, time, guarded),
                _split_mutation(mutation, time, guarded),
            )
        changes, size = self._last_changes
        for family, made in changes:
            rows = self._changes.get(family)
            if rows is None or row in rows or family == self._content_column[0]:
                self._add(family, row, made[0])
            else:
                rows[row] = made
        self._count_write(size)

    def put_cells(self, key: str, cells: RowCells) -> None:
        """Collect cells with their own timestamps; newer cells in the table are kept."""
        row, size = encode_row_key(key), 0
        for family, entries in cells.items():
            by_time: dict[int, Columns] = {}
            for qualifier, (value, time) in entries.items():
                by_time.setdefault(time, {})[qualifier] = value
                size += len(qualifier) + len(value)
            self._clock.observe(max(by_time, default=0))
            for time, put in by_time.items():
                self._add(family, row, FamilyChange(False, (), put, time, True))
        self._count_write(size)

    def delete(self, key: str) -> None:
        """Collect the deletion of a row with all cells of all families."""
        row = encode_row_key(key)
        if self._families is None:
            with translate_errors(self._where):
                self._families = self._get_files().current_families()
        for family in {*self._families, *self._changes}:
            self._add_change(family, row, FamilyChange(True, (), {}, self._clock.now(), False))
        self._count_write(0)

    def _add(self, family: bytes, row: bytes, change: FamilyChange) -> None:
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

    def _add_change(self, family: bytes, row: bytes, change: FamilyChange) -> None:
        rows = self._changes.setdefault(family, {})
        listed = rows.get(row, ())
        if isinstance(listed, list):
            listed.append(change)
        else:  # equal rows may share the tuple
            rows[row] = [*listed, change] if listed else (change,)

    def _add_content(self, qualifier: bytes, row: bytes, change: FamilyChange) -> None:
        database = not_none(self._content_database, "database of contents")
        value = change.puts.get(qualifier)
        change = replace(
            change,
            puts={} if value is None else {qualifier: blobs.compress(value)},
            deletes=[qualifier] if qualifier in change.deletes else (),
        )
        self._add_change(database, row, change)

    def _count_write(self, size: int) -> None:
        self._row_count += 1
        self._byte_count += size
        if self._row_count >= self._max_rows or self._byte_count >= self._max_bytes:
            self.flush()

    def has_pending(self) -> bool:
        """Return whether the batch holds unwritten changes."""
        return bool(self._changes)

    def _write(self) -> None:
        """Apply the collected changes in one transaction; they are on disk when this returns."""
        with translate_errors(self._where):
            self._apply(self._get_files())
        self._changes, self._families = {}, None
        self._last_mutation = (None, 0, False)
        self._row_count = self._byte_count = 0

    def _apply(self, files: TableFiles) -> None:
        plain = {name: rows for name, rows in self._changes.items() if name != self._content_database}
        stored = self._changes.get(self._content_database, {}) if self._content_database else {}
        contents = [value for listed in stored.values() for change in listed for value in change.puts.values()]
        with files.write_transaction(tuple(self._changes)) as (txn, handles):
            if not files.is_usable():
                raise StoreError(f"table {self._where} was dropped during the write: start the job again")
            first = files.write_contents(txn, handles, contents)
            if stored:
                self._apply_contents(txn, handles, stored, first, files.release_mapped_pages)
            due_update = (
                EmbeddedDueUpdate(txn, handles, files.release_mapped_pages)
                if self._keeps_due_index and is_up_to_date(txn, handles, txn.id() - 1)
                else None
            )
            for name in sorted(plain):
                indexed = due_update is not None and name in INDEXED_FAMILIES
                before, after = apply_changes(
                    txn, handles[name], plain[name], files.release_mapped_pages, read_all=indexed
                )
                if due_update is not None and indexed:
                    due_update.add_family(name, FamilyWrites(plain[name], before, after))
            if due_update is not None:
                due_update.write()
                record_commit(txn, handles)
            _update_sample(txn, handles[SAMPLE_DATABASE], max(self._changes.values(), key=len))

    def _apply_contents(
        self,
        txn: lmdb.Transaction[bytes],
        handles: dict[bytes, lmdb._Database],
        stored: dict[bytes, Sequence[FamilyChange]],
        number: int,
        release_mapped_pages: Callable[[], object],
    ) -> None:
        """Write references to the contents just stored; record contents that no row refers to any more."""
        database = not_none(self._content_database, "database of contents")
        referring: dict[bytes, list[FamilyChange]] = {}
        new: set[bytes] = set()
        for row, listed in stored.items():
            numbered = []
            for change in listed:
                put = {}
                for qualifier, value in change.puts.items():
                    put[qualifier] = blobs.make_reference(number, value)
                    new.add(blobs.content_number(put[qualifier]))
                    number += 1
                numbered.append(replace(change, puts=put))
            referring[row] = numbered
        before, after = apply_changes(txn, handles[database], referring, release_mapped_pages, read_all=True)
        lost = (_content_numbers(before) | new) - _content_numbers(after)
        for garbage in sorted(lost):
            txn.put(garbage, b"", db=handles[GARBAGE_DATABASE])


def compare_and_set(
    files: TableFiles, where: str, column: tuple[bytes, bytes], key: str, expected: bytes | None, new: bytes | None
) -> bool:
    """Set the cell ``column`` (family, qualifier) of a row if it holds ``expected``, in one transaction."""
    (family, qualifier), row = column, encode_row_key(key)
    with translate_errors(where), files.write_transaction((family,)) as (txn, handles):
        if not files.is_usable():
            raise StoreError(f"table {where} was dropped during the write: start the job again")
        handle = handles[family]
        packed = txn.get(lmdb_key(row), db=handle)
        if packed is not None and len(row) > LONGEST_KEY:
            packed = unpack_bucket(lmdb_key(row), packed).get(row)
        found = None if packed is None else unpack_columns(packed).get(qualifier)
        if (found or None) != expected:
            return False
        put = _NO_CELLS if new is None else {qualifier: new}
        change = FamilyChange(False, [qualifier] if new is None else (), put, now_ms() - 1, False)
        apply_changes(txn, handle, {row: [change]}, files.release_mapped_pages)
    return True


def _split_mutation(
    mutation: Mutation, time: int, guarded: bool
) -> tuple[list[tuple[bytes, tuple[FamilyChange]]], int]:
    """Return the change of each family by a mutation, and the bytes of its values."""
    puts, deletes, cleared = mutation
    families = {*puts, *deletes, *cleared} if deletes or cleared else puts
    made = [
        (
            family,
            (FamilyChange(family in cleared, deletes.get(family, ()), puts.get(family, _NO_CELLS), time, guarded),),
        )
        for family in families
    ]
    return made, sum(sum(map(len, put.values())) for put in puts.values())


def _content_numbers(values: dict[bytes, bytes]) -> set[bytes]:
    return {blobs.content_number(cell) for packed in values.values() for cell in unpack_columns(packed).values()}


def apply_changes(
    txn: lmdb.Transaction[bytes],
    handle: lmdb._Database,
    rows: Mapping[bytes, Sequence[FamilyChange]],
    release_mapped_pages: Callable[[], object],
    read_all: bool = False,
) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Change a database; return the packed values before and after, without rows that have none.

    Values that are deleted as a whole are not read, and thus missing in the values before, unless ``read_all``.
    ``release_mapped_pages`` is called after each piece.
    """
    keys = sorted(rows)
    short = keys if max(map(len, keys)) <= LONGEST_KEY else [key for key in keys if len(key) <= LONGEST_KEY]
    cursor = txn.cursor(handle)
    appends = not cursor.last() or (bool(short) and short[0] > cursor.key())  # all rows are new, after the last one
    if not read_all and not appends:
        doomed = [key for key in short if rows[key][-1].is_wipe()]
        _delete_keys(txn, handle, doomed, release_mapped_pages)
        if doomed:
            short = [key for key in short if not rows[key][-1].is_wipe()]
    before: dict[bytes, bytes] = {}
    for piece in () if appends else pieces(short):
        before.update(cursor.getmulti(piece))
        release_mapped_pages()
    after: dict[bytes, bytes] = {}
    puts: list[tuple[bytes, bytes]] = []
    deleted: list[bytes] = []
    last_change: FamilyChange | None = None  # many new rows have the same cells, which are packed once
    packed: bytes | None = None
    for key in short:
        old, listed = before.get(key), rows[key]
        if old is not None or len(listed) > 1:
            new = merge_changes(old, listed)
        else:
            (change,) = listed
            if change is not last_change and (
                last_change is None or change.time != last_change.time or change.puts != last_change.puts
            ):
                last_change, packed = change, merge_changes(None, listed)
            new = packed
        if new is not None:
            after[key] = new
            if new != old:
                puts.append((key, new))
        elif old is not None:
            deleted.append(key)
    _delete_keys(txn, handle, deleted, release_mapped_pages)
    for some in pieces(puts):
        txn.cursor(handle).putmulti(some, append=appends)
        release_mapped_pages()
    if max(map(len, keys)) > LONGEST_KEY:
        _apply_to_buckets(txn, handle, {key: rows[key] for key in keys if len(key) > LONGEST_KEY}, before, after)
    return before, after


def _delete_keys(
    txn: lmdb.Transaction[bytes],
    handle: lmdb._Database,
    keys: Sequence[bytes],
    release_mapped_pages: Callable[[], object],
) -> None:
    for some in pieces(keys):
        for key in some:
            txn.delete(key, db=handle)
        release_mapped_pages()


def _apply_to_buckets(
    txn: lmdb.Transaction[bytes],
    handle: lmdb._Database,
    rows: Mapping[bytes, Sequence[FamilyChange]],
    before: dict[bytes, bytes],
    after: dict[bytes, bytes],
) -> None:
    """Apply changes to rows in buckets; add their values to ``before`` and ``after``."""
    buckets: dict[bytes, list[bytes]] = {}
    for key in rows:
        buckets.setdefault(lmdb_key(key), []).append(key)
    for place_key, keys in buckets.items():
        value = txn.get(place_key, db=handle)
        bucket = {} if value is None else unpack_bucket(place_key, value)
        for key in keys:
            old = bucket.pop(key, None)
            new = merge_changes(old, rows[key])
            if old is not None:
                before[key] = old
            if new is not None:
                bucket[key] = after[key] = new
        if not bucket:
            txn.delete(place_key, db=handle)
        elif pack_bucket(bucket) != value:
            txn.put(place_key, pack_bucket(bucket), db=handle)


def _update_sample(
    txn: lmdb.Transaction[bytes], handle: lmdb._Database, rows: dict[bytes, Sequence[FamilyChange]]
) -> None:
    """Update the sample of keys: one row in 256, chosen by its key.

    The multiplication spreads the CRC, which is too regular for keys that count up.
    """
    for key, listed in rows.items():
        if (zlib.crc32(key) * 0x9E3779B1) & 0xFFFFFFFF < _SAMPLE_THRESHOLD:
            if listed[-1].cleared and not listed[-1].puts:
                txn.delete(lmdb_key(key), db=handle)
            elif txn.get(lmdb_key(key), db=handle) is None:
                txn.put(lmdb_key(key), b"", db=handle)
