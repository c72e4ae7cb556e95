"""SimHash: bits of a text, alike for texts that are alike (Charikar 2002; Manku, Jain and Das Sarma 2007)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Signature
from nutch2py.parser.signatures.digest_signatures import MD5Signature
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage

SIMHASH_BITS = 64
_SHINGLE_WORDS = 3  # words in a row that make a feature
_MAX_SHINGLES = 1 << 16  # features that are counted: memory stays small whatever the text
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"
)  # of Chinese and Japanese, a character


class SimHashSignature(Signature):
    """128 bits of the words of the text, three in a row; of the content (MD5) when there is no text.

    Nearly equal texts differ in few bits (:func:`hamming_distance`), but are not equal, so DeduplicationJob finds with it what
    TextMD5Signature finds. It is for those who compare signatures themselves; for near-duplicates there is
    ``dedup -simhash``.
    """

    fields: frozenset[Field[Any]] = MD5Signature.fields | {WebPage.text}

    def __init__(self, conf: Configuration | None = None) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the 16 bytes."""
        words = _WORD.findall((page.text or "").lower())
        return simhash(words, 128).to_bytes(16, "big") if words else self._fallback.calculate(url, page)


def simhash(words: Sequence[str], bits: int = SIMHASH_BITS) -> int:
    """Return the SimHash of the words of a text: bit by bit, what most shingles of three words have in their hash.

    ``bits`` is a multiple of 8, at most 512. Shingles after the first 65,536 do not count.

    >>> text = [f"word{n}" for n in range(400)]
    >>> distance(simhash(text), simhash([*text[:200], "other", *text[201:]])) < 10 < distance(
    ...     simhash(text), simhash([*reversed(text)]))
    True
    """
    import numpy as np

    size = bits // 8
    shingles = [
        " ".join(words[at : at + _SHINGLE_WORDS])
        for at in range(min(max(len(words) - _SHINGLE_WORDS, 0) + 1, _MAX_SHINGLES))
    ]
    digests = b"".join([blake2b(each.encode("utf-8", "replace"), digest_size=size).digest() for each in shingles])
    hashes = np.frombuffer(digests, np.uint8).reshape(-1, size)
    votes = np.unpackbits(hashes, axis=1).sum(axis=0, dtype=np.int32)
    return int.from_bytes(np.packbits(2 * votes > len(shingles)).tobytes(), "big")


def hamming_distance(one: int, other: int) -> int:
    """Return in how many bits two hashes differ: about half of them for unrelated texts."""
    return (one ^ other).bit_count()


def split_bands(value: int, count: int) -> list[int]:
    """Cut 64 bits into ``count`` numbers: hashes that differ in fewer bits than that have one of them in common.

    >>> bands(0xABCD_0123_4567_89EF, 4) == [0x89EF, 0x4567, 0x0123, 0xABCD]
    True
    """
    edges = [SIMHASH_BITS * band // count for band in range(count + 1)]
    return [value >> low & ((1 << (high - low)) - 1) for low, high in pairwise(edges)]
