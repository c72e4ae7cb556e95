"""Compound files ([MS-CFB]): streams, summary information and Windows code pages."""

from __future__ import annotations

import struct
import sys
from array import array
from datetime import datetime, timedelta

from nutch2py.parser.formats.document_parser import ParsedDocument, UnreadableDocumentError

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_BYTES, _ENTRY_BYTES, _MINI_SECTOR_BYTES = 512, 128, 64  # an entry is one of the directory
_STORAGE, _STREAM = 1, 2
_MAX_STREAM_BYTES = 256 << 20
_MAX_DEPTH = 32  # of nested storages
_MAX_READS = 16
_PROPERTIES = {
    2: "title", 4: "dc:creator", 3: "dc:subject", 5: "meta:keyword", 6: "dc:description", 8: "meta:last-author",
    12: "dcterms:created", 13: "dcterms:modified", 14: "xmpTPg:NPages", 18: "extended-properties:Application",
}  # fmt: skip
_EPOCH = datetime(1601, 1, 1)


class OleFile:
    """Reads the streams of a compound file by path, ignoring case.

    Work is bounded for hostile files: a chain has at most as many sectors as the file, each directory entry is read
    once, and the streams returned in total are at most 16 times the file plus 1 MiB.
    """

    def __init__(self, content: bytes) -> None:
        if len(content) < _HEADER_BYTES or content[:8] != OLE_MAGIC:
            raise UnreadableDocumentError("compound file: no header")
        shift, mini_shift = struct.unpack_from("<HH", content, 30)
        if shift not in (9, 12) or mini_shift != 6:
            raise UnreadableDocumentError(f"compound file: sectors of 2^{shift} bytes")
        self._content, self._sector_size = content, 1 << shift
        self._bytes_left = _MAX_READS * len(content) + (1 << 20)
        first, self._mini_stream_cutoff = struct.unpack_from("<I4xI", content, 48)
        minifat, _, difat = struct.unpack_from("<III", content, 60)
        self._fat = self._read_fat(difat)
        self._minifat = _read_uint32s(self._read_chain(minifat))
        self._entries: dict[tuple[str, ...], tuple[int, int]] = {}  # lower-case path -> first sector, size
        self._storages: dict[tuple[str, ...], list[str]] = {}  # lower-case path -> names of the storages in it
        self.paths: list[list[str]] = []
        root = self._read_directory(self._read_chain(first))
        self._ministream = self._read_chain(*root)

    def _read_sector(self, number: int) -> bytes:
        start = (number + 1) * self._sector_size
        return self._content[start : start + self._sector_size]

    def _read_fat(self, difat: int) -> array[int]:
        """Return the file allocation table, which maps each sector to the next one of its chain."""
        sectors = [*struct.unpack_from("<109I", self._content, 76)]
        most = len(self._content) // self._sector_size
        while difat < most and len(sectors) <= most:  # the list of the table's sectors continues in a chain
            numbers = _read_uint32s(self._read_sector(difat))
            if not numbers:
                break
            sectors += numbers[:-1]
            difat = numbers[-1]
        return _read_uint32s(b"".join([self._read_sector(sector) for sector in sectors[:most] if sector < most]))

    def _read_chain(self, start: int, size: int = _MAX_STREAM_BYTES) -> bytes:
        """Return the content of a chain of sectors, as far as it is intact."""
        parts: list[bytes] = []
        most = min(len(self._fat), -(-size // self._sector_size))
        while start < len(self._fat) and len(parts) < most:
            parts.append(self._read_sector(start))
            start = self._fat[start]
        return b"".join(parts)[:size]

    def _read_directory(self, directory: bytes) -> tuple[int, int]:
        """Read the directory; return first sector and size of the mini stream."""
        count = len(directory) // _ENTRY_BYTES
        if not count:
            raise UnreadableDocumentError("compound file: no directory")
        seen = {0}
        child, start, size = struct.unpack_from("<I36xII", directory, 76)
        waiting: list[tuple[int, tuple[str, ...]]] = [(child, ())]
        while waiting:
            number, folder = waiting.pop()
            if number >= count or number in seen:
                continue
            seen.add(number)
            at = number * _ENTRY_BYTES
            length, kind, left, right, child = struct.unpack_from("<HBxIII", directory, at + 64)
            raw = directory[at : at + max(0, min(length, 64) - 2)]
            path = (*folder, raw.decode("utf-16-le", "replace"))
            lower = tuple(part.lower() for part in path)
            waiting += ((left, folder), (right, folder))
            if kind == _STREAM and lower not in self._entries:
                self._entries[lower] = struct.unpack_from("<II", directory, at + 116)
                self.paths.append([*path])
            elif kind == _STORAGE and len(path) <= _MAX_DEPTH:
                self._storages.setdefault(lower[:-1], []).append(path[-1])
                waiting.append((child, path))
        return start, size

    def read_stream(self, path: list[str]) -> bytes:
        """Return a stream as far as its sectors exist.

        Raises:
            UnreadableDocumentError: Streams overlap: their total size exceeds the limit.
        """
        start, size = self._entries[tuple(part.lower() for part in path)]
        if size >= self._mini_stream_cutoff:
            found = self._read_chain(start, min(size, _MAX_STREAM_BYTES))
        else:
            parts: list[bytes] = []
            while start < len(self._minifat) and len(parts) * _MINI_SECTOR_BYTES < size:
                parts.append(self._ministream[start * _MINI_SECTOR_BYTES : (start + 1) * _MINI_SECTOR_BYTES])
                start = self._minifat[start]
            found = b"".join(parts)[:size]
        self._bytes_left -= len(found)
        if self._bytes_left < 0:
            raise UnreadableDocumentError(f"stream {'/'.join(path)} overlaps other streams")
        return found

    def get_stream(self, storage: list[str], name: str) -> bytes:
        """Return a stream of a storage, b"" when there is none."""
        path = [*storage, name]
        return self.read_stream(path) if tuple(part.lower() for part in path) in self._entries else b""

    def storages(self, storage: list[str]) -> list[str]:
        """Return the sorted names of the storages in a storage."""
        return sorted({*self._storages.get(tuple(part.lower() for part in storage), ())})

    def add_summary_metadata(self, document: ParsedDocument) -> None:
        """Set title, author and dates from the summary; a malformed summary is ignored."""
        try:
            values = read_summary(self.get_stream([], "\x05SummaryInformation"))
        except (UnreadableDocumentError, struct.error, IndexError):
            return
        for number, label in _PROPERTIES.items():
            document.set_metadata(label, values.get(number))


def _read_uint32s(raw: bytes) -> array[int]:
    numbers = array("I", raw[: len(raw) // 4 * 4])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def read_summary(stream: bytes) -> dict[int, str]:
    """Return property number -> value of a summary stream ([MS-OLEPS]): at most 100 texts, dates and numbers."""
    if len(stream) < 48:
        return {}
    (start,) = struct.unpack_from("<I", stream, 44)
    (count,) = struct.unpack_from("<I", stream, start + 4)
    found: dict[int, tuple[int, int]] = {}
    for index in range(min(count, 100)):
        number, offset = struct.unpack_from("<II", stream, start + 8 + 8 * index)
        (kind,) = struct.unpack_from("<H", stream, start + offset)
        found[number] = (kind, start + offset + 4)
    encoding = codepage_codec(struct.unpack_from("<H", stream, found[1][1])[0] if 1 in found else None)
    values: dict[int, str] = {}
    for number, (kind, offset) in found.items():
        if kind in (30, 31):  # text; the length is in bytes, or in UTF-16 characters
            (length,) = struct.unpack_from("<I", stream, offset)
            raw = stream[offset + 4 : offset + 4 + min(length, 10_000) * (kind - 29)]
            values[number] = raw.decode("utf-16-le" if kind == 31 else encoding, "replace").partition("\0")[0]
        elif kind == 64:
            (ticks,) = struct.unpack_from("<Q", stream, offset)  # 100 ns units since 1601
            if 0 < ticks < 2_650_467_744_000_000_000:  # up to the year 9999
                values[number] = (_EPOCH + timedelta(microseconds=ticks // 10)).replace(microsecond=0).isoformat()
        elif kind == 3 and number != 1:
            values[number] = str(struct.unpack_from("<i", stream, offset)[0] or "")
    return values


def codepage_codec(number: int | None) -> str:
    """Return Python's name of a Windows code page; windows-1252 when it is unknown."""
    import codecs

    number = (number or 1252) & 0xFFFF
    name = {65001: "utf-8", 1200: "utf-16-le", 10000: "mac-roman", 936: "gb18030", 932: "cp932"}.get(
        number, f"cp{number}"
    )
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name
