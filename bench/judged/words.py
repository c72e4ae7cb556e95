"""Words of a text for the BM25 baseline and for keyword queries."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

_BIGRAMS = frozenset({"ja", "th", "ko"})
"""Languages that are cut into pairs of characters."""
_STEMMERS = {
    "ar": "arabic", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "hi": "hindi", "it": "italian", "nl": "dutch", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""Snowball's algorithms. Languages without one have no stems."""
_SCRIPT_RUN = re.compile(r"[\u30a0-\u30ff]+|[\u4e00-\u9fff々]+|[a-z0-9]+")


def words(text: str, language: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, marks and digits.

    Chinese is cut by jieba. Japanese has no cutter here: its words are runs of Kanji, Katakana or Latin.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    if language == "zh":
        import rjieba

        return [word for word in rjieba.cut(folded) if any(map(str.isalnum, word))]
    if language == "ja":
        return _SCRIPT_RUN.findall(folded)
    return _runs(folded)


def terms(texts: list[str], language: str) -> list[list[str]]:
    """Return the terms of texts for BM25: stems, jieba's words for Chinese, or pairs of characters."""
    if language in _BIGRAMS:
        return [_bigrams(text) for text in texts]
    cut = [words(text, language) for text in texts]
    if language not in _STEMMERS:
        return cut
    import Stemmer

    stemmer = Stemmer.Stemmer(_STEMMERS[language])
    return [stemmer.stemWords(each) for each in cut]


def _runs(text: str) -> list[str]:
    """Return the runs of letters, marks and digits. The class of word characters in ``re`` lacks marks (Hindi, Thai).

    >>> _runs("हिन्दी, wi-fi")
    ['हिन्दी', 'wi', 'fi']
    """
    return "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in text).split()


def _bigrams(text: str) -> list[str]:
    """Return the pairs of characters of each run outside ASCII, and whole words in ASCII.

    >>> _bigrams("東京都 Python")
    ['東京', '京都', 'python']
    """
    found = []
    for run in _runs(unicodedata.normalize("NFKC", text).lower()):
        for part in re.findall(r"[a-z0-9]+|[^a-z0-9]+", run):
            pairs = ["".join(pair) for pair in pairwise(part)]
            found += [part] if part.isascii() or not pairs else pairs
    return found
