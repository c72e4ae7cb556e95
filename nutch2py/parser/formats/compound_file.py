"""Compound files ([MS-CFB]): their streams, the summary in them, and the code pages of Windows."""

from __future__ import annotations

import io
import struct
from datetime import datetime, timedelta

from nutch2py.parser.formats.parsed_document import Document, Unreadable

_MAX_STREAM = 256 << 20
_PROPERTIES = {
    2: "title", 4: "dc:creator", 3: "dc:subject", 5: "meta:keyword", 6: "dc:description", 8: "meta:last-author",
    12: "dcterms:created", 13: "dcterms:modified", 14: "xmpTPg:NPages", 18: "extended-properties:Application",
}  # fmt: skip
_EPOCH = datetime(1601, 1, 1)


class OleFile:
    """The streams of a compound file by path, without regard to case."""

    def __init__(self, content: bytes) -> None:
        import olefile

        try:
            self._file = olefile.OleFileIO(io.BytesIO(content), raise_defects=olefile.DEFECT_FATAL)
            self.paths: list[list[str]] = self._file.listdir()
        except Exception as error:  # noqa: BLE001 - olefile raises whatever its arithmetic ends in
            raise Unreadable(f"compound file: {error}") from None

    def read(self, path: list[str]) -> bytes:
        """Return a stream; raise :class:`Unreadable` when its sectors are not there."""
        try:
            with self._file.openstream(path) as stream:
                found: bytes = stream.read(_MAX_STREAM)
                return found
        except Exception as error:  # noqa: BLE001 - see above
            raise Unreadable(f"stream {'/'.join(path)}: {error}") from None

    def get(self, folder: list[str], name: str) -> bytes:
        """Return a stream of a folder, b"" when there is none."""
        wanted = [part.lower() for part in [*folder, name]]
        path = next((path for path in self.paths if [part.lower() for part in path] == wanted), None)
        return b"" if path is None else self.read(path)

    def describe(self, document: Document) -> None:
        """Set title, author and dates of the summary; a broken summary costs nothing else."""
        try:
            values = read_summary(self.get([], "\x05SummaryInformation"))
        except (Unreadable, struct.error, IndexError):
            return
        for number, label in _PROPERTIES.items():
            document.describe(label, values.get(number))


def read_summary(stream: bytes) -> dict[int, str]:
    """Return property number -> value of a summary stream ([MS-OLEPS]): text, dates and numbers, 100 at most.

    olefile reads them too, but believes counts that a broken file claims, and is then busy for minutes.
    """
    if len(stream) < 48:
        return {}
    (start,) = struct.unpack_from("<I", stream, 44)
    (count,) = struct.unpack_from("<I", stream, start + 4)
    found: dict[int, tuple[int, int]] = {}
    for index in range(min(count, 100)):
        number, offset = struct.unpack_from("<II", stream, start + 8 + 8 * index)
        (kind,) = struct.unpack_from("<H", stream, start + offset)
        found[number] = (kind, start + offset + 4)
    encoding = codepage(struct.unpack_from("<H", stream, found[1][1])[0] if 1 in found else None)
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


def codepage(number: int | None) -> str:
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
