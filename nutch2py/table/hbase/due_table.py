"""The derived table of what is due: ``<table of pages>_due``, whose rows are hints where rows of pages stand in time.

An entry's key is ``bucket`` (1 byte, by a checksum of the row key, so that writes and reads spread), ``slot`` (5 bytes,
the due time in ms shifted right by 22; what is no time counts as 0) and the row key. It is written before the row is
(:mod:`nutch2py.table.hbase.hbase_due_update`), with a time that is not before that of the row's cells. So, whatever is killed
when, a row of which the due time was written with the index has its entry, and an entry without such a row is stale.

The row :data:`STATE_ROW` says whether the entries can be trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from nutch2py.table.clock import CrawlClock
from nutch2py.table.due_index import TimeSpan
from nutch2py.table.hbase.hbase_admin import ColumnFamily, create_table
from nutch2py.table.hbase.thrift_client.gateways import Gateways
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, has_java_exception, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget, read_rows
from nutch2py.table.hbase.thrift_client.row_sender import RowSender
from nutch2py.table.hbase.thrift_client.wire import RowMutations

BUCKETS = 32
SLOT_BITS, SLOT_BYTES = 22, 5
_LAST_SLOT = (1 << 8 * SLOT_BYTES) - 1
_HEAD_BYTES = 1 + SLOT_BYTES
_TIME = struct.Struct(">q")
_FAMILY = b"d"
ENTRY_COLUMN = b"d:t"
STATE_ROW = b"\xffstate"
_MADE, _ROWS, _LOOKED, _DOUBT = b"d:made", b"d:rows", b"d:looked", b"d:doubt"
_ENTRIES_PER_CALL = 1_000  # entries in one call


class DueTableEntry(NamedTuple):
    """An entry: its key, and the time (ms) at which it was written."""

    entry_key: bytes
    written_at: int

    @property
    def slot(self) -> bytes:
        """The slot that it stands in."""
        return self.entry_key[1:_HEAD_BYTES]

    @property
    def key(self) -> bytes:
        """The key of the row."""
        return self.entry_key[_HEAD_BYTES:]


class DueTableState(NamedTuple):
    """What is known of the entries.

    ``completed_at``: when they were complete for the first time, ms since 1970, 0 while they are being made. ``row_count``: how many
    rows the table had when all were looked at, and ``scanned_at`` when that was, 0 for never. ``invalid_reason``: why they cannot be
    trusted.
    """

    completed_at: int = 0
    row_count: int = 0
    scanned_at: int = 0
    invalid_reason: str = ""


def slot(time: int) -> bytes:
    """Return the slot of a due time (ms since 1970)."""
    return min(max(time, 0) >> SLOT_BITS, _LAST_SLOT).to_bytes(SLOT_BYTES, "big")


def slot_of_cell(cell: bytes | None) -> bytes:
    """Return the slot by the cell of a due time; one of another type counts as 0, so that generate meets the row."""
    return slot(_TIME.unpack(cell)[0] if cell is not None and len(cell) == _TIME.size else 0)


def make_entry_key(key: bytes, of_slot: bytes) -> bytes:
    """Return the key of the entry of a row."""
    return bytes((crc32(key) % BUCKETS,)) + of_slot + key


def slot_ranges(spans: Sequence[TimeSpan]) -> list[tuple[bytes, bytes]]:
    """Return the slots of some spans of time, from the first up to that behind the last; none overlaps another."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((int.from_bytes(slot(span.first)), int.from_bytes(slot(span.last))) for span in spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return [(a.to_bytes(SLOT_BYTES), (b + 1).to_bytes(SLOT_BYTES) if b < _LAST_SLOT else b"") for a, b in found]


