"""Excel 2 to 2003 ([MS-XLS] and its forerunners): strings, numbers, text boxes, headers and links of a workbook."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from nutch2py.parser.formats.compound_file import codepage
from nutch2py.parser.formats.number_format import format_code, shown
from nutch2py.parser.formats.parsed_document import Document, Encrypted, Unreadable
from nutch2py.parser.formats.xls_password import unlocked_workbook

_CONTINUE, _FILEPASS, _SST, _BOUNDSHEET, _CODEPAGE, _HLINK = 0x3C, 0x2F, 0xFC, 0x85, 0x42, 0x1B8
_BOF = (0x0009, 0x0209, 0x0409, 0x0809)
_TEXTS = 100_000  # records of text boxes and notes


def records(stream: bytes) -> Iterator[tuple[int, bytes, list[int]]]:
    """Yield (type, data, offsets at which a continuation begins) of each record, continuations joined to it."""
    position, end = 0, len(stream)
    while position + 4 <= end:
        kind, size = struct.unpack_from("<HH", stream, position)
        data = bytearray(stream[position + 4 : position + 4 + size])
        position += 4 + size
        joints: list[int] = []
        while position + 4 <= end and stream[position : position + 2] == b"\x3c\x00":
            (size,) = struct.unpack_from("<H", stream, position + 2)
            joints.append(len(data))
            data += stream[position + 4 : position + 4 + size]
            position += 4 + size
        yield kind, bytes(data), joints


def read_workbook(stream: bytes, document: Document, *, opened: bool = False) -> None:
    """Add the sheets' names, then the cells a line a row, with the other texts between them.

    ``opened``: what was encrypted is open already.
    """
    reader = _Reader(document)
    first = True
    for kind, data, joints in records(stream):
        if first and kind not in _BOF:
            raise Unreadable("no workbook in the stream")
        first = False
        if kind == _FILEPASS and not opened:
            whole = unlocked_workbook(stream, data)
            if whole is None:
                raise Encrypted("the workbook needs a password")
            read_workbook(whole, document, opened=True)
            return
        try:
            reader.read(kind, data, joints)
        except (struct.error, IndexError, UnicodeDecodeError):
            continue  # one bad record must not cost the others
    if first:
        raise Unreadable("an empty workbook")
    reader.end_row()


class _Reader:
    """Takes the records of a workbook in order."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._version = 8
        self._encoding = "cp1252"
        self._strings: list[str] = []
        self._row = -1
        self._cells: list[str] = []
        self._width = 0  # characters of the row
        self._texts = 0
        self._formats: dict[int, str] = {}
        self._styles: list[int] = []
        self._readers: dict[int, Callable[[bytes, list[int]], None]] = {
            _SST: self._shared_strings, _BOUNDSHEET: self._sheet, 0xFD: self._shared, 0x204: self._label,
            0xD6: self._label, 0x04: self._label, 0x203: self._number, 0x03: self._number, 0x27E: self._packed,
            0xBD: self._many,
            0x06: self._formula, 0x206: self._formula, 0x406: self._formula, 0x207: self._string, 0x07: self._string,
            0x14: self._header, 0x15: self._header, 0x1B6: self._text_box, _HLINK: self._link, 0x1C: self._note,
            0x02: self._integer, 0x41E: self._format, 0xE0: self._style, 0x100D: self._series,
        }  # fmt: skip

    def read(self, kind: int, data: bytes, joints: list[int]) -> None:
        """Take one record."""
        if kind in _BOF:
            version = struct.unpack_from("<H", data)[0] if kind == 0x0809 else 0
            self._version = (
                {0x0600: 8, 0x0500: 5}.get(version, 8) if version else {9: 2, 0x209: 3, 0x409: 4}.get(kind, 8)
            )
            self.end_row()
        elif kind == _CODEPAGE:
            (number,) = struct.unpack("<H", data[:2])
            self._encoding = codepage({0x8000: 10000, 0x8001: 1252}.get(number, number))
        elif kind in self._readers:
            self._readers[kind](data, joints)

    def end_row(self) -> None:
        """Add the cells of the row so far."""
        self._document.add("\t".join(self._cells))
        self._cells.clear()
        self._width = 0

    def _cell(self, data: bytes, text: str) -> None:
        row = struct.unpack_from("<H", data)[0]
        if row != self._row:
            self.end_row()
            self._row = row
        self._add(text)

    def _add(self, text: str) -> None:
        self._width += len(text) + 1
        if text and self._width < self._document.room:  # a string that many cells show may be long
            self._cells.append(text)

    def _plain(self, data: bytes, offset: int, width: int) -> str:
        """Return a string: its length in ``width`` bytes, from Excel 97 a flag for UTF-16, then its characters."""
        length = data[offset] if width == 1 else struct.unpack_from("<H", data, offset)[0]
        offset += width
        if self._version < 8:
            return data[offset : offset + length].decode(self._encoding, "replace")
        wide = data[offset] & 1
        raw = data[offset + 1 : offset + 1 + length * (2 if wide else 1)]
        return raw.decode("utf-16-le" if wide else "latin-1", "replace")

    def _shared_strings(self, data: bytes, joints: list[int]) -> None:
        """Read the table of strings; where a string goes on in a continuation, a new flag byte stands."""
        (count,) = struct.unpack_from("<I", data, 4)
        breaks = [*joints, len(data)]
        position, at = 8, 0
        while len(self._strings) < count and position + 3 <= len(data):
            length, flags = struct.unpack_from("<HB", data, position)
            position += 3
            runs = extra = 0
            if flags & 8:
                (runs,) = struct.unpack_from("<H", data, position)
                position += 2
            if flags & 4:
                (extra,) = struct.unpack_from("<I", data, position)
                position += 4
            parts: list[str] = []
            while length > 0 and position < len(data):
                while breaks[at] <= position and at < len(breaks) - 1:
                    at += 1
                width = 2 if flags & 1 else 1
                taken = min(length, (breaks[at] - position) // width)
                parts.append(
                    data[position : position + taken * width].decode("utf-16-le" if flags & 1 else "latin-1", "replace")
                )
                position += taken * width
                length -= taken
                if length > 0:
                    if position >= len(data):
                        break
                    position = breaks[at]
                    if position >= len(data):
                        break
                    flags = data[position]
                    position += 1
            position += 4 * runs + extra
            self._strings.append("".join(parts))

    def _format(self, data: bytes, _: list[int]) -> None:
        self._formats[struct.unpack_from("<H", data)[0]] = self._plain(data, 2, 2 if self._version == 8 else 1)

    def _style(self, data: bytes, _: list[int]) -> None:
        self._styles.append(struct.unpack_from("<H", data, 2)[0])

    def _number_cell(self, data: bytes, number: str, offset: int = 4) -> None:
        """Take a number whose style stands at ``offset``."""
        (style,) = struct.unpack_from("<H", data, offset)
        known = self._version >= 5 and style < len(self._styles)
        self._cell(data, shown(number, format_code(self._styles[style], self._formats) if known else "General"))

    def _series(self, data: bytes, _: list[int]) -> None:
        self._document.add(self._plain(data, 2, 1))

    def _sheet(self, data: bytes, _: list[int]) -> None:
        self._document.add(self._plain(data, 6, 1))

    def _shared(self, data: bytes, _: list[int]) -> None:
        (index,) = struct.unpack_from("<I", data, 6)
        self._cell(data, self._strings[index])

    def _label(self, data: bytes, _: list[int]) -> None:
        self._cell(data, self._plain(data, 7, 1) if self._version == 2 else self._plain(data, 6, 2))

    def _number(self, data: bytes, _: list[int]) -> None:
        (number,) = struct.unpack_from("<d", data, 7 if self._version == 2 else 6)
        self._number_cell(data, repr(number))

    def _integer(self, data: bytes, _: list[int]) -> None:
        if self._version == 2:
            self._cell(data, str(struct.unpack_from("<H", data, 7)[0]))

    def _packed(self, data: bytes, _: list[int]) -> None:
        self._number_cell(data, _rk(data, 6))

    def _many(self, data: bytes, _: list[int]) -> None:
        for offset in range(4, len(data) - 7, 6):
            self._number_cell(data, _rk(data, offset + 2), offset)

    def _formula(self, data: bytes, _: list[int]) -> None:
        offset = 7 if self._version == 2 else 6
        if data[offset + 6 : offset + 8] != b"\xff\xff":  # else the result is a string, which follows, or none
            self._number_cell(data, repr(struct.unpack_from("<d", data, offset)[0]))

    def _string(self, data: bytes, _: list[int]) -> None:
        self._add(self._plain(data, 0, 1 if self._version == 2 else 2))

    def _header(self, data: bytes, _: list[int]) -> None:
        if data:
            self._document.add(self._plain(data, 0, 2 if self._version == 8 else 1))

    def _text_box(self, data: bytes, joints: list[int]) -> None:
        """Read a text box: its characters are in the first continuation."""
        self._texts += 1
        if joints and self._texts < _TEXTS:
            start = joints[0]
            (length,) = struct.unpack_from("<H", data, 10)
            wide = data[start] & 1
            raw = data[start + 1 : start + 1 + length * (2 if wide else 1)]
            self._document.add(raw.decode("utf-16-le" if wide else "latin-1", "replace"))

    def _note(self, data: bytes, _: list[int]) -> None:
        if self._version == 8:
            self._document.add(self._plain(data, 8, 2))  # who wrote it; the note itself is a text box
        else:
            self._document.add(data[6:].decode(self._encoding, "replace"))

    def _link(self, data: bytes, _: list[int]) -> None:
        moniker = data.find(b"\xe0\xc9\xea\x79\xf9\xba\xce\x11\x8c\x82\x00\xaa\x00\x4b\xa9\x0b")
        if moniker >= 0:
            (size,) = struct.unpack_from("<I", data, moniker + 16)
            self._document.link(
                data[moniker + 20 : moniker + 20 + size].decode("utf-16-le", "replace").partition("\0")[0]
            )


def _rk(data: bytes, offset: int) -> str:
    """Return a packed number: 30 bits of a float or an integer, perhaps times 100."""
    (packed,) = struct.unpack_from("<i", data, offset)
    number = (
        float(packed >> 2) if packed & 2 else struct.unpack("<d", struct.pack("<Q", (packed & 0xFFFFFFFC) << 32))[0]
    )
    return repr(number / 100 if packed & 1 else number)
