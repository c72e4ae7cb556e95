"""Forms of words that count as the same: letters with plain equivalents, names with signs, and spellings with hyphens.

Letters: ``œ`` is ``oe``, ``ø`` is ``o``; Arabic without vowel signs, with one form of alef, yeh and final heh. Names
whose signs distinguish them are words of their own: ``C++``, ``C#``, ``.NET``. A word with a hyphen or a number is
found joined and in parts, too: ``wi-fi`` by ``wifi``, ``iPhone15`` by ``iphone 15``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

_LATIN = {
    "œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ß": "ss", "ŋ": "n", "ħ": "h",
    "ŧ": "t", "ĸ": "k", "’": "'",
}  # fmt: skip
_LATIN_LETTERS = str.maketrans(_LATIN)
# As Lucene's normalizers of Arabic and Persian; the stemmer of Arabic expects the Arabic forms.
_ARABIC = {
    **dict.fromkeys("أإآٱ", "ا"), "ى": "ي", "ی": "ي", "ک": "ك", "ۀ": "ه", "ہ": "ه", "ة": "ه", "ؤ": "و", "ئ": "ي",
    "ـ": None,
    **{chr(code): None for code in (*range(0x64B, 0x660), 0x670, *range(0x610, 0x61B))},
    **{chr(zero + digit): str(digit) for zero in (0x660, 0x6F0) for digit in range(10)},
}  # fmt: skip
_ARABIC_LETTERS = str.maketrans(_ARABIC)
_ARABIC_LETTER = re.compile("[\u0600-\u06ff]")
_HEBREW_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]+")
_STEM_LETTERS: dict[str, dict[int, str | None]] = {
    "fr": {ord("œ"): "oe", ord("æ"): "ae"},
    "tr": {0x307: None},
    **{code: {0x901: "\u0902", 0x93C: None} for code in ("hi", "ne")},
}
"""Letters that a stemmer does not know, replaced before it."""

_SIGNED_NAME = re.compile(
    r"(?<![\w+#])(?:([A-Za-z])(?:(\+\+)(?![+#A-Za-z_])|#(?![#A-Za-z_]))|(objective-c)(?![\w+#]))|(?<![\w.])\.net(?!\w)",
    re.IGNORECASE,
)
_HYPHEN = re.compile("[-\u2010\u2011]")
_BEFORE_HYPHEN = re.compile(r"(?:.*[^\w\u2010\u2011-])?([^\W\d_]{1,20})", re.DOTALL)
_AFTER_HYPHEN = re.compile(r"([^\W\d_]{1,20})(?![\w\u2010\u2011-])")
_HYPHEN_CONTEXT = 21  # characters
_LETTERS_AND_NUMBER = re.compile(r"([^\W\d_]{2,20})(\d{1,4})|(\d{1,4})([^\W\d_]{2,20})")


def fold_letters(word: str) -> str:
    """Return a lower-case word with plain letters.

    >>> fold_letters("œuvre"), fold_letters("smørrebrød"), fold_letters("łódź"), fold_letters("straße")
    ('oeuvre', 'smorrebrod', 'lódź', 'strasse')
    """
    word = word.translate(_LATIN_LETTERS)
    if word > "\u0590":
        if _ARABIC_LETTER.search(word):
            return word.translate(_ARABIC_LETTERS)
        word = _HEBREW_POINTS.sub("", word)
    return word


FIRST_OTHER_SCRIPT = "\u0530"
"""The first character after the Latin, Greek and Cyrillic scripts."""


class PlainLetters:
    """Replaces letters with accents of the Latin, Greek and Cyrillic scripts, each by one letter.

    Offsets into the text stay valid. Terms have plain letters, so the words of a term can be found in such a text by
    their first letters.

    Attributes:
        long_letters: A pattern of the letters that stay, because terms have two letters for them, such as œ.
    """

    def __init__(self) -> None:
        letters: dict[str, str] = {}
        long_letters: list[str] = []
        for code in (*range(0xC0, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x2000)):
            letter = chr(code)
            if not letter.isalpha():
                continue
            decomposed = unicodedata.normalize("NFKD", letter)
            plain = "".join(each for each in decomposed if not unicodedata.combining(each))
            plain = "".join(_LATIN.get(each.lower(), each) for each in plain)
            if len(plain) != 1:
                long_letters.append(letter)
            elif plain != letter:
                letters[letter] = plain
        self._letters = letters
        self._pattern = re.compile(f"[{''.join(letters)}]")
        self.long_letters = re.compile(f"[{''.join(long_letters)}]")

    def replace_in(self, text: str) -> str:
        """Return a text of the same length with plain letters."""
        return text if text.isascii() else self._pattern.sub(lambda match: self._letters[match.group()], text)


@lru_cache(maxsize=1)
def get_plain_letters() -> PlainLetters:
    """Return the plain letters, built at the first use.

    >>> get_plain_letters().replace_in("Émile, Łódź, Йод, œuvre")
    'Emile, Lodz, Иод, œuvre'
    """
    return PlainLetters()


def prepare_for_stemmer(word: str, code: str) -> str:
    """Return a lower-case word with the letters that the stemmer of a language knows."""
    if word.isascii():
        return word
    if code == "ar":
        word = word.replace("ة", "ه").translate(_ARABIC_LETTERS)
        # The stemmer removes the ending ة; people often type ه for it.
        return f"{word[:-1]}ة" if len(word) > 3 and word.endswith("ه") else word
    letters = _STEM_LETTERS.get(code)
    return word if letters is None else word.translate(letters)


_ARABIC_PLURAL = re.compile("(?!ال).{3,}ات")
_FINNISH_KS = re.compile("(?<=[aouyöäei])ks$")


def stem_forms(word: str, code: str, stem: Callable[[str], str]) -> str:
    """Return the stem of a lower-case word, with forms that Snowball's rules of a language keep apart.

    Arabic plurals in ات are stemmed with the article, by which the stemmer knows nouns: سيارات is سيارة. Finnish words
    in -us have their stem in -uks (kokous, kokouksen), and d is the weak grade of t (sota, sodan).
    """
    if code == "ar" and _ARABIC_PLURAL.fullmatch(word):
        return stem(f"ال{word}")
    if code == "fi":
        return adjust_finnish_stem(stem(word))
    return stem(word)


def adjust_finnish_stem(stem: str) -> str:
    """Return the common stem of the forms of a Finnish word.

    >>> adjust_finnish_stem("kokouks"), adjust_finnish_stem("sod")
    ('kokous', 'sot')
    """
    return _FINNISH_KS.sub("s", stem).replace("d", "t")


def name_spans(text: str) -> list[tuple[int, int, str]]:
    """Return the names with signs in a text: start, end, and the word that stands for each.

    >>> name_spans("C++, C# and .NET, not C")
    [(0, 3, 'cplusplus'), (5, 7, 'csharp'), (12, 16, 'dotnet')]
    """
    if not ("++" in text or "#" in text or ".n" in text or ".N" in text or "ive-" in text or "IVE-" in text):
        return []
    return [(match.start(), match.end(), _spell_name(match)) for match in _SIGNED_NAME.finditer(text)]


def _spell_name(match: re.Match[str]) -> str:
    if match[3]:
        return "objectivec"
    if not match[1]:
        return "dotnet"
    return f"{match[1].lower()}{'plusplus' if match[2] else 'sharp'}"


def replace_names(text: str) -> str:
    """Return a text with a word for each name with signs."""
    spans = name_spans(text)
    if not spans:
        return text
    pieces, at = list[str](), 0
    for start, end, name in spans:
        pieces += [text[at:start], name, "/" if text[end : end + 1].isalnum() else ""]  # C++11
        at = end
    return "".join([*pieces, text[at:]])


def iter_joined_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the words with one hyphen in a text: start, end, and the word without it, ``wifi`` for ``wi-fi``."""
    if text.isascii() and "-" not in text:
        return
    for hyphen in _HYPHEN.finditer(text):
        at = hyphen.start()
        after = _AFTER_HYPHEN.match(text, at + 1)
        if after is None:
            continue
        lead = max(0, at - _HYPHEN_CONTEXT)
        before = _BEFORE_HYPHEN.fullmatch(text, lead, at)
        if before is not None and (before.start(1) > lead or not lead):
            yield before.start(1), after.end(), f"{before[1]}{after[1]}"


def split_number(word: str) -> tuple[str, ...]:
    """Return the letters and the number of a word that has both; empty for any other word.

    >>> split_number("iPhone15"), split_number("15gb"), split_number("log4j"), split_number("x86")
    (('iPhone', '15'), ('15', 'gb'), (), ())
    """
    match = _LETTERS_AND_NUMBER.fullmatch(word)
    return tuple(part for part in match.groups() if part) if match is not None else ()
