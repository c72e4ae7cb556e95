"""SimHash: 64 bits of a text, alike for texts that are alike (Charikar 2002; Manku, Jain and Das Sarma 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

BITS = 64
_SHINGLE = 3  # words in a row that make a feature
_LANE = 16  # bits in which one bit of the hash is counted
_MOST = (1 << _LANE) - 1
LEAST_WORDS = 20
"""Texts with fewer words are told apart by too few features."""

# byte at a position of the hash -> its eight bits, each in a lane of its own: one addition counts eight bits
_SPREAD = tuple(
    tuple(sum((byte >> bit & 1) << (_LANE * (8 * position + bit)) for bit in range(8)) for byte in range(256))
    for position in range(8)
)


def simhash(words: Sequence[str]) -> int | None:
    """Return the SimHash of the words of a text, None when there are fewer than 20.

    >>> text = [f"word{n}" for n in range(400)]
    >>> distance(simhash(text), simhash([*text[:200], "other", *text[201:]])) < 10 < distance(
    ...     simhash(text), simhash([*reversed(text)]))
    True
    """
    if len(words) < LEAST_WORDS:
        return None
    counts = features = 0
    for at in range(min(len(words) - _SHINGLE + 1, _MOST)):
        digest = blake2b(" ".join(words[at : at + _SHINGLE]).encode("utf-8", "replace"), digest_size=8).digest()
        counts += sum([spread[byte] for spread, byte in zip(_SPREAD, digest, strict=True)])
        features += 1
    found = 0
    for bit in range(BITS):
        if (counts >> (_LANE * bit) & _MOST) * 2 > features:
            found |= 1 << bit
    return found


def distance(one: int | None, other: int | None) -> int:
    """Return in how many bits two hashes differ, all 64 when one is None."""
    return BITS if one is None or other is None else (one ^ other).bit_count()


def bands(value: int, count: int) -> list[int]:
    """Cut a hash into ``count`` numbers: hashes that differ in fewer bits than that have one of them in common.

    >>> bands(0xABCD_0123_4567_89EF, 4) == [0x89EF, 0x4567, 0x0123, 0xABCD]
    True
    """
    edges = [BITS * band // count for band in range(count + 1)]
    return [value >> low & ((1 << (high - low)) - 1) for low, high in pairwise(edges)]
