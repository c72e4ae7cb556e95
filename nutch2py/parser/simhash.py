"""SimHash: a signature whose bits change little when the text does (Charikar 2002; Manku, Jain and Das Sarma 2007)."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import md5
from itertools import pairwise
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.parser.signature import MD5Signature
from nutch2py.record import Field
from nutch2py.webpage import WebPage

_WORD = re.compile(r"\w+")
_LANE = 32  # bits of a counter; texts have far fewer than 2**31 words
# byte of a digest -> its 8 bits, each in a lane of its own, so that one addition counts all of them
_SPREAD = [sum((byte >> bit & 1) << (_LANE * bit) for bit in range(8)) for byte in range(256)]
_BYTES = 16


class SimHashSignature:
    """128 bits of the words of the text and their pairs; of the content (MD5) when there is no text.

    Nearly equal texts differ in few bits (:func:`distance`), but are not equal, so DeduplicationJob finds with it what
    TextMD5Signature finds but for the order of far words. It is for those who compare signatures themselves.
    """

    fields: frozenset[Field[Any]] = MD5Signature.fields | {WebPage.text}

    def __init__(self, conf: Configuration | None = None) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the 16 bytes."""
        text = page.text
        return simhash(text) if text and _WORD.search(text) else self._fallback.calculate(url, page)


def simhash(text: str) -> bytes:
    """Return the SimHash of a text: bit by bit, what most of its words and pairs of words have in their MD5.

    >>> distance(simhash("one two three four five six"), simhash("six one two three four five")) < 50
    True
    """
    words = _WORD.findall(text.lower())
    counts = Counter(words)
    counts.update(map(" ".join, pairwise(words)))
    lanes = [0] * _BYTES
    total = 0
    for feature, count in counts.items():
        total += count
        digest = md5(feature.encode("utf-8", "replace"), usedforsecurity=False).digest()
        for index, byte in enumerate(digest):
            lanes[index] += _SPREAD[byte] * count
    mask = (1 << _LANE) - 1
    return bytes(sum((2 * (lane >> (_LANE * bit) & mask) > total) << bit for bit in range(8)) for lane in lanes)


def distance(one: bytes, other: bytes) -> int:
    """Return in how many bits two signatures differ: about 64 of unrelated texts, below 20 of nearly equal ones."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
