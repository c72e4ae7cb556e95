"""Sketches: what tells of two texts whether they are nearly the same, in 209 characters of an index.

Of the hashes of a text's different words the 32 smallest are kept: of two texts' words together, the share of the
smallest that both have is about the share of words that they have in common (Broder 1997; bottom-k). Words are counted
once, for a page that repeats them is no other page; of scripts without spaces, pairs of characters stand in for them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from hashlib import blake2b

from nutch2py.backends.analysis import pairs
from nutch2py.backends.word_memory import word_memory

_KEPT, _DIGITS = 32, 6
_HIGHEST, _FEW = 0xFFFFFF, 4
_ALIKE = 26  # of the 32: of manuals in two versions that finds 140 of 144 near copies, and none of 44,861 unlike pairs
_MOST = 200_000  # characters of a text
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_FIRST = re.compile(f"[{_UNSPACED}]")


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace")) & _HIGHEST


_HASHES = word_memory(_hash)


def sketch_of(words: Iterable[str], text: str = "") -> str:
    """Return the sketch of a text's words, "" of none: hashes, hexadecimal, and behind a point a digest of the text.

    >>> sketch_of(["to", "be", "or", "not", "to", "be"], "to be or not to be"), sketch_of([])
    ('05fd7587d2c4b77587ca8e0d.52875cf41d24a988', '')
    """
    hashes = [*map(_HASHES.__getitem__, {*words})]
    if len(hashes) > _FEW * _KEPT:  # sorting a few of many takes less time
        limit = _HIGHEST * _FEW * _KEPT // len(hashes)
        low = [each for each in hashes if each < limit]
        hashes = low if len({*low}) >= _KEPT else hashes
    kept = b"".join([each.to_bytes(3, "big") for each in sorted({*hashes})[:_KEPT]])
    return f"{kept.hex()}.{_digest(text)}" if kept else ""


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def words_of(text: str) -> set[str]:
    """Return the different words of a text, in small letters; for a text that is not cut into words otherwise."""
    text = text[:_MOST].lower()
    found = set[str]()
    for run in _RUN.findall(text):
        if _FIRST.match(run):
            found.update(pairs(run))
        else:
            found.add(run)
    return found


class Sketches:
    """Sketches that are kept, to find one of them that another is nearly the same as."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._few: dict[str, int] = {}
        self._hashes: list[frozenset[str]] = []
        self._with: dict[str, list[int]] = {}  # hash -> numbers of sketches that have it among their first

    def find(self, sketch: str, fits: Callable[[int], bool] = lambda _: True) -> int | None:
        """Return the number of a sketch that is nearly the same, as :meth:`keep` gave it, None when there is none.

        ``fits``: whether one that is not quite the same may be taken.
        """
        if sketch in self._known:
            return self._known[sketch]
        hashes = _parts(sketch)
        if len(hashes) < _KEPT:  # of few words each one counts
            number = self._few.get(sketch.partition(".")[0])
            return number if number is not None and fits(number) else None
        some, mine = {*hashes[: _KEPT - _ALIKE + 1]}, frozenset(hashes)
        near = sorted({number for each in some for number in self._with.get(each, ())})
        return next((number for number in near if _alike(self._hashes[number], mine) and fits(number)), None)

    def keep(self, sketch: str) -> int:
        """Keep a sketch; return its number, from 0 on."""
        number, hashes = len(self._hashes), _parts(sketch)
        self._known.setdefault(sketch, number)
        self._hashes.append(frozenset(hashes))
        if len(hashes) < _KEPT:
            self._few.setdefault(sketch.partition(".")[0], number)
        else:
            for each in hashes[: _KEPT - _ALIKE + 1]:  # 26 in common: one of the first seven is
                self._with.setdefault(each, []).append(number)
        return number


def _parts(sketch: str) -> list[str]:
    return [sketch[at : at + _DIGITS] for at in range(0, sketch.find("."), _DIGITS)]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    both = one & other
    return len(both) >= _ALIKE and len(both.intersection(sorted(one | other)[:_KEPT])) >= _ALIKE
