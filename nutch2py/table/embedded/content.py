"""Contents: compressed values with a number, and the cells in ``meta`` that refer to them.

Stored: one byte that tells the form, then the bytes: 1 zstd, whose frame ends in a checksum; 2 the CRC-32 (4 bytes,
big-endian) and the value as it is. Tables of layout 1 also have 0, the value as it is, and frames without. A reference
is the number (8 bytes, big-endian) and the stored size (4 bytes), so that readers can bound what they load at once.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nutch2py.table.embedded import packing

if TYPE_CHECKING:
    from nutch2py.table.embedded.files import TableFiles
    from nutch2py.table.embedded.selection import Row

_REFERENCE = struct.Struct(">QI")
_CHECKSUM = struct.Struct(">I")
_UNCHECKED, _ZSTD, _PLAIN = b"\0", b"\1", b"\2"
_WORTH_COMPRESSING = 64
_own = threading.local()


class Contents(dict[bytes, bytes]):
    """The loaded columns of a content database; ``packed``: the references they came from, with their times."""

    __slots__ = ("packed",)

    def __init__(self, loaded: dict[bytes, bytes], packed: bytes) -> None:
        super().__init__(loaded)
        self.packed = packed


def compress(value: bytes) -> bytes:
    """Return ``value`` as it is stored: zstd level 1 where that makes it smaller."""
    if len(value) >= _WORTH_COMPRESSING:
        if not hasattr(_own, "compressor"):
            import zstandard

            _own.compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        packed: bytes = _own.compressor.compress(value)
        if len(packed) < len(value):
            return _ZSTD + packed
    return _PLAIN + _CHECKSUM.pack(zlib.crc32(value)) + value


def decompress(stored: bytes) -> bytes:
    """Return the value that :func:`compress` stored; DamagedCellsError when it has changed."""
    form = stored[:1]
    if form == _UNCHECKED:
        return stored[1:]
    if form == _PLAIN:
        value = stored[1 + _CHECKSUM.size :]
        if stored[1 : 1 + _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(value)):
            raise packing.DamagedCellsError("the checksum of a content is wrong")
        return value
    if form != _ZSTD:
        raise packing.DamagedCellsError("a content has no known form")
    if not hasattr(_own, "decompressor"):
        import zstandard

        _own.decompressor = zstandard.ZstdDecompressor()
    try:
        found: bytes = _own.decompressor.decompress(stored[1:])
    except Exception as error:
        raise packing.DamagedCellsError(f"a content is damaged: {error}") from error
    return found


def reference(number: int, stored: bytes) -> bytes:
    """Return the cell that refers to a stored content."""
    return _REFERENCE.pack(number, len(stored))


def number_of(cell: bytes) -> bytes:
    """Return the number in a reference, as the key of the content."""
    return cell[:8]


def portions(
    rows: Sequence[tuple[bytes, Row]], at: int, most_rows: int, most_bytes: int
) -> Iterator[list[tuple[bytes, Row]]]:
    """Part rows into groups whose contents are worth loading at once; ``at``: where a row has its references."""
    part: list[tuple[bytes, Row]] = []
    size = 0
    for key, row in rows:
        part.append((key, row))
        if row[at] is not None:
            size += sum(_REFERENCE.unpack(cell)[1] for cell in packing.columns(row[at]).values())
        if size >= most_bytes or len(part) >= most_rows:
            yield part
            part, size = [], 0
    if part:
        yield part


def fill(files: TableFiles, at: int, rows: Sequence[tuple[bytes, Row]]) -> tuple[list[tuple[bytes, Row]], list[bytes]]:
    """Put the contents in the place of their references; return the rows and the keys whose content is gone."""
    cells = {key: packing.columns(row[at]) for key, row in rows if row[at] is not None}
    stored = files.read_contents([number_of(cell) for columns in cells.values() for cell in columns.values()])
    filled: list[tuple[bytes, Row]] = []
    missing: list[bytes] = []
    for key, row in rows:
        columns = cells.get(key)
        if columns is not None:
            if any(number_of(cell) not in stored for cell in columns.values()):
                missing.append(key)
                continue
            try:
                loaded = {qualifier: decompress(stored[number_of(cell)]) for qualifier, cell in columns.items()}
            except packing.DamagedCellsError as error:
                raise packing.DamagedCellsError(f"row {key.decode('utf-8', 'replace')}: {error}") from error
            row = (*row[:at], Contents(loaded, row[at]), *row[at + 1 :])
        filled.append((key, row))
    return filled, missing
