"""Word 6 to 2003 ([MS-DOC]): text of the piece table with resolved fields and numbered lists."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nutch2py.parser.formats.containers.compound_file import OleFile
from nutch2py.parser.formats.document_parser import (
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
    join_anchor,
)
from nutch2py.parser.formats.word.field_codes import find_field_target
from nutch2py.parser.formats.word.msword_lists import DocLists

_WORD_97 = 0xC0  # formats above this version are Word 97 and later
_ENCRYPTED, _TABLE_1, _COMPLEX = 0x0100, 0x0200, 0x0004
_SPECIAL_CHARS = str.maketrans(
    {"\r": "\n", "\x07": "\t", "\x0b": "\n", "\x0c": "\n", "\x1e": "\u2011", "\x1f": None, "\xa0": " "}
)
# marks of a field: start, separator before the result, end
_FIELD_MARK = re.compile("[\x13\x14\x15]")
_PARAGRAPH_END = re.compile("[\r\x07\x0c]")  # end of a paragraph or cell; of a section or page


class _TextPiece(NamedTuple):
    """Text of the stream: starts at byte ``start``, with ``width`` bytes per character."""

    text: str
    start: int
    width: int


def read_word(ole: OleFile, folder: list[str], document: ParsedDocument) -> None:
    """Add the text (body, notes, headers, text boxes, in stored order) and the links of a document."""
    stream = ole.get_stream(folder, "WordDocument")
    if len(stream) < 0x60:
        raise UnreadableDocumentError("the WordDocument stream is truncated")
    identifier, version = struct.unpack_from("<HH", stream)
    (flags,) = struct.unpack_from("<H", stream, 0x0A)
    if flags & _ENCRYPTED:
        raise EncryptedDocumentError("the document needs a password")
    if identifier not in (0xA5EC, 0xA5DC) or version < 100:
        raise UnreadableDocumentError(f"not a Word document: identifier {identifier:#x}, version {version}")
    if version > _WORD_97:
        table = ole.get_stream(folder, "1Table" if flags & _TABLE_1 else "0Table")
        start, length = struct.unpack_from("<II", stream, 0x01A2)
        pieces = _read_pieces(stream, table[start : start + length])
        text = _number_lists(pieces, _read_lists(stream, table), document.remaining_chars)
    elif flags & _COMPLEX:
        start, length = struct.unpack_from("<II", stream, 0x0160)
        pieces = _read_pieces(stream, stream[start : start + length], always_bytes=True)
        text = "".join(piece.text for piece in pieces)
    else:
        start, end = struct.unpack_from("<II", stream, 0x18)
        text = stream[start:end].decode("cp1252", "replace")
    document.add_text(_resolve_fields(text, document))


def _read_lists(stream: bytes, table: bytes) -> DocLists | None:
    """Return the lists of a document, None when there are none or their data is malformed."""
    try:
        lists = DocLists(stream, table)
    except (struct.error, IndexError):
        return None
    return lists if lists.has_lists else None


def _number_lists(pieces: Iterable[_TextPiece], lists: DocLists | None, room: int) -> str:
    """Return the text of pieces with the numbers of lists. ``room``: maximum characters of the numbers."""
    if lists is None:
        return "".join(piece.text for piece in pieces)
    parts = [""]
    number_index = 0  # where to insert the paragraph's number
    for text, start, width in pieces:
        position = 0
        wide = not text.isascii() and max(text) > "\uffff"  # some characters are surrogate pairs in the stream
        for match in _PARAGRAPH_END.finditer(text):
            paragraph = text[position : match.end()]
            start += len(paragraph.encode("utf-16-le", "replace")) if wide else len(paragraph) * width
            parts.append(paragraph)
            position = match.end()
            if match[0] == "\x0c" and not lists.ends_paragraph(start):
                continue
            number = lists.number_at(start - width)
            if number and len(number) < room:
                room -= len(number) + 1
                parts[number_index] = number + " "
            number_index = len(parts)
            parts.append("")
        parts.append(text[position:])
    return "".join(parts)


def _read_pieces(stream: bytes, clx: bytes, *, always_bytes: bool = False) -> Iterator[_TextPiece]:
    """Yield the pieces of text of a piece table (Clx)."""
    position = 0
    while position < len(clx) and clx[position] == 1:  # property modifiers come first
        position += 3 + struct.unpack_from("<H", clx, position + 1)[0]
    if position >= len(clx) or clx[position] != 2:
        raise UnreadableDocumentError("no piece table")
    (length,) = struct.unpack_from("<I", clx, position + 1)
    table = clx[position + 5 : position + 5 + length]
    count = (len(table) - 4) // 12
    if count < 1:
        raise UnreadableDocumentError("an empty piece table")
    ends = struct.unpack_from(f"<{count + 1}I", table)
    left = len(stream)  # pieces of an intact file do not overlap: drop text beyond this
    for index in range(count):
        (offset,) = struct.unpack_from("<I", table, (count + 1) * 4 + index * 8 + 2)
        size = ends[index + 1] - ends[index]
        if size <= 0 or left <= 0:
            continue
        if offset & 0x40000000 or always_bytes:
            start = offset if always_bytes else (offset & 0x3FFFFFFF) // 2
            raw = stream[start : start + min(size, left)]
            yield _TextPiece(raw.decode("cp1252", "replace"), start, 1)
        else:
            raw = stream[offset : offset + 2 * min(size, left)]
            yield _TextPiece(raw.decode("utf-16-le", "replace"), offset, 2)
        left -= len(raw)


def _resolve_fields(text: str, document: ParsedDocument) -> str:
    """Return the text with fields replaced by their results; adds their links."""
    out: list[str] = []
    codes: list[list[str]] = []  # of each open field: its code so far
    results: list[int] = []  # length of ``out`` at the start of the result, -1 before it
    position = 0
    for match in _FIELD_MARK.finditer(text):
        piece, mark = text[position : match.start()], match[0]
        position = match.end()
        if codes and results[-1] < 0:
            codes[-1].append(piece)
        else:
            out.append(piece)
        if mark == "\x13":
            codes.append([])
            results.append(-1)
        elif codes and mark == "\x14":
            results[-1] = len(out)
        elif codes:
            target = find_field_target("".join(codes.pop()))
            start = results.pop()
            if target:
                document.add_link(target, "" if start < 0 else join_anchor(out, start).translate(_SPECIAL_CHARS))
            if codes and results[-1] < 0:  # a field inside the code of another
                codes[-1] += out[start:] if start >= 0 else []
                del out[start if start >= 0 else len(out) :]
    out.append(text[position:])
    return "".join(out).translate(_SPECIAL_CHARS)
