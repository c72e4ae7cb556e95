"""Guesses Mac Roman, Mac Cyrillic and ISO-8859-15, which Firefox's detector takes for windows-1252 and windows-1251.

There letters become symbols or capitals within words: ``flie§t``, ``рЯд``, ``c½ur``. Few texts have such words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from nutch2py.parser.charset.encoding_names import decode

_MAC_ENCODINGS = {"windows-1252": ("macintosh", "x-mac-cyrillic"), "windows-1251": ("x-mac-cyrillic",)}
_MIN_ODD, _MIN_RATIO = 4, 8  # odd words of a text, and how many times more they are than in the other encoding
_NEUTRAL = frozenset("\xa0\xad·’‘“”„«»–—…´`¨°ºª®©™²³¹§¶•")  # also stand next to letters
_BETWEEN_ONLY = frozenset("§®©™¶°ºª•²³¹")  # of those, never between two letters of a word
_ODD_WORD = re.compile(rb"[al]U|kK|[alAUkK]s|(?<=[alk])b(?=[alk])|[alAU][kK]|[kK][alAU]|c")
# euro sign by an amount, and the ligature oe: in windows-1252 the currency sign and fractions
_LATIN_9 = re.compile(
    rb"[0-9][ \xa0]?\xa4(?![A-Za-z\x80-\xff])|(?<![A-Za-z\x80-\xff])\xa4[ \xa0]?[0-9]"
    rb"|(?<![0-9\x80-\xff])[\xbc\xbd](?=[a-z])"
)
_CONTROLS = re.compile(rb"[\x80-\x9f]")


def refine_guess(name: str, sample: bytes) -> str:
    """Return the guessed encoding ``name``, or the one in whose reading a text has clearly fewer odd words."""
    others = _MAC_ENCODINGS.get(name, ())
    if others and (odd := _count_odd_words(name, sample)) >= _MIN_ODD:
        least, other = min((_count_odd_words(other, sample), other) for other in others)
        if odd >= _MIN_RATIO * least:
            return other
    if name == "windows-1252" and not _CONTROLS.search(sample) and _LATIN_9.search(sample):
        return "iso-8859-15"
    return name


def _count_odd_words(name: str, sample: bytes) -> int:
    return len(_ODD_WORD.findall(sample.translate(_classes(name))))


@cache
def _classes(name: str) -> bytes:
    """Return the class of each byte in an encoding.

    Letters of ASCII are ``a`` and ``A``, other Latin ones ``l`` and ``U``, those of other scripts ``k`` and ``K``;
    symbols are ``s``, those that follow words ``b``, control characters ``c``, everything else is a space.
    """
    return bytes(ord(_classify(decode(bytes([byte]), name))) for byte in range(256))


def _classify(character: str) -> str:
    category = unicodedata.category(character)
    if character.isascii():
        return {"Ll": "a", "Lu": "A"}.get(category, " ")
    if category in ("Ll", "Lu"):
        classes = "lU" if unicodedata.name(character).startswith("LATIN") else "kK"
        return classes[category == "Lu"]
    if character in _NEUTRAL:
        return "b" if character in _BETWEEN_ONLY else " "
    return "c" if category == "Cc" or character == "\ufffd" else "s"
