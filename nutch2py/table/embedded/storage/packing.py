"""Byte format of rows in LMDB: keys of any length in exact order, and the cells of a family packed in one value.

**Keys.** LMDB's keys have at most 511 bytes, URLs may be longer. A row key of up to 500 bytes is its own LMDB key.
Longer keys share a *bucket* with the key ``first 500 bytes + 0x00`` and, as its value, the sorted list of ``(rest of
the key, cells)``. No short key has 501 bytes, and none sorts between a bucket's key and its rows, so the order of keys
is exact.

**Cells.** A family's cells are msgpack: ``[time, {qualifier: value}]``, with ``time`` as the cell timestamp (ms) of all
cells, or ``[time, {qualifier: value}, {qualifier: time}]`` if some cells have another timestamp. A row without a cell
in a family has no value there. The msgpack follows the byte 0xC1, which msgpack never uses, and its CRC-32 (4 bytes,
big-endian). Tables of layout 1 also have values without these five bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nutch2py.records.record import Columns
from nutch2py.table.data_store import CellTimes

LONGEST_KEY = 500
_CHECKSUM_MARK = 0xC1
_CHECKSUM_HEADER = struct.Struct(">BI")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
KeyBucket = dict[bytes, bytes]
"""Full row key -> packed cells, for rows with the same first 500 bytes of the key."""


_DECODE_ERRORS = (msgspec.DecodeError, ValueError, TypeError, IndexError, RecursionError, struct.error)
"""Errors that decoding arbitrary bytes can raise."""


class DamagedCellsError(Exception):
    """A packed value differs from what was written."""


class FamilyChange(msgspec.Struct, frozen=True, gc=False):
    """Change of one family of one row by one write: clear, then delete, then put.

    ``time`` is the timestamp (ms) of the cells put. ``keeps_newer`` keeps newer cells, as HBase does; it is set for
    writes with an explicit timestamp. Other writes are always the newest.
    """

    cleared: bool
    deletes: Collection[bytes]
    puts: Columns
    time: int
    keeps_newer: bool

    def is_wipe(self) -> bool:
        """Return whether the change deletes the whole family in any case."""
        return self.cleared and not self.keeps_newer and not self.puts


def lmdb_key(key: bytes) -> bytes:
    """Return the LMDB key of the row ``key``: the key itself, or that of its bucket."""
    return key if len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + b"\0"


def pack_bucket(rows: Mapping[bytes, bytes]) -> bytes:
    """Return the value of a bucket."""
    return _encode([(key[LONGEST_KEY:], rows[key]) for key in sorted(rows)])


def unpack_bucket(bucket_key: bytes, value: bytes) -> KeyBucket:
    """Return the rows of a bucket in key order; raise :class:`DamagedCellsError` if it is damaged."""
    head = bucket_key[:LONGEST_KEY]
    try:
        return {head + rest: packed for rest, packed in _decode(value)}
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise DamagedCellsError(f"a group of long keys cannot be read: {error}") from error


def expand_buckets(rows: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Replace each bucket of ``LMDB key -> value`` by its rows, in the same order."""
    if not rows or max(map(len, rows)) <= LONGEST_KEY:
        return rows
    full: dict[bytes, bytes] = {}
    for key, value in rows.items():
        if len(key) > LONGEST_KEY:
            full.update(unpack_bucket(key, value))
        else:
            full[key] = value
    return full


def needle(qualifier: bytes, value: bytes | None) -> bytes:
    """Return bytes that every packed value with this cell contains (other values may contain them, too)."""
    return _encode(qualifier) + (b"" if value is None else _encode(value))


def unpack_columns(packed: bytes) -> Columns:
    """Return the cells of a family without timestamps; raise :class:`DamagedCellsError` if they are damaged."""
    found: Columns = unpack(packed)[1]
    return found


def unpack_verified_columns(packed: bytes) -> Columns:
    """Return the cells of a family with a checksum that the caller has just verified or computed."""
    if packed[0] != _CHECKSUM_MARK:
        return unpack_columns(packed)
    found: Columns = _decode(packed[_CHECKSUM_HEADER.size :])[1]
    return found


