"""List numbers in Word 97 to 2003 ([MS-DOC]): finds the list of each paragraph and the format of its levels."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from nutch2py.parser.formats.word.list_numbering import MAX_LEVELS, ListLevel, ListNumbering, NumberingInstance

# offsets, in the file information block, of offset and length of: styles, paragraphs, list definitions, lists
_STYLES, _PARAGRAPHS, _DEFINITIONS, _LISTS = 0x00A2, 0x0102, 0x02E2, 0x02EA
_FIB_COUNT, _FIB_FIRST = 0x0098, 0x009A  # the number of such pairs, and the first of them
_PAGE_BYTES = 512
_SPRM_LIST, _SPRM_LEVEL = 0x460B, 0x260A  # paragraph properties (sprm)
# bytes of a property's value by the upper three bits of its number; 0: the next byte holds the length
_SPRM_SIZES = (1, 1, 2, 4, 2, 2, 0, 3)
_DEFINITION_BYTES, _LEVEL_HEAD_BYTES, _LIST_BYTES = 28, 28, 16
_NO_RESTART, _LEGAL = 0x08, 0x04
_MAX_TEXT_CHARS = 100  # of a level's text
MAX_NUMBERS = 100_000
"""Numbers of list items per document: enough for some thousand pages."""
_MAX_STYLE_DEPTH = 20  # of styles based on others
_NUMBER_FORMATS = {0: "decimal", 1: "upperRoman", 2: "lowerRoman", 3: "upperLetter", 4: "lowerLetter", 5: "ordinal",
          10: "ideographDigital", 11: "japaneseCounting", 22: "decimalZero", 23: "bullet",
          33: "taiwaneseCounting", 37: "chineseCounting", 39: "chineseCountingThousand", 255: "none"}  # fmt: skip


class _ListProperties(NamedTuple):
    """List properties of a paragraph or style, None where unset. ``number``: of the list, from 1; 0 for no list."""

    style: int = 0
    number: int | None = None
    level: int | None = None


class DocLists(ListNumbering):
    """The lists of a document. Call it for each paragraph in order, with the stream position of the paragraph's end."""

    def __init__(self, stream: bytes, table: bytes) -> None:
        super().__init__()
        self._paragraph_ends = array("Q")
        self._paragraph_properties: list[_ListProperties] = []
        self._styles: dict[int, tuple[int, _ListProperties]] = {}  # style -> base style, properties
        self._numbers_left = MAX_NUMBERS
        if _FIB_FIRST + 8 * struct.unpack_from("<H", stream, _FIB_COUNT)[0] <= _LISTS:
            return
        definitions, lists = _table_part(stream, table, _DEFINITIONS), _table_part(stream, table, _LISTS)
        if definitions and lists:
            # the levels follow their definitions, but are not included in the length
            start = struct.unpack_from("<I", stream, _DEFINITIONS)[0]
            self._read_definitions(table[start:])
            self._read_lists(lists)
            self._read_styles(_table_part(stream, table, _STYLES))
            self._read_paragraphs(stream, _table_part(stream, table, _PARAGRAPHS))

    @property
    def has_lists(self) -> bool:
        """Whether any paragraph may have a number."""
        return bool(self._paragraph_ends)

    def ends_paragraph(self, position: int) -> bool:
        """Return whether a paragraph ends before a stream position."""
        at = bisect_right(self._paragraph_ends, position - 1)
        return at < len(self._paragraph_ends) and self._paragraph_ends[at] == position

    def number_at(self, position: int) -> str:
        """Return the number of the paragraph whose last character is at a stream position, "" for none."""
        at = bisect_right(self._paragraph_ends, position)
        if at >= len(self._paragraph_ends) or self._numbers_left <= 0:
            return ""
        style, number, level = self._paragraph_properties[at]
        for _ in range(_MAX_STYLE_DEPTH):
            if (number is not None and level is not None) or style not in self._styles:
                break
            based_on, inherited = self._styles[style]
            if number is None and inherited.number is not None:
                number = inherited.number
                if level is None and inherited.level is None:
                    level = self.level_of_style(str(number), str(style))
            level = inherited.level if level is None else level
            style = based_on
        if not number or (level or 0) >= MAX_LEVELS:
            return ""
        self._numbers_left -= 1
        return self.next_number(str(number), level or 0)

    def _read_definitions(self, data: bytes) -> None:
        (count,) = struct.unpack_from("<H", data)
        at = 2 + count * _DEFINITION_BYTES
        for index in range(count):
            (name,) = struct.unpack_from("<I", data, 2 + index * _DEFINITION_BYTES)
            styles = struct.unpack_from(f"<{MAX_LEVELS}H", data, 2 + index * _DEFINITION_BYTES + 8)
            simple = data[2 + index * _DEFINITION_BYTES + 26] & 1
            levels = self.definitions[str(name)] = {}
            for number in range(1 if simple else MAX_LEVELS):
                levels[number], at = _read_level(data, at)
                levels[number].style = str(styles[number])

    def _read_lists(self, data: bytes) -> None:
        (count,) = struct.unpack_from("<I", data)
        count = min(count, (len(data) - 4) // _LIST_BYTES)
        at = 4 + count * _LIST_BYTES
        for index in range(count):
            name, changes = struct.unpack_from("<I8xB", data, 4 + index * _LIST_BYTES)
            found = self.instances[str(index + 1)] = NumberingInstance(str(name))
            at += 4
            for _ in range(changes):
                start, flags = struct.unpack_from("<II", data, at)
                at += 8
                number = min(flags & 0xF, MAX_LEVELS - 1)
                if flags & 0x20:
                    found.levels[number], at = _read_level(data, at)
                    start = found.levels[number].start
                if flags & 0x10:
                    found.starts[number] = start

    def _read_styles(self, data: bytes) -> None:
        if len(data) < 6:
            return
        size, count, base = struct.unpack_from("<HHH", data)
        at = 2 + size
        for number in range(count):
            if at + 2 > len(data):
                return
            (size,) = struct.unpack_from("<H", data, at)
            style = data[at + 2 : at + 2 + size]
            at += 2 + size + size % 2
            if len(style) < base + 2:
                continue
            (kind,) = struct.unpack_from("<H", style, 2)
            based_on, properties = kind >> 4, _ListProperties()
            name_end = base + 2 + 2 * struct.unpack_from("<H", style, base)[0] + 2
            if kind & 0xF == 1 and name_end + 4 <= len(style):  # a paragraph style; its properties come first
                (length,) = struct.unpack_from("<H", style, name_end)
                properties = _read_list_properties(style[name_end + 2 : name_end + 2 + length])
            self._styles[number] = based_on, properties

    def _read_paragraphs(self, stream: bytes, plc: bytes) -> None:
        """Read the pages with the properties of paragraphs by the stream positions of their ends."""
        count = max(0, (len(plc) - 4) // 8)
        pages = dict.fromkeys(struct.unpack_from(f"<{count}I", plc, (count + 1) * 4) if count else ())
        found: list[tuple[int, _ListProperties]] = []
        for number in pages:
            start = (number & 0x3FFFFF) * _PAGE_BYTES
            page = stream[start : start + _PAGE_BYTES]
            if len(page) == _PAGE_BYTES:
                found += _read_paragraph_page(page)
        found.sort(key=lambda each: each[0])
        self._paragraph_ends = array("Q", (end for end, _ in found))
        self._paragraph_properties = [item for _, item in found]


def _table_part(stream: bytes, table: bytes, position: int) -> bytes:
    """Return a part of the table stream by its entry in the information block."""
    start, length = struct.unpack_from("<II", stream, position)
    return table[start : start + length]


def _read_level(data: bytes, at: int) -> tuple[ListLevel, int]:
    """Return a level of a list and the offset after it."""
    start, kind, flags = struct.unpack_from("<iBB", data, at)
    positions = data[at + 6 : at + 15]
    characters, paragraph, limit = struct.unpack_from("<BBB", data, at + 24)
    at += _LEVEL_HEAD_BYTES + characters + paragraph
    (length,) = struct.unpack_from("<H", data, at)
    text = data[at + 2 : at + 2 + 2 * min(length, _MAX_TEXT_CHARS)].decode("utf-16-le", "replace")
    parts = [*text]
    for position in positions:  # positions count from 1; the character there is a level number
        if 0 < position <= len(text) and ord(text[position - 1]) < MAX_LEVELS:
            parts[position - 1] = f"%{ord(text[position - 1]) + 1}"
    level = ListLevel(
        max(0, start), _NUMBER_FORMATS.get(kind, "decimal"), "".join(parts), is_legal=bool(flags & _LEGAL)
    )
    if flags & _NO_RESTART:
        level.restart = limit
    return level, at + 2 + 2 * length


def _read_paragraph_page(page: bytes) -> Iterator[tuple[int, _ListProperties]]:
    """Yield the end position and the list properties of each paragraph of a page."""
    count = min(page[-1], 0x1D)
    ends = struct.unpack_from(f"<{count}I", page, 4)
    for index, end in enumerate(ends):
        at = 2 * page[4 * (count + 1) + 13 * index]
        if not at:
            yield end, _ListProperties()
            continue
        size = 2 * page[at] - 1
        if size < 0:
            at += 1
            size = 2 * page[at]
        yield end, _read_list_properties(page[at + 1 : at + 1 + size])


def _read_list_properties(data: bytes) -> _ListProperties:
    """Return the list properties in a style number and the properties after it."""
    if len(data) < 2:
        return _ListProperties()
    (style,) = struct.unpack_from("<H", data)
    number = level = None
    at = 2
    while at + 3 <= len(data):
        (name,) = struct.unpack_from("<H", data, at)
        at += 2
        size = _SPRM_SIZES[name >> 13]
        if name == _SPRM_LIST and at + 2 <= len(data):
            (number,) = struct.unpack_from("<H", data, at)
        elif name == _SPRM_LEVEL:
            level = data[at]
        at += size or data[at] + 1
    return _ListProperties(style, number, level)
