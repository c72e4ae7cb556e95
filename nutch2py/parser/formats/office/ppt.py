"""PowerPoint 97 to 2003 ([MS-PPT]): texts of slides, notes and masters, links and embedded files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from nutch2py.parser.formats.document_parser import EncryptedDocumentError, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.formats.unpack_budget import PackageBudget, UnpackBudget

_TEXT_CHARS, _TEXT_BYTES, _STRING = 0x0FA0, 0x0FA8, 0x0FBA
_HYPERLINK, _COMMENT, _OLE_OBJECT, _ENCRYPTION = 0x0FD7, 0x2EE0, 0x1011, 0x2F14
_HEADERS = 0x0FD9
_MAX_DEPTH = 64
_PLACEHOLDERS = ("Click to edit", "Second level", "Third level", "Fourth level", "Fifth level", "*")


def read_slides(stream: bytes, document: ParsedDocument, budget: UnpackBudget) -> Iterator[bytes]:
    """Add texts and links; yield the embedded files. A repeated text is added once."""
    reader = _SlideReader(document, budget)
    reader.read_records(stream, 0, len(stream), 0, 0)
    if not reader.record_count:
        raise UnreadableDocumentError("no records in the presentation")
    yield from reader.embedded


class _SlideReader:
    def __init__(self, document: ParsedDocument, budget: UnpackBudget) -> None:
        self._document, self._page_budget = document, budget
        self._seen_texts: set[str] = set()
        self._link: list[str] = []
        self.embedded: list[bytes] = []
        self.record_count = 0

    def read_records(self, stream: bytes, position: int, end: int, parent: int, depth: int) -> None:
        """Read the records of a container."""
        while position + 8 <= end:
            version, kind, size = struct.unpack_from("<HHI", stream, position)
            position += 8
            if position + size > end:
                size = end - position
            self.record_count += 1
            if kind == _ENCRYPTION:
                raise EncryptedDocumentError("the presentation needs a password")
            if version & 0xF == 0xF:
                if depth < _MAX_DEPTH:
                    self.read_records(stream, position, position + size, kind, depth + 1)
                if kind == _HYPERLINK and self._link:
                    self._document.add_link(self._link[-1], self._link[0] if len(self._link) > 1 else "")
                    self._link = []
            elif kind in (_TEXT_CHARS, _TEXT_BYTES, _STRING):
                self._read_text(kind, stream[position : position + size], parent)
            elif kind == _OLE_OBJECT:
                self._read_object(version >> 4, stream[position : position + size])
            position += size

    def _read_text(self, kind: int, raw: bytes, parent: int) -> None:
        text = raw.decode("latin-1" if kind == _TEXT_BYTES else "utf-16-le", "replace").replace("\x0b", "\n")
        if kind == _STRING:
            if parent == _HYPERLINK:
                self._link.append(text)
                return
            if parent not in (_COMMENT, _HEADERS):
                return  # names of fonts, styles and programs
        if text not in self._seen_texts and not text.startswith(_PLACEHOLDERS):
            self._seen_texts.add(text)
            self._document.add_text(text)

    def _read_object(self, packed: int, raw: bytes) -> None:
        try:
            budget = PackageBudget(self._page_budget, len(raw))
            data = zlib.decompressobj().decompress(raw[4:], budget.bytes_left + 1) if packed else raw
        except zlib.error:
            return
        budget.spend(len(data))
        self.embedded.append(data)