def has_any_column(packed: bytes, qualifiers: Collection[bytes]) -> bool:
    """Return whether a family has a cell of ``qualifiers``; the checksum is not verified."""
    try:
        cells: Columns = _decode(packed[_CHECKSUM_HEADER.size :] if packed[0] == _CHECKSUM_MARK else packed)[1]
        return any(qualifier in cells for qualifier in qualifiers)
    except _DECODE_ERRORS as error:
        raise DamagedCellsError(str(error)) from error


def unpack_cells(packed: bytes) -> CellTimes:
    """Return the cells of a family with timestamps; raise :class:`DamagedCellsError` if they are damaged."""
    parts = unpack(packed)
    time = parts[0]
    if len(parts) == 2:
        return {qualifier: (value, time) for qualifier, value in parts[1].items()}
    others = parts[2]
    return {qualifier: (value, others.get(qualifier, time)) for qualifier, value in parts[1].items()}


def unpack(packed: bytes) -> list[Any]:
    """Return the parts of a packed row; raise an error when its checksum is wrong."""
    try:
        if packed[0] == _CHECKSUM_MARK:
            body = packed[_CHECKSUM_HEADER.size :]
            if zlib.crc32(body) != _CHECKSUM_HEADER.unpack_from(packed)[1]:
                raise DamagedCellsError("the checksum of a row's cells is wrong")
            decoded: list[Any] = _decode(body)
            return decoded
        parts: list[Any] = _decode(packed)  # layout 1, or a damaged first byte
    except _DECODE_ERRORS as error:
        raise DamagedCellsError(f"a row's cells cannot be read: {error}") from error
    if not _is_well_formed(parts):
        raise DamagedCellsError("a row's cells have an unknown format")
    return parts


def _is_well_formed(parts: object) -> bool:
    """Return whether a decoded value is a list of time, values by qualifier and, optionally, times by qualifier."""
    if type(parts) is not list or len(parts) not in (2, 3) or type(parts[0]) is not int:
        return False
    for part, kind in zip(parts[1:], (bytes, int), strict=False):
        if type(part) is not dict or not all(type(key) is bytes and type(value) is kind for key, value in part.items()):
            return False
    return True


def _add_checksum(parts: tuple[object, ...]) -> bytes:
    body = _encode(parts)
    return _CHECKSUM_HEADER.pack(_CHECKSUM_MARK, zlib.crc32(body)) + body


def _pack(time: int, cells: Columns, others: dict[bytes, int]) -> bytes | None:
    if not cells:
        return None
    if not others:
        return _add_checksum((time, cells))
    if len(others) == len(cells) and len(set(others.values())) == 1:
        return _add_checksum((others.popitem()[1], cells))
    if 2 * len(others) > len(cells):  # store the most common timestamp once
        times = {qualifier: others.get(qualifier, time) for qualifier in cells}
        time = Counter(times.values()).most_common(1)[0][0]
        others = {qualifier: own for qualifier, own in times.items() if own != time}
    return _add_checksum((time, cells, others)) if others else _add_checksum((time, cells))


def merge_changes(packed: bytes | None, changes: Sequence[FamilyChange]) -> bytes | None:
    """Return the packed value of a family after ``changes``, None if no cell remains."""
    if packed is None and len(changes) == 1:
        return _pack(changes[0].time, changes[0].puts, {})
    time = 0
    cells: Columns = {}
    others: dict[bytes, int] = {}
    if packed is not None:
        time, cells, *rest = unpack(packed)
        if rest:
            others = rest[0]
    for change in changes:
        doomed: Iterable[bytes] = list(cells) if change.cleared else change.deletes
        for qualifier in doomed:
            if qualifier in cells and not (change.keeps_newer and others.get(qualifier, time) > change.time):
                del cells[qualifier]
                others.pop(qualifier, None)
        new_time = change.time
        if not cells:
            time, cells, others = new_time, dict(change.puts), {}
            continue
        if not others and time <= new_time:  # no existing cell is newer
            cells.update(change.puts)
            if new_time != time:
                others = dict.fromkeys(change.puts, new_time)
            continue
        for qualifier, value in change.puts.items():
            if change.keeps_newer and qualifier in cells and others.get(qualifier, time) > new_time:
                continue
            cells[qualifier] = value
            if new_time == time:
                others.pop(qualifier, None)
            else:
                others[qualifier] = new_time
    return _pack(time, cells, others)
