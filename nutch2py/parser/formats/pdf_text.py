"""Text of a PDF page by PDFium, rebuilt from character positions where PDFium is known to fail.

PDFium's word separation fails where some lines have no spaces and narrow gaps, and where characters of a vertical font
are drawn one by one. There a gap is a space when it is wider than a share of the preceding characters, as in PDFBox
(PDFTextStripper). In right-to-left text PDFium joins lines of different heights, and reverses the characters of one
glyph (of a ligature, or of a letter with its marks). Reading every character costs about six times PDFium's text, so
only such pages are rebuilt, and those with characters that their font does not map to Unicode.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from nutch2py.parser.formats.pdf_fonts import UnmappedCharacters
from nutch2py.parser.formats.pdf_types import PdfTextPage

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_SPACE = re.compile(" ")
_CONTROL = re.compile("[\x01\x03-\x08\x0b\x0c\x0e-\x1f]")  # codes of characters; PDFium marks hyphens by U+0002
_MAPPING_SAMPLES = 1_000  # characters of a page whose mapping to Unicode is examined
_SAMPLED_SPACES, _MIN_SPACES = 200, 20  # per page
# share of spaces that PDFium generated: between these, lines with and without spaces are mixed
_MIN_GENERATED_SHARE, _MAX_GENERATED_SHARE = 0.25, 0.9
_MAX_SINGLE_LETTER_SHARE = 1 / 3  # of a page's words that are single letters: with more, words are split
_WORD_GAP = 0.25  # of the mean character width of the line so far: a wider gap is a space
_DIGIT_GAP = 0.5  # digits are equally wide, so there is room next to a narrow one
_SLANT = 0.2  # rise of a line in relation to its width
_MAX_LINE_CHARS = 10_000


class PdfCharacter(NamedTuple):
    """A character, whether PDFium generated it, and its box in points; y grows upwards."""

    text: str
    is_generated: bool
    left: float
    right: float
    bottom: float
    top: float


def read_page_text(page: PdfTextPage) -> str:
    """Return the text of a page (pypdfium2's text page)."""
    text = page.get_text_range(errors="ignore")
    turned = _RIGHT_TO_LEFT.search(text) is not None
    spaced = _is_badly_spaced(page, text)
    unmapped = _find_unmapped(page) if _has_unmapped(page, text) else None
    if not turned and not spaced and unmapped is None:
        return text
    chars = _read_chars(page, unmapped)
    if not turned and not spaced:
        return "".join(char.text for char in chars)
    lines = (insert_spaces(line) if spaced else line for line in split_lines(chars, joins_lines=spaced))
    if turned:
        return "\n".join("".join(order_glyphs(part)) for line in lines for part in split_by_height(line))
    return "\n".join("".join(char.text for char in line) for line in lines)


def _is_badly_spaced(page: PdfTextPage, text: str) -> bool:
    """Return whether words look split, or a page mixes lines with and without spaces."""
    from pypdfium2 import raw

    words = text.split()
    if len(words) > _MIN_SPACES / 2 and sum(
        len(word) == 1 and word.isalpha() for word in words
    ) > _MAX_SINGLE_LETTER_SHARE * len(words):
        return True
    places = [match.start() for match in islice(_SPACE.finditer(text), _SAMPLED_SPACES)]
    made = sum(raw.FPDFText_IsGenerated(page, place) == 1 for place in places)
    return len(places) >= _MIN_SPACES and _MIN_GENERATED_SHARE < made / len(places) < _MAX_GENERATED_SHARE


def _has_unmapped(page: PdfTextPage, text: str) -> bool:
    """Return whether a page has codes that their font does not map to characters, by samples of longer pages."""
    from pypdfium2 import raw

    count = max(0, page.count_chars())
    step = 1 + count // _MAPPING_SAMPLES
    return _CONTROL.search(text) is not None or any(
        raw.FPDFText_HasUnicodeMapError(page, place) == 1 for place in range(0, count, step)
    )


def _find_unmapped(page: PdfTextPage) -> UnmappedCharacters | None:
    from pypdfium2 import raw

    places = (place for place in range(max(0, page.count_chars())) if raw.FPDFText_HasUnicodeMapError(page, place) == 1)
    codes = {place: code for place in places if (code := raw.FPDFText_GetUnicode(page, place))}
    return UnmappedCharacters(page, codes) if codes else None


def _read_chars(page: PdfTextPage, unmapped: UnmappedCharacters | None) -> Iterator[PdfCharacter]:
    from pypdfium2 import raw

    box = raw.FS_RECTF()
    place = ctypes.byref(box)
    high = ""
    for index in range(max(0, page.count_chars())):
        code = raw.FPDFText_GetUnicode(page, index)
        text = chr(code) if code < 0x110000 else ""
        if unmapped is not None:
            text = unmapped.get(index, text)
        if high and 0xDC00 <= code < 0xE000:  # a character beyond U+FFFF is returned as two surrogates
            text = (high + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        high = text if 0xD800 <= code < 0xDC00 else ""
        if not code or high:
            continue
        raw.FPDFText_GetLooseCharBox(page, index, place)
        made = raw.FPDFText_IsGenerated(page, index) == 1
        yield PdfCharacter(text, made, box.left, box.right, box.bottom, box.top)


def split_lines(characters: Iterator[PdfCharacter], *, joins_lines: bool) -> Iterator[list[PdfCharacter]]:
    """Yield lines as PDFium ends them; with ``joins_lines`` a line continues when the next character is right of it."""
    line: list[PdfCharacter] = []
    ended = False
    for char in characters:
        if char.is_generated and char.text in "\r\n":
            ended = True
            continue
        if ended or len(line) >= _MAX_LINE_CHARS:
            ended = False
            if line and not (joins_lines and _continues_line(line[-1], char) and len(line) < _MAX_LINE_CHARS):
                yield line
                line = []
        line.append(char)
    if line:
        yield line


def _continues_line(last: PdfCharacter, char: PdfCharacter) -> bool:
    height = min(last.top, char.top) - max(last.bottom, char.bottom)
    near = 0 <= char.left - last.right < 2 * (last.top - last.bottom)
    return near and height > 0.5 * min(last.top - last.bottom, char.top - char.bottom)


def insert_spaces(line: list[PdfCharacter]) -> list[PdfCharacter]:
    """Return a line with spaces at wide gaps and where the file has them; a slanted line as PDFium has it."""
    if _is_slanted(line):
        return line
    out: list[PdfCharacter] = []
    width = count = 0.0
    for char in line:
        if char.is_generated and char.text == " ":
            continue
        last = out[-1] if out else None
        if last is not None and count and not last.text.isspace() and not char.text.isspace():
            gap = max(char.left - last.right, last.left - char.right)
            if last.text == char.text == ".":  # leader dots
                out.append(char)
                continue
            share = _DIGIT_GAP if last.text.isdigit() and char.text.isdigit() else _WORD_GAP
            if gap > share * width / count:
                out.append(PdfCharacter(" ", True, last.right, char.left, last.bottom, last.top))
        if not char.text.isspace():
            width += char.right - char.left
            count += 1
        out.append(char)
    return out


def _is_slanted(line: list[PdfCharacter]) -> bool:
    """Return whether a line rises or falls, as labels of a chart do: boxes of its characters overlap across gaps."""
    return len(line) > 1 and abs(line[-1].bottom - line[0].bottom) > _SLANT * abs(line[-1].left - line[0].left)


def split_by_height(line: list[PdfCharacter]) -> list[list[PdfCharacter]]:
    """Return the parts of a line at different heights, from the top of the page."""
    parts: list[list[PdfCharacter]] = []
    for char in line:
        if parts and (char.is_generated or (char.bottom < parts[-1][-1].top and char.top > parts[-1][-1].bottom)):
            parts[-1].append(char)
        else:
            parts.append([char])
    return sorted(parts, key=lambda part: -part[0].top) if len(parts) > 1 else parts


def order_glyphs(line: list[PdfCharacter]) -> Iterator[str]:
    """Yield the characters of a line; those of one glyph in reading order, a letter before its marks."""
    start = 0
    for index in range(1, len(line) + 1):
        if index < len(line) and _is_same_glyph(line[start], line[index]):
            continue
        glyph = [char.text for char in line[start:index]]
        if len(glyph) > 1 and _RIGHT_TO_LEFT.match(glyph[0]) and (
            (unicodedata.combining(glyph[0]) and not unicodedata.combining(glyph[-1]))
            or (glyph[0] in "\u0622\u0623\u0625\u0627" and glyph[-1] == "\u0644")
        ):  # fmt: skip
            # a mark never precedes its letter, and fonts have no ligature of alef and lam in that order
            glyph.reverse()
        yield from glyph
        start = index


def _is_same_glyph(one: PdfCharacter, other: PdfCharacter) -> bool:
    return not other.is_generated and one[2:] == other[2:]
