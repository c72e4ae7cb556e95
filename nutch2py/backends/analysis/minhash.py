"""MinHash sketches: detect near-duplicate texts by 209 characters per text in an index.

A sketch holds the 32 smallest hashes of a text's distinct words. The share of the smallest hashes of two texts together
that both have estimates the share of words that they have in common (bottom-k sketch, Broder 1997). Words count
once, since a page that repeats them is no other page. Scripts without spaces use bigrams instead of words.
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
_MIN_SHARED_HASHES = 26  # finds 140 of 144 near copies among manuals in two versions, and none of 44,861 unlike pairs
_MAX_TEXT_CHARACTERS = 200_000
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")


def _word_hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace")) & _MAX_HASH


_HASH_CACHE = word_cache(_word_hash)


def compute_sketch(words: Iterable[str], text: str = "") -> str:
    """Return the sketch of a text's words: hexadecimal hashes, a dot, and a digest of the text. "" without words.

    >>> compute_sketch(["to", "be", "or", "not", "to", "be"], "to be or not to be"), compute_sketch([])
    ('05fd7587d2c4b77587ca8e0d.52875cf41d24a988', '')
    """
    hashes = [*map(_HASH_CACHE.__getitem__, {*words})]
    if len(hashes) > _PRESELECT_FACTOR * _SKETCH_SIZE:  # sorting a preselection is faster
        limit = _MAX_HASH * _PRESELECT_FACTOR * _SKETCH_SIZE // len(hashes)
        low = [each for each in hashes if each < limit]
        hashes = low if len({*low}) >= _SKETCH_SIZE else hashes
    kept = b"".join([each.to_bytes(3, "big") for each in sorted({*hashes})[:_SKETCH_SIZE]])
    return f"{kept.hex()}.{_text_digest(text)}" if kept else ""


def _text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def distinct_words(text: str) -> set[str]:
    """Return the distinct words of a text, in lower case, for texts that no analyzer splits."""
    text = text[:_MAX_TEXT_CHARACTERS].lower()
    words = set[str]()
    for run in _WORD_RUN.findall(text):
        if _UNSPACED_START.match(run):
            words.update(bigrams(run))
        else:
            words.add(run)
    return words


class SketchIndex:
    """Set of sketches that finds a near-duplicate of a given one."""

    def __init__(self) -> None:
        self._number_by_sketch: dict[str, int] = {}
        self._number_by_short_sketch: dict[str, int] = {}
        self._hash_sets: list[frozenset[str]] = []
        self._numbers_by_hash: dict[str, list[int]] = {}  # hash -> sketches with it among their first

    def find(self, sketch: str, accepts: Callable[[int], bool] = lambda _: True) -> int | None:
        """Return the number of a near-duplicate sketch, as :meth:`add` returned it; None when there is none.

        ``accepts``: predicate on the number of a sketch that is similar but not identical.
        """
        if sketch in self._number_by_sketch:
            return self._number_by_sketch[sketch]
        hashes = _sketch_hashes(sketch)
        if len(hashes) < _SKETCH_SIZE:  # with few words every word counts
            number = self._number_by_short_sketch.get(sketch.partition(".")[0])
            return number if number is not None and accepts(number) else None
        some, mine = {*hashes[: _SKETCH_SIZE - _MIN_SHARED_HASHES + 1]}, frozenset(hashes)
        near = sorted({number for each in some for number in self._numbers_by_hash.get(each, ())})
        return next(
            (number for number in near if _are_similar(self._hash_sets[number], mine) and accepts(number)), None
        )

    def add(self, sketch: str) -> int:
        """Add a sketch and return its number, counted from 0."""
        number, hashes = len(self._hash_sets), _sketch_hashes(sketch)
        self._number_by_sketch.setdefault(sketch, number)
        self._hash_sets.append(frozenset(hashes))
        if len(hashes) < _SKETCH_SIZE:
            self._number_by_short_sketch.setdefault(sketch.partition(".")[0], number)
        else:
            for each in hashes[
                : _SKETCH_SIZE - _MIN_SHARED_HASHES + 1
            ]:  # with 26 in common, one is among the first seven
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
