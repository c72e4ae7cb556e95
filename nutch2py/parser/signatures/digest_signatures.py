"""Signatures: digests of 16 bytes that identify equal and nearly equal pages (``db.signature.class``)."""

from __future__ import annotations

import math
from collections import Counter
from hashlib import md5

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Signature
from nutch2py.records.cells import encode_text, float32
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class MD5Signature(Signature):
    """MD5 of the raw content, or of the page's URL when there is none. Any changed byte changes it."""

    java_class = "org.apache.nutch.crawl.MD5Signature"
    fields: frozenset[RecordField] = frozenset({WebPage.content, WebPage.base_url})

    def __init__(self, conf: Configuration | None = None) -> None:
        """Accept the configuration as every plug-in does; it is not used."""

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest."""
        return md5(page.content or encode_text(page.base_url or url), usedforsecurity=False).digest()


class TextMD5Signature(Signature):
    """MD5 of the parsed text, or of the content when there is no text. Changes of markup alone do not change it."""

    java_class = "org.apache.nutch.crawl.TextMD5Signature"
    fields: frozenset[RecordField] = MD5Signature.fields | {WebPage.text}

    def __init__(self, conf: Configuration | None = None) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest."""
        text = page.text
        if not text:
            return self._fallback.calculate(url, page)
        return md5(encode_text(text), usedforsecurity=False).digest()


class _WordCharacters(dict[int, str]):
    """Translation table for ``str.translate``: letters and digits to lower case, others to spaces; filled on demand.

    As with Java's ``char``, a letter beyond U+FFFF is two surrogates, which are not letters.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_word = code <= 0xFFFF and (character.isalpha() or character.isdecimal())
        # U+0130 is the only one with a lower case of two characters; Java returns the first
        translated = self[code] = character.lower()[0] if is_word else " "
        return translated


_WORD_CHARACTERS = _WordCharacters()


class TextProfileSignature(Signature):
    """MD5 of the frequent words with their rounded counts: equal for pages that differ in a few words.

    Equal byte for byte to Nutch 2: words of equal count are in the iteration order of a Java HashMap.
    ``db.signature.text_profile.min_token_len``: words must be longer (characters); ``….quant_rate``: fraction of the
    highest count to which counts are rounded down.
    """

    java_class = "org.apache.nutch.crawl.TextProfileSignature"
    fields: frozenset[RecordField] = TextMD5Signature.fields

    def __init__(self, conf: Configuration) -> None:
        self._fallback = MD5Signature(conf)
        self._min_length = conf.get_int("db.signature.text_profile.min_token_len", 2)
        self._quant_rate = float32(conf.get_float("db.signature.text_profile.quant_rate", 0.01))

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest."""
        text = page.text
        if not text:
            return self._fallback.calculate(url, page)
        return md5(self.profile(text).encode(), usedforsecurity=False).digest()

    def profile(self, text: str) -> str:
        """Return the text to digest: lines ``word count``, the most frequent first."""
        shortest = self._min_length
        counts = Counter(word for word in text.translate(_WORD_CHARACTERS).split() if len(word) > shortest)
        highest = max(counts.values(), default=0)
        quantum = math.floor(float32(highest * self._quant_rate) + 0.5)
        if quantum < 2:
            quantum = 2 if highest > 1 else 1
        rounded = [(word, count // quantum * quantum) for word, count in counts.items() if count >= quantum]
        buckets = java_hash_map_capacity(len(counts)) - 1
        rounded.sort(key=lambda entry: java_spread_hash(entry[0]) & buckets)
        rounded.sort(key=lambda entry: -entry[1])
        return "\n".join(f"{word} {count}" for word, count in rounded)


def java_hash_map_capacity(size: int) -> int:
    """Return the number of buckets of a ``java.util.HashMap`` filled one by one: 16, doubled above 3/4 full."""
    capacity = 16
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def java_spread_hash(text: str) -> int:
    """Return ``String.hashCode`` as HashMap spreads it, unsigned. ``text``: characters up to U+FFFF.

    >>> java_spread_hash("nutch")
    105189111
    """
    code = 0
    for character in text:
        code = (code * 31 + ord(character)) & 0xFFFFFFFF
    return code ^ (code >> 16)
