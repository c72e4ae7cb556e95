"""Characters of PDF fonts without a mapping to Unicode.

PDFium returns the character code where a font maps it to no character. In composite fonts that code is a glyph number:
the embedded font knows its characters. Where its table is missing, the order of glyphs in Arial and its like is assumed
if it gives words. libHaru writes UTF-8 as codes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator

from nutch2py.parser.formats.pdf_types import PdfTextPage
from nutch2py.support.bounded_cache import bounded_cache

# from glyph 3 on: ASCII, then the upper half of Mac Roman without its no-break space
_STANDARD_ORDER = bytes([*range(0x20, 0x7F), *range(0x80, 0xCA), *range(0xCB, 0x100)]).decode("mac_roman")
_FIRST_STANDARD_GLYPH = 3
_MIN_WORD_SHARE = 0.6  # of letters, digits and spaces: with fewer, glyphs have another order
_WEIGHTS = {letter: 1 - place / 40 for place, letter in enumerate(" eaintorsldumcpghbfvkywzjxq")}
_WEIGHTS |= dict.fromkeys("0123456789", 0.75)
_LETTER_WEIGHT = 0.3  # of other letters
_MAX_CODES = 70_000
_MAX_CACHED_BYTES = 300_000
_MAX_TABLES = 64
_MAX_SUBTABLES = 32
_UNICODE_TABLES = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3), (0, 2), (0, 1), (0, 0))
_SYMBOL_TABLE, _MAC_ROMAN_TABLE = (3, 0), (1, 0)
_SYMBOL_BASE = 0xF000


class UnmappedCharacters:
    """Finds the characters of a page's unmapped codes. ``codes``: place on the page -> code."""

    def __init__(self, page: PdfTextPage, codes: dict[int, int]) -> None:
        by_font: dict[int, dict[int, int]] = {}
        tables: dict[int, bytes | None] = {}
        for place, code in codes.items():
            address, table = _read_font(page, place, tables)
            by_font.setdefault(address, {})[place] = code
            tables[address] = table
        self._characters: dict[int, str] = {}
        for address, found in by_font.items():
            if (table := tables[address]) is None:
                continue
            glyphs = read_glyph_characters(table)
            self._characters.update(zip(found, characters_of_codes(list(found.values()), glyphs), strict=True))

    def get(self, place: int, default: str) -> str:
        """Return the character at a place of the page."""
        return self._characters.get(place, default)


def _read_font(page: PdfTextPage, place: int, known: dict[int, bytes | None]) -> tuple[int, bytes | None]:
    """Return the address of a character's font and its character table.

    The table is b"" for a font that is not embedded or has none, None for one that is not of TrueType or OpenType.
    """
    from pypdfium2 import raw

    text = raw.FPDFText_GetTextObject(page, place)
    font = raw.FPDFTextObj_GetFont(text) if text else None
    if not font:
        return 0, None
    address = ctypes.addressof(font.contents)
    if address in known:
        return address, known[address]
    if raw.FPDFFont_GetIsEmbedded(font) != 1:
        return address, b""
    size = ctypes.c_size_t()
    raw.FPDFFont_GetFontData(font, None, 0, size)
    data = (ctypes.c_uint8 * size.value)()
    raw.FPDFFont_GetFontData(font, data, size.value, size)
    return address, _find_cmap(memoryview(data))


def characters_of_codes(codes: list[int], glyphs: dict[int, str]) -> list[str]:
    """Return the characters of unmapped codes of one font. ``glyphs``: glyph number -> character, if it is known.

    The codes themselves may be characters: of the readings the one that looks most like words is returned.
    """
    kept = [chr(code) if code < 0x110000 else "" for code in codes]
    known = [glyphs.get(code) or _utf8_character(code) for code in codes]
    if any(known):
        read = [character or own for character, own in zip(known, kept, strict=True)]
        return read if _likeness_of_words(read) >= _likeness_of_words(kept) else kept
    guessed = [_standard_character(code) for code in codes]
    words = sum(character.isalnum() or character == " " for character in guessed)
    if words >= _MIN_WORD_SHARE * len(codes) and _likeness_of_words(guessed) > _likeness_of_words(kept):
        return [character or own for character, own in zip(guessed, kept, strict=True)]
    return kept


def _likeness_of_words(characters: list[str]) -> float:
    """Return the sum of the weights of characters: spaces, and frequent letters of Latin script, have most."""
    return sum(_WEIGHTS.get(character.lower(), _LETTER_WEIGHT * character.isalnum()) for character in characters)


