"""Vietnamese words with their marks: ``bán``, ``bàn`` and ``bạn`` are different words.

Terms have no accents, so that people who type without them find pages. The words of a text with marks have a second
term in pages in Vietnamese, by which a query with marks prefers them.
"""

from __future__ import annotations

import re
import unicodedata

LANGUAGE = "vi"
_PREFIX = "="
_VIETNAMESE_LETTER = re.compile("[đĐ\u031b\u0309\u0323]|[\u0302\u0306][\u0300\u0301\u0303]")
_MARK = re.compile("[đĐ\u0300-\u0303\u0306\u0309\u031b\u0323]")
_TONE = re.compile("[\u0300\u0301\u0303\u0309\u0323]")


def is_vietnamese(text: str) -> bool:
    """Return whether a text has a letter that no other language with many readers has.

    >>> is_vietnamese("người"), is_vietnamese("café à la crème"), is_vietnamese("Ha Noi")
    (True, False, False)
    """
    return not text.isascii() and _VIETNAMESE_LETTER.search(unicodedata.normalize("NFD", text)) is not None


def has_marks(text: str) -> bool:
    """Return whether a text in Vietnamese is written with marks.

    >>> has_marks("bàn"), has_marks("ban")
    (True, False)
    """
    return not text.isascii() and _MARK.search(unicodedata.normalize("NFD", text)) is not None


def marked_term(word: str) -> str:
    """Return the term of a word with its marks, which no word without them has.

    The tone is at the end, because writers place it on different vowels.

    >>> marked_term("Hoà") == marked_term("hòa"), marked_term("hoa") == marked_term("hòa")
    (True, False)
    """
    decomposed = unicodedata.normalize("NFD", word.lower())
    letters = unicodedata.normalize("NFC", _TONE.sub("", decomposed))
    return f"{_PREFIX}{letters}{''.join(_TONE.findall(decomposed))}"
