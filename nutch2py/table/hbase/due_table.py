"""Table of the HBase due index, ``<table of pages>_due``: entries that list rows of pages by due time.

An entry's key is ``bucket`` (1 byte, from a checksum of the row key, to distribute the load), ``slot`` (5 bytes, the
due time in ms shifted right by 22, 0 for invalid times) and the row key. The entry is written before the row
(:mod:`nutch2py.table.hbase.hbase_due_update`), with a timestamp not before that of the row's cells. So even after a
crash, a row written with the index has its entry, and an entry without a matching row is stale.

The row :data:`STATE_ROW` records whether the entries are valid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from nutch2py.table.crawl_clock import CrawlClock
from nutch2py.table.due_index import LAST_SLOT, SLOT_BYTES, TimeSpan, slot_of
from nutch2py.table.hbase.hbase_admin import ColumnFamily, create_table
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, has_java_exception, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget, read_rows
from nutch2py.table.hbase.thrift_client.row_sender import RowSender
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.wire import RowMutations

BUCKETS = 32
_HEAD_BYTES = 1 + SLOT_BYTES
_TIME = struct.Struct(">q")
_FAMILY = b"d"
ENTRY_COLUMN = b"d:t"
STATE_ROW = b"\xffstate"
_MADE, _ROWS, _LOOKED, _DOUBT = b"d:made", b"d:rows", b"d:looked", b"d:doubt"
_ENTRIES_PER_CALL = 1_000


class DueTableEntry(NamedTuple):
    """An entry: its key, and its cell timestamp (ms)."""

    entry_key: bytes
    written_at: int

    @property
    def slot(self) -> bytes:
        """The slot of the due time."""
        return self.entry_key[1:_HEAD_BYTES]

    @property
    def key(self) -> bytes:
        """The key of the row."""
        return self.entry_key[_HEAD_BYTES:]


class DueTableState(NamedTuple):
    """State of the entries. Times are in ms since 1970.

    Attributes:
        completed_at: Time when the index was first complete, 0 during a build.
        row_count: Number of rows of the table at the last full scan.
        scanned_at: Time of the last full scan, 0 for never.
        invalid_reason: Why the entries are invalid, "" if they are valid.
    """

    completed_at: int = 0
    row_count: int = 0
    scanned_at: int = 0
    invalid_reason: str = ""


def time_of_cell(cell: bytes | None) -> int | None:
    """Return the due time (ms since 1970) of a cell; None if the cell is missing or invalid."""
    return int(_TIME.unpack(cell)[0]) if cell is not None and len(cell) == _TIME.size else None


def slot_of_cell(cell: bytes | None) -> bytes:
    """Return the slot for the cell of a due time; invalid cells count as time 0, so that generate reads the row."""
    return slot_of(time_of_cell(cell) or 0)


def make_entry_key(key: bytes, slot: bytes) -> bytes:
    """Return the key of a row's entry in ``slot``."""
    return bytes((crc32(key) % BUCKETS,)) + slot + key


def slot_ranges(spans: Sequence[TimeSpan]) -> list[tuple[bytes, bytes]]:
    """Return the slots of time spans as disjoint ranges, from the first slot to the one after the last."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(
        (int.from_bytes(slot_of(span.first)), int.from_bytes(slot_of(span.last))) for span in spans
    ):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return [(a.to_bytes(SLOT_BYTES), (b + 1).to_bytes(SLOT_BYTES) if b < LAST_SLOT else b"") for a, b in found]


class DueTable:
    """The table of the due index for ``pages``, the full name of a table of pages."""

    def __init__(self, gateways: ThriftGatewayPool, pages: bytes, clock: CrawlClock) -> None:
        self.gateways, self.name, self._clock = gateways, pages + b"_due", clock
        self._sender = RowSender(gateways, self.name, lambda: frozenset({_FAMILY}), lambda _row, _reason: None)

    def state(self) -> DueTableState | None:
        """Return the state of the entries, None if the table does not exist or no build was started."""
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
        """Create the table unless it exists; without a state it is marked as complete, since there are no rows yet."""
        self._create_table()
        if self.state() is None:
            now = self._clock.next()
            self._write_state({_MADE: b"%d" % now, _ROWS: b"0", _LOOKED: b"%d" % now})

    def start_build(self) -> None:
        """Recreate the table; from now on jobs update it, but do not read it before it is complete."""
        self.drop()
        self._create_table()
        self._write_state({_MADE: b"0"})

    def finish_build(self, row_count: int) -> None:
        """Record that each of the ``row_count`` rows has its entry."""
        now = self._clock.next()
        self._write_state({_MADE: b"%d" % now, _ROWS: b"%d" % row_count, _LOOKED: b"%d" % now})

    def record_full_scan(self, row_count: int) -> None:
        """Record a full scan of ``row_count`` rows."""
        self._write_state({_ROWS: b"%d" % row_count, _LOOKED: b"%d" % self._clock.next()})

    def invalidate(self, reason: str) -> None:
        """Mark the entries as invalid until they are rebuilt."""
        self._write_state({_DOUBT: reason.encode()})

    def _create_table(self) -> None:
        compression = (self.gateways.settings.compression or "NONE").upper()
        create_table(self.gateways, self.name, [ColumnFamily(_FAMILY, compression=compression)])

    def drop(self) -> None:
        """Delete the table, if it exists."""
        try:
            self.gateways.call(lambda link: link.is_table_enabled(self.name) and link.disable_table(self.name))
            self.gateways.call(lambda link: link.delete_table(self.name))
        except SERVER_ERRORS as error:
            if not has_java_exception(error, "TableNotFoundException", "NamespaceNotFoundException"):
                raise to_store_error(error, self.name.decode(), self.gateways.where) from error

    def _write_state(self, cells: dict[bytes, bytes]) -> None:
        self._sender.send({self._clock.next(): {STATE_ROW: {**cells}}})

    def add_entries(self, entry_keys: Iterable[bytes]) -> None:
        """Write entries; they are durable when this returns."""
        now = self._clock.next()
        found = sorted(set(entry_keys))
        for at in range(0, len(found), _ENTRIES_PER_CALL):
            rows: RowMutations = {each: {ENTRY_COLUMN: b""} for each in found[at : at + _ENTRIES_PER_CALL]}
            self._sender.send({now: rows})

    def find_missing(self, entry_keys: Sequence[bytes], budget: RowBudget) -> list[bytes]:
        """Return those of ``entry_keys`` that do not exist."""
        if not entry_keys:
            return []
        try:
            found = read_rows(self.gateways, self.name, entry_keys, [ENTRY_COLUMN], budget)
        except SERVER_ERRORS as error:
            raise to_store_error(error, self.name.decode(), self.gateways.where) from error
        return [each for each in entry_keys if each not in found]

    def delete_entries(self, entries: Iterable[DueTableEntry]) -> None:
        """Delete entries with their timestamps, so that an entry written since is kept."""
        groups: dict[int, RowMutations] = {}
        for entry in entries:
            groups.setdefault(entry.written_at, {})[entry.entry_key] = {ENTRY_COLUMN: None}
        self._sender.send(groups)