def _standard_character(code: int) -> str:
    place = code - _FIRST_STANDARD_GLYPH
    return _STANDARD_ORDER[place] if 0 <= place < len(_STANDARD_ORDER) else ""


def _utf8_character(code: int) -> str:
    """Return the character whose UTF-8 is the code, "" for none and for codes of one byte."""
    try:
        text = code.to_bytes((code.bit_length() + 7) // 8, "big").decode() if code > 0xFF else ""
    except UnicodeDecodeError:
        return ""
    return text if len(text) == 1 else ""


def _find_cmap(data: memoryview) -> bytes | None:
    """Return the table ``cmap`` of a TrueType or OpenType font, b"" without one, None for another font."""
    if len(data) < 12 or bytes(data[:4]) not in (b"\0\1\0\0", b"true", b"OTTO"):
        return None
    for number in range(min(int.from_bytes(data[4:6], "big"), _MAX_TABLES)):
        entry = bytes(data[12 + 16 * number : 28 + 16 * number])
        if len(entry) == 16 and entry.startswith(b"cmap"):
            _, _, start, size = struct.unpack(">4I", entry)
            return bytes(data[start : start + size])
    return b""


@bounded_cache(8, max_key_length=_MAX_CACHED_BYTES)
def read_glyph_characters(cmap: bytes) -> dict[int, str]:
    """Return glyph number -> character of a table ``cmap``; of several characters of a glyph the first counts."""
    subtables = dict(_read_subtables(cmap))
    kind = next((each for each in (*_UNICODE_TABLES, _SYMBOL_TABLE, _MAC_ROMAN_TABLE) if each in subtables), None)
    if kind is None:
        return {}
    found: dict[int, str] = {}
    for count, (code, glyph) in enumerate(_read_codes(cmap[subtables[kind] :])):
        if count >= _MAX_CODES:
            break
        if glyph and glyph not in found and code < 0x110000 and not 0xD800 <= code < 0xE000:
            found[glyph] = _character(kind, code)
    return found


def _character(kind: tuple[int, int], code: int) -> str:
    if kind == _MAC_ROMAN_TABLE:
        return bytes([code & 0xFF]).decode("mac_roman")
    return chr(code - _SYMBOL_BASE if kind == _SYMBOL_TABLE and code >= _SYMBOL_BASE else code)


def _read_subtables(cmap: bytes) -> Iterator[tuple[tuple[int, int], int]]:
    for number in range(min(int.from_bytes(cmap[2:4], "big"), _MAX_SUBTABLES)):
        entry = cmap[4 + 8 * number : 12 + 8 * number]
        if len(entry) == 8:
            platform, encoding, start = struct.unpack(">HHI", entry)
            yield (platform, encoding), start


def _read_codes(table: bytes) -> Iterable[tuple[int, int]]:
    """Return code and glyph of the entries of a subtable, of the formats that fonts in PDFs have."""
    match int.from_bytes(table[:2], "big"):
        case 0:
            return enumerate(table[6:262])
        case 4:
            return _read_segments(table)
        case 6 if len(table) >= 10:
            first, count = struct.unpack(">HH", table[6:10])
            return enumerate(_read_numbers(table, 10, count), first)
        case 12:
            return _read_groups(table)
    return ()


def _read_numbers(table: bytes, start: int, count: int) -> tuple[int, ...]:
    count = max(0, min(count, (len(table) - start) // 2))
    return struct.unpack_from(f">{count}H", table, start) if count else ()


def _read_segments(table: bytes) -> Iterator[tuple[int, int]]:
    size = int.from_bytes(table[6:8], "big") & ~1
    ends, starts, deltas, offsets = (
        _read_numbers(table, 14 + size * part + 2 * bool(part), size // 2) for part in range(4)
    )
    for number, (end, start, delta, offset) in enumerate(zip(ends, starts, deltas, offsets, strict=False)):
        place = 16 + 3 * size + 2 * number + offset
        for code in range(start, end + 1):
            glyph = code
            if offset:
                near = place + 2 * (code - start)
                glyph = int.from_bytes(table[near : near + 2], "big")
            if glyph or not offset:
                yield code, (glyph + delta) & 0xFFFF


def _read_groups(table: bytes) -> Iterator[tuple[int, int]]:
    for number in range(min(int.from_bytes(table[12:16], "big"), _MAX_CODES)):
        entry = table[16 + 12 * number : 28 + 12 * number]
        if len(entry) < 12:
            return
        start, end, glyph = struct.unpack(">3I", entry)
        for code in range(start, min(end, start + _MAX_CODES) + 1):
            yield code, glyph + code - start
