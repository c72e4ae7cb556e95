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

from nutch2py.backends.analysis.analyzer import bigrams
from nutch2py.support.bounded_cache import word_cache

_SKETCH_SIZE, _HASH_DIGITS = 32, 6
_MAX_HASH, _PRESELECT_FACTOR = 0xFFFFFF, 4
_MIN_SHARED_HASHES = (
    26  # of the 32: of manuals in two versions that finds 140 of 144 near copies, and none of 44,861 unlike pairs
)
_MAX_TEXT_CHARACTERS = 200_000  # characters of a text
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")


def _word_hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace")) & _MAX_HASH


_HASH_CACHE = word_cache(_word_hash)


def compute_sketch(words: Iterable[str], text: str = "") -> str:
    """Return the sketch of a text's words, "" of none: hashes, hexadecimal, and behind a point a digest of the text.

    >>> sketch_of(["to", "be", "or", "not", "to", "be"], "to be or not to be"), sketch_of([])
    ('05fd7587d2c4b77587ca8e0d.52875cf41d24a988', '')
    """
    hashes = [*map(_HASH_CACHE.__getitem__, {*words})]
    if len(hashes) > _PRESELECT_FACTOR * _SKETCH_SIZE:  # sorting a few of many takes less time
        limit = _MAX_HASH * _PRESELECT_FACTOR * _SKETCH_SIZE // len(hashes)
        low = [each for each in hashes if each < limit]
        hashes = low if len({*low}) >= _SKETCH_SIZE else hashes
    kept = b"".join([each.to_bytes(3, "big") for each in sorted({*hashes})[:_SKETCH_SIZE]])
    return f"{kept.hex()}.{_text_digest(text)}" if kept else ""


def _text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def distinct_words(text: str) -> set[str]:
    """Return the different words of a text, in small letters; for a text that is not cut into words otherwise."""
    text = text[:_MAX_TEXT_CHARACTERS].lower()
    found = set[str]()
    for run in _WORD_RUN.findall(text):
        if _UNSPACED_START.match(run):
            found.update(bigrams(run))
        else:
            found.add(run)
    return found


class SketchIndex:
    """Sketches that are kept, to find one of them that another is nearly the same as."""

    def __init__(self) -> None:
        self._number_by_sketch: dict[str, int] = {}
        self._number_by_short_sketch: dict[str, int] = {}
        self._hash_sets: list[frozenset[str]] = []
        self._numbers_by_hash: dict[str, list[int]] = {}  # hash -> numbers of sketches that have it among their first

    def find(self, sketch: str, accepts: Callable[[int], bool] = lambda _: True) -> int | None:
        """Return the number of a sketch that is nearly the same, as :meth:`keep` gave it, None when there is none.

        ``accepts``: whether one that is not quite the same may be taken.
        """
        if sketch in self._number_by_sketch:
            return self._number_by_sketch[sketch]
        hashes = _sketch_hashes(sketch)
        if len(hashes) < _SKETCH_SIZE:  # of few words each one counts
            number = self._number_by_short_sketch.get(sketch.partition(".")[0])
            return number if number is not None and accepts(number) else None
        some, mine = {*hashes[: _SKETCH_SIZE - _MIN_SHARED_HASHES + 1]}, frozenset(hashes)
        near = sorted({number for each in some for number in self._numbers_by_hash.get(each, ())})
        return next(
            (number for number in near if _are_similar(self._hash_sets[number], mine) and accepts(number)), None
        )

    def add(self, sketch: str) -> int:
        """Keep a sketch; return its number, from 0 on."""
        number, hashes = len(self._hash_sets), _sketch_hashes(sketch)
        self._number_by_sketch.setdefault(sketch, number)
        self._hash_sets.append(frozenset(hashes))
        if len(hashes) < _SKETCH_SIZE:
            self._number_by_short_sketch.setdefault(sketch.partition(".")[0], number)
        else:
            for each in hashes[: _SKETCH_SIZE - _MIN_SHARED_HASHES + 1]:  # 26 in common: one of the first seven is
                self._numbers_by_hash.setdefault(each, []).append(number)
        return number


def _sketch_hashes(sketch: str) -> list[str]:
    return [sketch[at : at + _HASH_DIGITS] for at in range(0, sketch.find("."), _HASH_DIGITS)]


def _are_similar(one: frozenset[str], other: frozenset[str]) -> bool:
    both = one & other
    return (
        len(both) >= _MIN_SHARED_HASHES
        and len(both.intersection(sorted(one | other)[:_SKETCH_SIZE])) >= _MIN_SHARED_HASHES
    )
