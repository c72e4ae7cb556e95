"""The derived table of what is due: ``<table of pages>_due``, whose rows are hints where rows of pages stand in time.

An entry's key is ``bucket`` (1 byte, by a checksum of the row key, so that writes and reads spread), ``slot`` (5 bytes,
the due time in ms shifted right by 22; what is no time counts as 0) and the row key. It is written before the row is
(:mod:`nutch2py.table.hbase.listing`), with a time that is not before that of the row's cells. So, whatever is killed
when, a row of which the due time was written with the index has its entry, and an entry without such a row is stale.

The row :data:`STATE` says whether the entries can be trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from nutch2py.table.clock import CrawlClock
from nutch2py.table.due import Span
from nutch2py.table.hbase.admin import Family, create_table
from nutch2py.table.hbase.failures import ANSWERS, explained, threw
from nutch2py.table.hbase.gateways import Gateways
from nutch2py.table.hbase.scan import RowBudget, read_rows
from nutch2py.table.hbase.sending import RowSender
from nutch2py.table.hbase.wire import Rows

BUCKETS = 32
SLOT_BITS, SLOT_BYTES = 22, 5
_LAST_SLOT = (1 << 8 * SLOT_BYTES) - 1
_HEAD = 1 + SLOT_BYTES
_TIME = struct.Struct(">q")
_FAMILY = b"d"
ENTRY = b"d:t"
STATE = b"\xffstate"
_MADE, _ROWS, _LOOKED, _DOUBT = b"d:made", b"d:rows", b"d:looked", b"d:doubt"
_SENT = 1_000  # entries in one call


class Entry(NamedTuple):
    """An entry: its key, and the time (ms) at which it was written."""

    place: bytes
    written: int

    @property
    def slot(self) -> bytes:
        """The slot that it stands in."""
        return self.place[1:_HEAD]

    @property
    def key(self) -> bytes:
        """The key of the row."""
        return self.place[_HEAD:]


class State(NamedTuple):
    """What is known of the entries.

    ``made``: when they were complete for the first time, ms since 1970, 0 while they are being made. ``rows``: how many
    rows the table had when all were looked at, and ``looked`` when that was, 0 for never. ``doubt``: why they cannot be
    trusted.
    """

    made: int = 0
    rows: int = 0
    looked: int = 0
    doubt: str = ""


def slot(time: int) -> bytes:
    """Return the slot of a due time (ms since 1970)."""
    return min(max(time, 0) >> SLOT_BITS, _LAST_SLOT).to_bytes(SLOT_BYTES, "big")


def slot_of_cell(cell: bytes | None) -> bytes:
    """Return the slot by the cell of a due time; one of another type counts as 0, so that generate meets the row."""
    return slot(_TIME.unpack(cell)[0] if cell is not None and len(cell) == _TIME.size else 0)


def place(key: bytes, of_slot: bytes) -> bytes:
    """Return the key of the entry of a row."""
    return bytes((crc32(key) % BUCKETS,)) + of_slot + key


def ranges(spans: Sequence[Span]) -> list[tuple[bytes, bytes]]:
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

    def state(self) -> State | None:
        """Return what is known of the entries, None when there is no such table or it was never begun."""
        try:
            rows = read_rows(self.gateways, self.name, [STATE], None, RowBudget(1, 1 << 20))
        except ANSWERS as error:
            if threw(error, "TableNotFoundException", "NamespaceNotFoundException"):
                return None
            raise explained(error, self.name.decode(), self.gateways.where) from error
        found = rows.get(STATE)
        if found is None:
            return None
        cells = {column: cell.value for column, cell in found.items()}
        made, rows_then, looked = (int(cells.get(name) or 0) for name in (_MADE, _ROWS, _LOOKED))
        return State(made, rows_then, looked, cells.get(_DOUBT, b"").decode("utf-8", "replace"))

    def create(self) -> None:
        """Make the table unless it is there, and set its state if it has none: complete, for there are no rows yet."""
        self._make()
        if self.state() is None:
            now = self._clock.next()
            self._set({_MADE: b"%d" % now, _ROWS: b"0", _LOOKED: b"%d" % now})

    def begin(self) -> None:
        """Make the table anew; from now on jobs keep it, and it is not to be read before it is complete."""
        self.drop()
        self._make()
        self._set({_MADE: b"0"})

    def complete(self, rows: int) -> None:
        """Say that every row, of which there are so many, has its entry."""
        now = self._clock.next()
        self._set({_MADE: b"%d" % now, _ROWS: b"%d" % rows, _LOOKED: b"%d" % now})

    def looked(self, rows: int) -> None:
        """Say that every row was looked at, and that there are so many."""
        self._set({_ROWS: b"%d" % rows, _LOOKED: b"%d" % self._clock.next()})

    def doubt(self, why: str) -> None:
        """Say why the entries are not to be trusted any more, until they are made anew."""
        self._set({_DOUBT: why.encode()})

    def _make(self) -> None:
        compression = (self.gateways.settings.compression or "NONE").upper()
        create_table(self.gateways, self.name, [Family(_FAMILY, compression=compression)])

    def drop(self) -> None:
        """Delete the table, if it is there."""
        try:
            self.gateways.call(lambda link: link.is_table_enabled(self.name) and link.disable_table(self.name))
            self.gateways.call(lambda link: link.delete_table(self.name))
        except ANSWERS as error:
            if not threw(error, "TableNotFoundException", "NamespaceNotFoundException"):
                raise explained(error, self.name.decode(), self.gateways.where) from error

    def _set(self, cells: dict[bytes, bytes]) -> None:
        self._sender.send({self._clock.next(): {STATE: {**cells}}})

    def put(self, places: Iterable[bytes]) -> None:
        """Write entries; they are durable when it returns."""
        now = self._clock.next()
        found = sorted(set(places))
        for at in range(0, len(found), _SENT):
            rows: Rows = {each: {ENTRY: b""} for each in found[at : at + _SENT]}
            self._sender.send({now: rows})

    def missing(self, places: Sequence[bytes], budget: RowBudget) -> list[bytes]:
        """Return those of ``places`` at which no entry stands."""
        if not places:
            return []
        try:
            there = read_rows(self.gateways, self.name, places, [ENTRY], budget)
        except ANSWERS as error:
            raise explained(error, self.name.decode(), self.gateways.where) from error
        return [each for each in places if each not in there]

    def delete(self, entries: Iterable[Entry]) -> None:
        """Delete entries as they were read: one that was written since stays."""
        groups: dict[int, Rows] = {}
        for entry in entries:
            groups.setdefault(entry.written, {})[entry.place] = {ENTRY: None}
        self._sender.send(groups)
