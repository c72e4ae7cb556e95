"""Folding: texts that are written otherwise and mean the same become alike, in pages and in queries.

Full and half width, traditional and simplified characters, words of Taiwan and of the mainland. Folding looks at
nothing but the text at hand, so that what is written alike is folded alike, in a page and in a query.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

# one character for one, so that offsets into the text stay true
_WIDTHS = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_WIDE = re.compile("[\uff01-\uff5e\u3000]")
_HALF = re.compile("[\uff66-\uff9f\uffa0-\uffdc]+")  # Katakana and Hangul of half width; voiced ones are two characters


def fold_width(text: str) -> str:
    """Return the text with full-width letters, digits and signs as ASCII, character for character.

    >>> fold_width("Ｎｕｔｃｈ　２")
    'Nutch 2'
    """
    return text.translate(_WIDTHS) if _WIDE.search(text) else text


class Folded(NamedTuple):
    """A text as it is indexed, and where its parts stood: ``moves`` are (place in ``text``, place in the original)."""

    text: str
    moves: tuple[tuple[int, int], ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the text stood in the original."""
        return (self._origin(start, False), self._origin(end, True)) if self.moves else (start, end)

    def _origin(self, at: int, end: bool) -> int:
        """Return the original's place; within what was replaced, its beginning or ``end``."""
        i = bisect_right(self.moves, (at, 1 << 60)) - 1
        if i < 0:
            return at
        place, origin = self.moves[i]
        if i + 1 < len(self.moves):
            following = self.moves[i + 1]
            if following[1] - origin != following[0] - place:  # replaced by a text of another length
                return origin if at == place or not end else following[1]
        return origin + at - place


class Folding:
    """What a file of variants says: lines of a form, a tab, and the form that it is indexed by."""

    def __init__(self, text: str = "") -> None:
        self.version = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
        lines = (line.split("\t") for line in text.splitlines() if "\t" in line and not line.startswith("#"))
        pairs = [(parts[0].strip(), parts[1].strip()) for parts in lines if parts[0].strip() and parts[1].strip()]
        self._characters = str.maketrans({old: new for old, new in pairs if len(old) == len(new) == 1})
        self._any = _one_of(map(chr, self._characters))
        self._words = {old: new for old, new in pairs if len(old) > 1}
        self._lengths: dict[str, list[int]] = {}
        for old in sorted(self._words, key=len, reverse=True):
            lengths = self._lengths.setdefault(old[:2], [])
            if len(old) not in lengths:
                lengths.append(len(old))
        first, second = _one_of(old[0] for old in self._words), _one_of(old[1] for old in self._words)
        self._maybe = re.compile(f"{first.pattern}(?={second.pattern})")

    def fold(self, text: str) -> Folded:
        r"""Return the text folded.

        >>> Folding("體\t体\n自由\t自在").fold("自由軟體")  # a file of traditional characters has 軟, too
        Folded(text='自在軟体', moves=())
        """
        if text.isascii():
            return Folded(text)
        text = fold_width(text)
        pieces: list[str] = []
        moves: list[tuple[int, int]] = []
        if _HALF.search(text):
            text = _composed(text, moves)
        if self._any.search(text):
            text = text.translate(self._characters)
        at, size = 0, 0
        before = Folded("", tuple(moves))
        replaced: list[tuple[int, int]] = []
        spans: list[tuple[int, int, int]] = []
        for match in self._maybe.finditer(text):
            start = match.start()
            if start < at:
                continue
            old = next(
                (text[start : start + n] for n in self._lengths.get(text[start : start + 2], ())
                 if text[start : start + n] in self._words), "",
            )  # fmt: skip
            if not old:
                continue
            new = self._words[old]
            pieces += [text[at:start], new]
            size += start - at
            end = start + len(old)
            if len(new) != len(old):
                spans.append((start, end, len(new) - len(old)))
                replaced += [(size, before.span(start, start)[0]), (size + len(new), before.span(end, end)[0])]
            size += len(new)
            at = end
        if not pieces:
            return Folded(text, before.moves)
        return Folded("".join([*pieces, text[at:]]), _merged(before.moves, replaced, spans))


def _merged(
    first: tuple[tuple[int, int], ...], second: list[tuple[int, int]], spans: list[tuple[int, int, int]]
) -> tuple[tuple[int, int], ...]:
    """Return the moves of both steps. ``spans``: start, end and growth of each word replaced in the second."""
    kept = [
        (place + sum(growth for _, end, growth in spans if end <= place), origin)
        for place, origin in first
        if not any(start < place < end for start, end, _ in spans)
    ]
    return tuple(sorted({*kept, *second}))


def _composed(text: str, moves: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = size = 0
    for match in _HALF.finditer(text):
        pieces.append(text[at : match.start()])
        size += match.start() - at
        run = match.group()
        i = 0
        while i < len(run):
            n = 2 if run[i + 1 : i + 2] in ("\uff9e", "\uff9f") else 1
            new = unicodedata.normalize("NFKC", run[i : i + n])
            pieces.append(new)
            if len(new) != n:
                moves += [(size, match.start() + i), (size + len(new), match.start() + i + n)]
            size += len(new)
            i += n
        at = match.end()
    return "".join([*pieces, text[at:]])


def _one_of(characters: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of one of the characters; one that never matches, of none."""
    found = sorted({*characters})
    return re.compile(f"[{re.escape(''.join(found))}]") if found else re.compile("(?!)")


@lru_cache(maxsize=4)
def folding(text: str) -> Folding:
    """Return the folding of a file's text, made once."""
    return Folding(text)
