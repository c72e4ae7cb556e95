"""PowerPoint 97 to 2003 ([MS-PPT]): the texts of slides, notes and masters, links, and embedded files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from nutch2py.parser.formats.nested import Budget
from nutch2py.parser.formats.parsed_document import Document, Encrypted, Unreadable

_TEXT_CHARS, _TEXT_BYTES, _STRING = 0x0FA0, 0x0FA8, 0x0FBA
_HYPERLINK, _COMMENT, _OBJECT, _ENCRYPTION = 0x0FD7, 0x2EE0, 0x1011, 0x2F14
_HEADERS = 0x0FD9
_MAX_DEPTH = 64
_PLACEHOLDERS = ("Click to edit", "Second level", "Third level", "Fourth level", "Fifth level", "*")


def read_slides(stream: bytes, document: Document, budget: Budget) -> Iterator[bytes]:
    """Add texts and links; yield the embedded files. A text that stands in the file twice is added once."""
    reader = _Reader(document, budget)
    reader.read(stream, 0, len(stream), 0, 0)
    if not reader.records:
        raise Unreadable("no records in the presentation")
    yield from reader.embedded


class _Reader:
    def __init__(self, document: Document, budget: Budget) -> None:
        self._document, self._budget = document, budget
        self._seen: set[str] = set()
        self._link: list[str] = []
        self.embedded: list[bytes] = []
        self.records = 0

    def read(self, stream: bytes, position: int, end: int, parent: int, depth: int) -> None:
        """Read the records of a container."""
        while position + 8 <= end:
            version, kind, size = struct.unpack_from("<HHI", stream, position)
            position += 8
            if position + size > end:
                size = end - position
            self.records += 1
            if kind == _ENCRYPTION:
                raise Encrypted("the presentation needs a password")
            if version & 0xF == 0xF:
                if depth < _MAX_DEPTH:
                    self.read(stream, position, position + size, kind, depth + 1)
                if kind == _HYPERLINK and self._link:
                    self._document.link(self._link[-1], self._link[0] if len(self._link) > 1 else "")
                    self._link = []
            elif kind in (_TEXT_CHARS, _TEXT_BYTES, _STRING):
                self._text(kind, stream[position : position + size], parent)
            elif kind == _OBJECT:
                self._object(version >> 4, stream[position : position + size])
            position += size

    def _text(self, kind: int, raw: bytes, parent: int) -> None:
        text = raw.decode("latin-1" if kind == _TEXT_BYTES else "utf-16-le", "replace").replace("\x0b", "\n")
        if kind == _STRING:
            if parent == _HYPERLINK:
                self._link.append(text)
                return
            if parent not in (_COMMENT, _HEADERS):
                return  # names of fonts, styles and programs
        if text not in self._seen and not text.startswith(_PLACEHOLDERS):
            self._seen.add(text)
            self._document.add(text)

    def _object(self, packed: int, raw: bytes) -> None:
        try:
            data = zlib.decompressobj().decompress(raw[4:], self._budget.bytes_left + 1) if packed else raw
        except zlib.error:
            return
        self._budget.take(len(data))
        self.embedded.append(data)
