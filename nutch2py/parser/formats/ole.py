"""Office files before 2007 and Outlook messages: compound files (OLE), each told by the streams that it holds."""

from __future__ import annotations

import io
import struct
from datetime import datetime, timedelta

from nutch2py.conf import Configuration
from nutch2py.parser.formats.document import Document, DocumentParser, Encrypted, Unreadable
from nutch2py.parser.formats.nested import NestedDocuments, unpacking
from nutch2py.webpage import WebPage

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
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


class OleParser(DocumentParser):
    """Word, Excel, PowerPoint and Outlook files, with what is embedded in them."""

    content_types = (
        r"application/(?:msword|x-tika-msoffice(?:-.*)?"
        r"|vnd\.ms-(?:excel|powerpoint|outlook|works)(?:\.(?:sheet|workspace)\..*)?)"
    )

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._nested = NestedDocuments(conf)

    def read(self, content: bytes, document: Document, page: WebPage) -> None:
        """Read a compound file, or a sheet of Excel 2 to 4, which is none."""
        if content[:8] != _MAGIC:
            self._read_other(content, document)
            return
        ole = OleFile(content)
        ole.describe(document)
        folders: dict[str, list[tuple[list[str], str]]] = {}
        for path in ole.paths:
            folders.setdefault("/".join(path[:-1]), []).append((path[:-1], path[-1]))
        names = {name.lower() for _, name in folders.get("", [])}
        if "encryptedpackage" in names or "encryptedsummary" in names:
            raise Encrypted("the file needs a password")
        found = False
        with unpacking(self.conf):
            for place in sorted(folders, key=lambda place: (bool(place), place)):
                for folder, name in sorted(folders[place]):
                    found |= self._read_stream(ole, folder, name, document)
        if not found:
            raise Unreadable(f"compound file without a document: {', '.join(sorted(names))[:200]}")

    def _read_stream(self, ole: OleFile, folder: list[str], name: str, document: Document) -> bool:
        """Read the document that a stream is the main one of; tell whether it was one."""
        lower = name.lower()
        inner = bool(folder)
        try:
            if lower == "worddocument":
                from nutch2py.parser.formats.msword import read_word

                read_word(ole, folder, document)
            elif lower in ("workbook", "book"):
                from nutch2py.parser.formats.biff import read_workbook

                read_workbook(ole.get(folder, name), document)
            elif lower == "powerpoint document":
                from nutch2py.parser.formats.powerpoint import read_slides

                for embedded in read_slides(ole.get(folder, name), document):
                    self._nested.add(document, "", embedded)
            elif lower == "__properties_version1.0" and not any(part.startswith("__") for part in folder):
                from nutch2py.parser.formats.outlook import read_message

                for part, data in read_message(ole, folder, document):
                    self._nested.add(document, part, data)
            elif lower in ("package", "contents", "\x01ole10native"):
                data = ole.get(folder, name)
                label, data = native(data) if lower.endswith("native") else ("", data)
                before = len(document.text)
                self._nested.add(document, label, data)
                return len(document.text) > before
            else:
                return False
        except (Unreadable, struct.error, IndexError) as error:
            if not inner:
                raise Unreadable(str(error)) from None
        except Encrypted:
            if not inner:
                raise
        return True

    def _read_other(self, content: bytes, document: Document) -> None:
        if content[:1] == b"\x09" and content[1:2] in (b"\x00", b"\x02", b"\x04", b"\x08"):
            from nutch2py.parser.formats.biff import read_workbook

            read_workbook(content, document)
            return
        if content[:4] in (b"\xdb\xa5-\x00", b"\x31\xbe\x00\x00", b"\x9b\xa5\x21\x00"):
            raise Unreadable("a Word file older than Word 6")
        before = document.text
        self._nested.add(document, "", content)  # often HTML, RTF or a newer format under an old name
        if document.text == before:
            raise Unreadable("not a compound file")


def native(data: bytes) -> tuple[str, bytes]:
    """Return name and content of an embedded file (stream Ole10Native); the data itself when it is of another form."""
    try:
        position = 6
        name_end = data.index(b"\0", position)
        name = data[position:name_end].decode("cp1252", "replace")
        position = data.index(b"\0", name_end + 1) + 1 + 4
        (length,) = struct.unpack_from("<I", data, position)
        position += 4 + length
        (size,) = struct.unpack_from("<I", data, position)
        if position + 4 + size <= len(data):
            return name, data[position + 4 : position + 4 + size]
    except (ValueError, struct.error):
        pass
    return "", data[4:]
