"""Homophones of Chinese words: what an input method by pronunciation offers next to the meant word.

The readings of characters are those of the package pypinyin, without tones. Only its table of characters is read: its
table of phrases needs half a second and 55 MB. Without the package no word has homophones.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

_MAX_PAIRS = 2_500  # words of two characters with the reading of a word


@cache
def _read_readings() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the readings of the characters in common use (GB 2312), and the characters of each reading."""
    import orjson

    package = importlib.util.find_spec("pypinyin")
    if package is None or not package.submodule_search_locations:
        return {}, {}
    table = orjson.loads((Path(package.submodule_search_locations[0]) / "pinyin_dict.json").read_bytes())
    readings: dict[str, tuple[str, ...]] = {}
    characters: dict[str, str] = {}
    common = b"".join(bytes((row, cell)) for row in range(0xB0, 0xF8) for cell in range(0xA1, 0xFF))
    for character in common.decode("gb2312", "ignore"):
        plain = unicodedata.normalize("NFD", table.get(str(ord(character)), ""))
        syllables = "".join(each for each in plain if each.isascii() or each == "\u0308").split(",")
        readings[character] = tuple(dict.fromkeys(filter(None, syllables)))
        for syllable in readings[character]:
            characters[syllable] = characters.get(syllable, "") + character
    return readings, characters


def homophones_of(character: str) -> str:
    """Return the other characters in common use with a reading of a character."""
    readings, characters = _read_readings()
    alike = dict.fromkeys(other for syllable in readings.get(character, ()) for other in characters[syllable])
    alike.pop(character, None)
    return "".join(alike)


def iter_homophones(word: str) -> Iterator[str]:
    """Yield the words with one character of ``word`` replaced by a homophone; of two characters also with both."""
    alike = [homophones_of(character) for character in word]
    for at, others in enumerate(alike):
        yield from (word[:at] + other + word[at + 1 :] for other in others)
    if len(word) == 2 and len(alike[0]) * len(alike[1]) <= _MAX_PAIRS:
        yield from map("".join, product(*alike))
