"""Folding: maps equivalent spellings to one form, in pages and in queries.

Covers full and half width, traditional and simplified characters, and words of Taiwan and of the mainland. Folding
depends on the text alone, so that a page and a query are folded alike.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

# One character for one, so that offsets into the text stay valid.
_ASCII_OF_FULL_WIDTH = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_RARE_IDEOGRAPHS = "\U00020000-\U0003ffff"
_FULL_WIDTH = re.compile("[\uff01-\uff5e\u3000]")
_HALF_WIDTH = re.compile("[\uff66-\uff9f\uffa0-\uffdc]+")  # Katakana (voiced ones are two characters) and Hangul


def fold_width(text: str) -> str:
    """Return the text with full-width letters, digits and signs as ASCII, character for character.

    >>> fold_width("Ｎｕｔｃｈ　２")
    'Nutch 2'
    """
    return text.translate(_ASCII_OF_FULL_WIDTH) if _FULL_WIDTH.search(text) else text


class FoldedText(NamedTuple):
    """A folded text. ``offsets`` are pairs (offset in ``text``, offset in the original)."""

    text: str
    offsets: tuple[tuple[int, int], ...] = ()

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a span of the text comes from."""
        return (self._original_offset(start, False), self._original_offset(end, True)) if self.offsets else (start, end)

    def _original_offset(self, at: int, is_end: bool) -> int:
        """Return the original's offset; within a replacement, the start or the end of the replaced text."""
        i = bisect_right(self.offsets, (at, 1 << 60)) - 1
        if i < 0:
            return at
        offset, original = self.offsets[i]
        if i + 1 < len(self.offsets):
            following = self.offsets[i + 1]
            if following[1] - original != following[0] - offset:  # replaced by a text of another length
                return original if at == offset or not is_end else following[1]
        return original + at - offset


class Folding:
    """Folds texts by a table of variants: lines of a form, a tab, and the form to index it by."""

    def __init__(self, text: str = "") -> None:
        self.version = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
        lines = (line.split("\t") for line in text.splitlines() if "\t" in line and not line.startswith("#"))
        pairs = [(parts[0].strip(), parts[1].strip()) for parts in lines if parts[0].strip() and parts[1].strip()]
        self._character_map = str.maketrans({old: new for old, new in pairs if len(old) == len(new) == 1})
        self._character_pattern = _any_character_pattern(map(chr, self._character_map))
        self._word_map = {old: new for old, new in pairs if len(old) > 1}
        self._lengths_by_prefix: dict[str, list[int]] = {}
        for old in sorted(self._word_map, key=len, reverse=True):
            lengths = self._lengths_by_prefix.setdefault(old[:2], [])
            if len(old) not in lengths:
                lengths.append(len(old))
        first, second = (
            _any_character_pattern(old[0] for old in self._word_map),
            _any_character_pattern(old[1] for old in self._word_map),
        )
        self._word_start_pattern = re.compile(f"{first.pattern}(?={second.pattern})")

    def fold(self, text: str) -> FoldedText:
        r"""Return the text folded.

        >>> Folding("體\t体\n自由\t自在").fold("自由軟體")  # a real table also has 軟
        FoldedText(text='自在軟体', offsets=())
        """
        if text.isascii():
            return FoldedText(text)
        text = fold_width(text)
        pieces: list[str] = []
        offsets: list[tuple[int, int]] = []
        if _HALF_WIDTH.search(text):
            text = _compose_half_width(text, offsets)
        if self._character_pattern.search(text):
            text = text.translate(self._character_map)
        at, size = 0, 0
        before = FoldedText("", tuple(offsets))
        replaced: list[tuple[int, int]] = []
        spans: list[tuple[int, int, int]] = []
        for match in self._word_start_pattern.finditer(text):
            start = match.start()
            if start < at:
                continue
            old = next(
                (text[start : start + n] for n in self._lengths_by_prefix.get(text[start : start + 2], ())
                 if text[start : start + n] in self._word_map), "",
            )  # fmt: skip
            if not old:
                continue
            new = self._word_map[old]
            pieces += [text[at:start], new]
            size += start - at
            end = start + len(old)
            if len(new) != len(old):
                spans.append((start, end, len(new) - len(old)))
                replaced += [
                    (size, before.original_span(start, start)[0]),
                    (size + len(new), before.original_span(end, end)[0]),
                ]
            size += len(new)
            at = end
        if not pieces:
            return FoldedText(text, before.offsets)
        return FoldedText("".join([*pieces, text[at:]]), _merge_offsets(before.offsets, replaced, spans))


def _merge_offsets(
    first: tuple[tuple[int, int], ...], second: list[tuple[int, int]], spans: list[tuple[int, int, int]]
) -> tuple[tuple[int, int], ...]:
    """Return the offsets of both steps combined.

    ``spans``: start, end and growth of each word replaced in the second step.
    """
    kept = [
        (offset + sum(growth for _, end, growth in spans if end <= offset), original)
        for offset, original in first
        if not any(start < offset < end for start, end, _ in spans)
    ]
    return tuple(sorted({*kept, *second}))


def _compose_half_width(text: str, offsets: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = size = 0
    for match in _HALF_WIDTH.finditer(text):
        pieces.append(text[at : match.start()])
        size += match.start() - at
        run = match.group()
        i = 0
        while i < len(run):
            n = 2 if run[i + 1 : i + 2] in ("\uff9e", "\uff9f") else 1
            new = unicodedata.normalize("NFKC", run[i : i + n])
            pieces.append(new)
            if len(new) != n:
                offsets += [(size, match.start() + i), (size + len(new), match.start() + i + n)]
            size += len(new)
            i += n
        at = match.end()
    return "".join([*pieces, text[at:]])


def _any_character_pattern(characters: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches one of the characters; a pattern that never matches when there are none.

    It matches all rare ideographs (beyond the first 65,536 characters) if it matches one: a set with single ones of
    them is searched one by one.
    """
    distinct = sorted({*characters})
    if not distinct:
        return re.compile("(?!)")
    frequent = re.escape("".join(each for each in distinct if each <= "\uffff"))
    return re.compile(f"[{frequent}{_RARE_IDEOGRAPHS if distinct[-1] > chr(0xFFFF) else ''}]")


@lru_cache(maxsize=4)
def get_folding(text: str) -> Folding:
    """Return the folding of a table, built once per process."""
    return Folding(text)
