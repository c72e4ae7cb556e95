"""Compound files ([MS-CFB]): their streams, the summary in them, and the code pages of Windows."""

from __future__ import annotations

import struct
import sys
from array import array
from datetime import datetime, timedelta

from nutch2py.parser.formats.document_parser import ParsedDocument, UnreadableDocumentError

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_BYTES, _ENTRY_BYTES, _MINI_SECTOR_BYTES = (
    512,
    128,
    64,
)  # bytes of the header, of an entry of the directory, of a small sector
_STORAGE, _STREAM = 1, 2
_MAX_STREAM_BYTES = 256 << 20
_MAX_DEPTH = 32  # folders in each other
_MAX_READS = 16
_PROPERTIES = {
    2: "title", 4: "dc:creator", 3: "dc:subject", 5: "meta:keyword", 6: "dc:description", 8: "meta:last-author",
    12: "dcterms:created", 13: "dcterms:modified", 14: "xmpTPg:NPages", 18: "extended-properties:Application",
}  # fmt: skip
_EPOCH = datetime(1601, 1, 1)


class OleFile:
    """The streams of a compound file by path, without regard to case.

    Its tables may name anything: a sector is read once for each place in a chain, an entry of the directory once, and
    no more bytes are handed out than a healthy file holds, each of its streams read a few times.
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
        self._entries: dict[tuple[str, ...], tuple[int, int]] = {}  # path in lower case -> first sector, size
        self._storages: dict[tuple[str, ...], list[str]] = {}  # path in lower case -> names of the folders in it
        self.paths: list[list[str]] = []
        root = self._read_directory(self._read_chain(first))
        self._ministream = self._read_chain(*root)

    def _read_sector(self, number: int) -> bytes:
        start = (number + 1) * self._sector_size
        return self._content[start : start + self._sector_size]

    def _read_fat(self, difat: int) -> array[int]:
        """Return the table that names for each sector the next one of its chain."""
        places = [*struct.unpack_from("<109I", self._content, 76)]
        most = len(self._content) // self._sector_size
        while difat < most and len(places) <= most:  # the table of the table's sectors goes on in a chain
            numbers = _read_uint32s(self._read_sector(difat))
            if not numbers:
                break
            places += numbers[:-1]
            difat = numbers[-1]
        return _read_uint32s(b"".join([self._read_sector(place) for place in places[:most] if place < most]))

    def _read_chain(self, start: int, size: int = _MAX_STREAM_BYTES) -> bytes:
        """Return what a chain of sectors holds, as far as it goes."""
        parts: list[bytes] = []
        most = min(len(self._fat), -(-size // self._sector_size))
        while start < len(self._fat) and len(parts) < most:
            parts.append(self._read_sector(start))
            start = self._fat[start]
        return b"".join(parts)[:size]

    def _read_directory(self, directory: bytes) -> tuple[int, int]:
        """Take the entries of the directory; return first sector and size of what holds the small streams."""
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
        """Return a stream as far as its sectors are there; raise :class:`UnreadableDocumentError` when it overlaps others."""
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
            raise UnreadableDocumentError(f"stream {'/'.join(path)} overlaps others")
        return found

    def get_stream(self, storage: list[str], name: str) -> bytes:
        """Return a stream of a folder, b"" when there is none."""
        path = [*storage, name]
        return self.read_stream(path) if tuple(part.lower() for part in path) in self._entries else b""

    def storages(self, storage: list[str]) -> list[str]:
        """Return the names of the folders in a folder, sorted."""
        return sorted({*self._storages.get(tuple(part.lower() for part in storage), ())})

    def add_summary_metadata(self, document: ParsedDocument) -> None:
        """Set title, author and dates of the summary; a broken summary costs nothing else."""
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
    """Return property number -> value of a summary stream ([MS-OLEPS]): text, dates and numbers, 100 at most."""
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
    for number, (kind, place) in found.items():
        if kind in (30, 31):  # text, its length in bytes or in characters of UTF-16
            (length,) = struct.unpack_from("<I", stream, place)
            raw = stream[place + 4 : place + 4 + min(length, 10_000) * (kind - 29)]
            values[number] = raw.decode("utf-16-le" if kind == 31 else encoding, "replace").partition("\0")[0]
        elif kind == 64:
            (ticks,) = struct.unpack_from("<Q", stream, place)  # of 100 ns since 1601
            if 0 < ticks < 2_650_467_744_000_000_000:  # the last is the year 9999
                values[number] = (_EPOCH + timedelta(microseconds=ticks // 10)).replace(microsecond=0).isoformat()
        elif kind == 3 and number != 1:
            values[number] = str(struct.unpack_from("<i", stream, place)[0] or "")
    return values


def codepage_codec(number: int | None) -> str:
    """Return Python's name of a Windows code page; windows-1252 for what is unknown."""
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
