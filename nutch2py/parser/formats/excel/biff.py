"""Excel 2 to 2003 (BIFF, [MS-XLS]): strings, numbers, text boxes, headers and links of a workbook."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from nutch2py.parser.formats.containers.compound_file import codepage_codec
from nutch2py.parser.formats.document_parser import EncryptedDocumentError, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.formats.excel.number_format import find_format_code, format_cell
from nutch2py.parser.formats.excel.xls_decryption import decrypt_workbook

_CONTINUE, _FILEPASS, _SST, _BOUNDSHEET, _CODEPAGE, _HLINK = 0x3C, 0x2F, 0xFC, 0x85, 0x42, 0x1B8
_BOF = (0x0009, 0x0209, 0x0409, 0x0809)
_MAX_TEXT_BOXES = 100_000  # records of text boxes and notes


def read_records(stream: bytes) -> Iterator[tuple[int, bytes, list[int]]]:
    """Yield (type, data, offsets where continuations start) of each record, with its continuations joined."""
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


def read_workbook(stream: bytes, document: ParsedDocument, *, is_decrypted: bool = False) -> None:
    """Add the sheet names, then one line per row of cells, with other texts between them.

    ``is_decrypted``: whether the stream is already decrypted.
    """
    reader = _WorkbookReader(document)
    first = True
    for kind, data, joints in read_records(stream):
        if first and kind not in _BOF:
            raise UnreadableDocumentError("no workbook in the stream")
        first = False
        if kind == _FILEPASS and not is_decrypted:
            whole = decrypt_workbook(stream, data)
            if whole is None:
                raise EncryptedDocumentError("the workbook needs a password")
            read_workbook(whole, document, is_decrypted=True)
            return
        try:
            reader.read_record(kind, data, joints)
        except (struct.error, IndexError, UnicodeDecodeError):
            continue  # one malformed record must not fail the others
    if first:
        raise UnreadableDocumentError("an empty workbook")
    reader.end_row()


class _WorkbookReader:
    """Processes the records of a workbook in order."""

    def __init__(self, document: ParsedDocument) -> None:
        self._document = document
        self._version = 8
        self._encoding = "cp1252"
        self._strings: list[str] = []
        self._row = -1
        self._cells: list[str] = []
        self._row_chars = 0  # characters of the current row
        self._text_boxes = 0
        self._formats: dict[int, str] = {}
        self._styles: list[int] = []
        self._record_readers: dict[int, Callable[[bytes, list[int]], None]] = {
            _SST: self._read_string_table,
            _BOUNDSHEET: self._read_sheet_name,
            _HLINK: self._read_hyperlink,
            0xFD: self._read_shared_string_cell,
            0xBD: self._read_mulrk,
            0x27E: self._read_rk,
            0x02: self._read_integer,
            0x14: self._read_header, 0x15: self._read_header,
            0x1B6: self._read_text_box,
            0x1C: self._read_note,
            0x41E: self._read_format,
            0xE0: self._read_style,
            0x100D: self._read_series,
            **dict.fromkeys((0x04, 0xD6, 0x204), self._read_label),
            **dict.fromkeys((0x03, 0x203), self._read_number),
            **dict.fromkeys((0x06, 0x206, 0x406), self._read_formula),
            **dict.fromkeys((0x07, 0x207), self._read_formula_string),
        }  # fmt: skip

    def read_record(self, kind: int, data: bytes, joints: list[int]) -> None:
        """Process one record."""
        if kind in _BOF:
            version = struct.unpack_from("<H", data)[0] if kind == 0x0809 else 0
            self._version = (
                {0x0600: 8, 0x0500: 5}.get(version, 8) if version else {9: 2, 0x209: 3, 0x409: 4}.get(kind, 8)
            )
            self.end_row()
        elif kind == _CODEPAGE:
            (number,) = struct.unpack("<H", data[:2])
            self._encoding = codepage_codec({0x8000: 10000, 0x8001: 1252}.get(number, number))
        elif kind in self._record_readers:
            self._record_readers[kind](data, joints)

    def end_row(self) -> None:
        """Add the cells of the current row."""
        self._document.add_text("\t".join(self._cells))
        self._cells.clear()
        self._row_chars = 0

    def _add_cell(self, data: bytes, text: str) -> None:
        row = struct.unpack_from("<H", data)[0]
        if row != self._row:
            self.end_row()
            self._row = row
        self._add_text(text)

    def _add_text(self, text: str) -> None:
        self._row_chars += len(text) + 1
        if text and self._row_chars < self._document.remaining_chars:  # many cells may share a long string
            self._cells.append(text)

    def _read_string(self, data: bytes, offset: int, width: int) -> str:
        """Return a string: length in ``width`` bytes, from Excel 97 on a flag for UTF-16, then the characters."""
        length = data[offset] if width == 1 else struct.unpack_from("<H", data, offset)[0]
        offset += width
        if self._version < 8:
            return data[offset : offset + length].decode(self._encoding, "replace")
        wide = data[offset] & 1
        raw = data[offset + 1 : offset + 1 + length * (2 if wide else 1)]
        return raw.decode("utf-16-le" if wide else "latin-1", "replace")

    def _read_string_table(self, data: bytes, joints: list[int]) -> None:
        """Read the string table; a string that crosses a continuation has a new flag byte there."""
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

    def _read_format(self, data: bytes, _: list[int]) -> None:
        self._formats[struct.unpack_from("<H", data)[0]] = self._read_string(data, 2, 2 if self._version == 8 else 1)

    def _read_style(self, data: bytes, _: list[int]) -> None:
        self._styles.append(struct.unpack_from("<H", data, 2)[0])

    def _add_number_cell(self, data: bytes, number: str, offset: int = 4) -> None:
        """Add a number whose style is at ``offset``."""
        (style,) = struct.unpack_from("<H", data, offset)
        known = self._version >= 5 and style < len(self._styles)
        self._add_cell(
            data, format_cell(number, find_format_code(self._styles[style], self._formats) if known else "General")
        )

    def _read_series(self, data: bytes, _: list[int]) -> None:
        self._document.add_text(self._read_string(data, 2, 1))

    def _read_sheet_name(self, data: bytes, _: list[int]) -> None:
        self._document.add_text(self._read_string(data, 6, 1))

    def _read_shared_string_cell(self, data: bytes, _: list[int]) -> None:
        (index,) = struct.unpack_from("<I", data, 6)
        self._add_cell(data, self._strings[index])

    def _read_label(self, data: bytes, _: list[int]) -> None:
        self._add_cell(data, self._read_string(data, 7, 1) if self._version == 2 else self._read_string(data, 6, 2))

    def _read_number(self, data: bytes, _: list[int]) -> None:
        (number,) = struct.unpack_from("<d", data, 7 if self._version == 2 else 6)
        self._add_number_cell(data, repr(number))

    def _read_integer(self, data: bytes, _: list[int]) -> None:
        if self._version == 2:
            self._add_cell(data, str(struct.unpack_from("<H", data, 7)[0]))

    def _read_rk(self, data: bytes, _: list[int]) -> None:
        self._add_number_cell(data, _decode_rk(data, 6))

    def _read_mulrk(self, data: bytes, _: list[int]) -> None:
        for offset in range(4, len(data) - 7, 6):
            self._add_number_cell(data, _decode_rk(data, offset + 2), offset)

    def _read_formula(self, data: bytes, _: list[int]) -> None:
        offset = 7 if self._version == 2 else 6
        # otherwise the result is a string in the next record, or nothing
        if data[offset + 6 : offset + 8] != b"\xff\xff":
            self._add_number_cell(data, repr(struct.unpack_from("<d", data, offset)[0]))

    def _read_formula_string(self, data: bytes, _: list[int]) -> None:
        self._add_text(self._read_string(data, 0, 1 if self._version == 2 else 2))

    def _read_header(self, data: bytes, _: list[int]) -> None:
        if data:
            self._document.add_text(self._read_string(data, 0, 2 if self._version == 8 else 1))

    def _read_text_box(self, data: bytes, joints: list[int]) -> None:
        """Read a text box: its characters are in the first continuation."""
        self._text_boxes += 1
        if joints and self._text_boxes < _MAX_TEXT_BOXES:
            start = joints[0]
            (length,) = struct.unpack_from("<H", data, 10)
            wide = data[start] & 1
            raw = data[start + 1 : start + 1 + length * (2 if wide else 1)]
            self._document.add_text(raw.decode("utf-16-le" if wide else "latin-1", "replace"))

    def _read_note(self, data: bytes, _: list[int]) -> None:
        if self._version == 8:
            self._document.add_text(self._read_string(data, 8, 2))  # the author; the note's text is in a text box
        else:
            self._document.add_text(data[6:].decode(self._encoding, "replace"))

    def _read_hyperlink(self, data: bytes, _: list[int]) -> None:
        moniker = data.find(b"\xe0\xc9\xea\x79\xf9\xba\xce\x11\x8c\x82\x00\xaa\x00\x4b\xa9\x0b")
        if moniker >= 0:
            (size,) = struct.unpack_from("<I", data, moniker + 16)
            self._document.add_link(
                data[moniker + 20 : moniker + 20 + size].decode("utf-16-le", "replace").partition("\0")[0]
            )


def _decode_rk(data: bytes, offset: int) -> str:
    """Return a packed number: 30 bits of a float or an integer, optionally times 100."""
    (packed,) = struct.unpack_from("<i", data, offset)
    number = (
        float(packed >> 2) if packed & 2 else struct.unpack("<d", struct.pack("<Q", (packed & 0xFFFFFFFC) << 32))[0]
    )
    return repr(number / 100 if packed & 1 else number)
