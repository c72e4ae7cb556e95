"""Page contents: compressed, numbered values in ``content``, and the cells in ``meta`` that refer to them.

A stored value starts with a format byte: 1, a zstd frame with a checksum; 2, the CRC-32 (4 bytes, big-endian) and the
plain value. Tables of layout 1 also have 0, the plain value, and zstd frames without a checksum. A reference is the
number (8 bytes, big-endian) and the stored size (4 bytes), so that readers can limit the bytes loaded at once.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nutch2py.table.embedded.storage import packing

if TYPE_CHECKING:
    from nutch2py.table.embedded.database_selection import PackedRow
    from nutch2py.table.embedded.storage.table_files import TableFiles

_REFERENCE = struct.Struct(">QI")
_CHECKSUM = struct.Struct(">I")
_UNCHECKED, _ZSTD, _PLAIN = b"\0", b"\1", b"\2"
_MIN_COMPRESSED_BYTES = 64
_per_thread = threading.local()


class LoadedContents(dict[bytes, bytes]):
    """The loaded columns of a content database; ``packed`` holds the references and their timestamps."""

    __slots__ = ("packed",)

    def __init__(self, loaded: dict[bytes, bytes], packed: bytes) -> None:
        super().__init__(loaded)
        self.packed = packed


def compress(value: bytes) -> bytes:
    """Return the stored form of ``value``: zstd level 1 if that is smaller."""
    if len(value) >= _MIN_COMPRESSED_BYTES:
        if not hasattr(_per_thread, "compressor"):
            import zstandard

            _per_thread.compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        packed: bytes = _per_thread.compressor.compress(value)
        if len(packed) < len(value):
            return _ZSTD + packed
    return _PLAIN + _CHECKSUM.pack(zlib.crc32(value)) + value


def decompress(stored: bytes) -> bytes:
    """Return the value that :func:`compress` stored; raise DamagedCellsError if it is damaged."""
    form = stored[:1]
    if form == _UNCHECKED:
        return stored[1:]
    if form == _PLAIN:
        value = stored[1 + _CHECKSUM.size :]
        if stored[1 : 1 + _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(value)):
            raise packing.DamagedCellsError("the checksum of a content is wrong")
        return value
    if form != _ZSTD:
        raise packing.DamagedCellsError("a content has an unknown format")
    if not hasattr(_per_thread, "decompressor"):
        import zstandard

        _per_thread.decompressor = zstandard.ZstdDecompressor()
    try:
        found: bytes = _per_thread.decompressor.decompress(stored[1:])
    except Exception as error:
        raise packing.DamagedCellsError(f"a content is damaged: {error}") from error
    return found


def make_reference(number: int, stored: bytes) -> bytes:
    """Return the cell that refers to a stored content."""
    return _REFERENCE.pack(number, len(stored))


def content_number(cell: bytes) -> bytes:
    """Return the number in a reference, as the key of the content."""
    return cell[:8]


def split_by_size(
    rows: Sequence[tuple[bytes, PackedRow]], content_index: int, max_rows: int, max_bytes: int
) -> Iterator[list[tuple[bytes, PackedRow]]]:
    """Split rows into groups of at most ``max_rows`` rows and about ``max_bytes`` bytes of contents.

    ``content_index`` is the index of the references in a row.
    """
    part: list[tuple[bytes, PackedRow]] = []
    size = 0
    for key, row in rows:
        part.append((key, row))
        if row[content_index] is not None:
            size += sum(_REFERENCE.unpack(cell)[1] for cell in packing.unpack_columns(row[content_index]).values())
        if size >= max_bytes or len(part) >= max_rows:
            yield part
            part, size = [], 0
    if part:
        yield part


def load_contents(
    files: TableFiles, content_index: int, rows: Sequence[tuple[bytes, PackedRow]]
) -> tuple[list[tuple[bytes, PackedRow]], list[bytes]]:
    """Replace references by their contents; return the rows, and the keys of rows with missing contents."""
    cells = {key: packing.unpack_columns(row[content_index]) for key, row in rows if row[content_index] is not None}
    stored = files.read_contents([content_number(cell) for columns in cells.values() for cell in columns.values()])
    filled: list[tuple[bytes, PackedRow]] = []
    missing: list[bytes] = []
    for key, row in rows:
        columns = cells.get(key)
        if columns is not None:
            if any(content_number(cell) not in stored for cell in columns.values()):
                missing.append(key)
                continue
            try:
                loaded = {qualifier: decompress(stored[content_number(cell)]) for qualifier, cell in columns.items()}
            except packing.DamagedCellsError as error:
                raise packing.DamagedCellsError(f"row {key.decode('utf-8', 'replace')}: {error}") from error
            row = (*row[:content_index], LoadedContents(loaded, row[content_index]), *row[content_index + 1 :])
        filled.append((key, row))
    return filled, missing