class DueTable:
    """The derived table that belongs to ``pages``, the full name of a table of pages."""

    def __init__(self, gateways: Gateways, pages: bytes, clock: CrawlClock) -> None:
        self.gateways, self.name, self._clock = gateways, pages + b"_due", clock
        self._sender = RowSender(gateways, self.name, lambda: frozenset({_FAMILY}), lambda _row, _reason: None)

    def state(self) -> DueTableState | None:
        """Return what is known of the entries, None when there is no such table or it was never begun."""
        try:
            rows = read_rows(self.gateways, self.name, [STATE_ROW], None, RowBudget(1, 1 << 20))
        except SERVER_ERRORS as error:
            if has_java_exception(error, "TableNotFoundException", "NamespaceNotFoundException"):
                return None
            raise to_store_error(error, self.name.decode(), self.gateways.where) from error
        found = rows.get(STATE_ROW)
        if found is None:
            return None
        cells = {column: cell.value for column, cell in found.items()}
        made, rows_then, looked = (int(cells.get(name) or 0) for name in (_MADE, _ROWS, _LOOKED))
        return DueTableState(made, rows_then, looked, cells.get(_DOUBT, b"").decode("utf-8", "replace"))

    def create(self) -> None:
        """Make the table unless it is there, and set its state if it has none: complete, for there are no rows yet."""
        self._create_table()
        if self.state() is None:
            now = self._clock.next()
            self._write_state({_MADE: b"%d" % now, _ROWS: b"0", _LOOKED: b"%d" % now})

    def start_build(self) -> None:
        """Make the table anew; from now on jobs keep it, and it is not to be read before it is complete."""
        self.drop()
        self._create_table()
        self._write_state({_MADE: b"0"})

    def finish_build(self, row_count: int) -> None:
        """Say that every row, of which there are so many, has its entry."""
        now = self._clock.next()
        self._write_state({_MADE: b"%d" % now, _ROWS: b"%d" % row_count, _LOOKED: b"%d" % now})

    def record_full_scan(self, row_count: int) -> None:
        """Say that every row was looked at, and that there are so many."""
        self._write_state({_ROWS: b"%d" % row_count, _LOOKED: b"%d" % self._clock.next()})

    def invalidate(self, reason: str) -> None:
        """Say why the entries are not to be trusted any more, until they are made anew."""
        self._write_state({_DOUBT: reason.encode()})

    def _create_table(self) -> None:
        compression = (self.gateways.settings.compression or "NONE").upper()
        create_table(self.gateways, self.name, [ColumnFamily(_FAMILY, compression=compression)])

    def drop(self) -> None:
        """Delete the table, if it is there."""
        try:
            self.gateways.call(lambda link: link.is_table_enabled(self.name) and link.disable_table(self.name))
            self.gateways.call(lambda link: link.delete_table(self.name))
        except SERVER_ERRORS as error:
            if not has_java_exception(error, "TableNotFoundException", "NamespaceNotFoundException"):
                raise to_store_error(error, self.name.decode(), self.gateways.where) from error

    def _write_state(self, cells: dict[bytes, bytes]) -> None:
        self._sender.send({self._clock.next(): {STATE_ROW: {**cells}}})

    def add_entries(self, entry_keys: Iterable[bytes]) -> None:
        """Write entries; they are durable when it returns."""
        now = self._clock.next()
        found = sorted(set(entry_keys))
        for at in range(0, len(found), _ENTRIES_PER_CALL):
            rows: RowMutations = {each: {ENTRY_COLUMN: b""} for each in found[at : at + _ENTRIES_PER_CALL]}
            self._sender.send({now: rows})

    def find_missing(self, entry_keys: Sequence[bytes], budget: RowBudget) -> list[bytes]:
        """Return those of ``entry_keys`` at which no entry stands."""
        if not entry_keys:
            return []
        try:
            there = read_rows(self.gateways, self.name, entry_keys, [ENTRY_COLUMN], budget)
        except SERVER_ERRORS as error:
            raise to_store_error(error, self.name.decode(), self.gateways.where) from error
        return [each for each in entry_keys if each not in there]

    def delete_entries(self, entries: Iterable[DueTableEntry]) -> None:
        """Delete entries as they were read: one that was written since stays."""
        groups: dict[int, RowMutations] = {}
        for entry in entries:
            groups.setdefault(entry.written_at, {})[entry.entry_key] = {ENTRY_COLUMN: None}
        self._sender.send(groups)
