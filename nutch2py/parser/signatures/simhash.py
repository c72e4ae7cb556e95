"""SimHash: fingerprints that are similar for similar texts (Charikar 2002; Manku, Jain and Das Sarma 2007)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Signature
from nutch2py.parser.signatures.digest_signatures import MD5Signature
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

SIMHASH_BITS = 64
_SHINGLE_WORDS = 3  # consecutive words per shingle
_MAX_SHINGLES = 1 << 16  # bounds memory for any text
# a word, or one character of Chinese and Japanese
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


class SimHashSignature(Signature):
    """128-bit SimHash of the text's words in shingles of three; MD5 of the content when there is no text.

    Nearly equal texts differ in few bits (:func:`hamming_distance`) but are not equal, so DeduplicationJob finds the
    same duplicates as with TextMD5Signature. It is for programs that compare signatures themselves; ``dedup -simhash``
    finds near-duplicates.
    """

    fields: frozenset[RecordField] = MD5Signature.fields | {WebPage.text}

    def __init__(self, conf: Configuration | None = None) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the 16 bytes."""
        words = _WORD.findall((page.text or "").lower())
        return simhash(words, 128).to_bytes(16, "big") if words else self._fallback.calculate(url, page)


def simhash(words: Sequence[str], bits: int = SIMHASH_BITS) -> int:
    """Return the SimHash of a text's words: each bit is the majority of that bit over the hashes of its shingles.

    ``bits`` is a multiple of 8, at most 512. Shingles after the first 65,536 do not count.

    >>> text = [f"word{n}" for n in range(400)]
    >>> hamming_distance(simhash(text), simhash([*text[:200], "other", *text[201:]])) < 10 < hamming_distance(
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
    """Return the number of differing bits of two hashes: about half for unrelated texts."""
    return (one ^ other).bit_count()


def split_bands(value: int, count: int) -> list[int]:
    """Split 64 bits into ``count`` numbers: hashes that differ in fewer bits have at least one of them in common.

    >>> split_bands(0xABCD_0123_4567_89EF, 4) == [0x89EF, 0x4567, 0x0123, 0xABCD]
    True
    """
    edges = [SIMHASH_BITS * band // count for band in range(count + 1)]
    return [value >> low & ((1 << (high - low)) - 1) for low, high in pairwise(edges)]
