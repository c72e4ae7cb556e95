"""What was perhaps meant by a query that finds little, for every index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from nutch2py.records.document import clean_text
from nutch2py.search.results.search_results import field_values

_MAX_CHECKED_WORDS = 8  # of a query that are looked at
_SAMPLE_DOCUMENTS = 30  # documents that tell how a word is written
_MAX_TEXT_CHARACTERS = 20_000  # characters of each
_CHECKED_WORD = re.compile(r"(?<![\w:\-])[^\W\d_]{4,64}(?![\w:])")


class SpellingIndex(Protocol):
    """What is asked of an index."""

    def count_matches(self, query: str) -> int:
        """Return how many documents match."""

    def fuzzy_documents(self, word: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents with a word in title or content that is near, and these two fields of each."""


class _SpellingCandidate(NamedTuple):
    """A word that stands in the index; the least one is the best."""

    distance: int
    rarity: int  # minus the number of documents that have it
    word: str


def correct_query(index: SpellingIndex, query: str) -> str:
    """Return the query with the words that no document has replaced by near ones that some has; else an empty text.

    Near are words that begin with the same letter and differ by one change (insert, delete, replace or swap a letter),
    by two from six letters on. Words of less than four letters stay as they are, and Chinese ones, for each of them is
    near to hundreds of others; so do fields, excluded words and operators. The query that is returned finds something.
    """
    query = clean_text(query)
    parts: list[str] = []
    at = looked = 0
    for match in _CHECKED_WORD.finditer(query):
        word = match.group()
        if looked == _MAX_CHECKED_WORDS:
            break
        if word in ("AND", "NOT") or _is_unspaced(word):
            continue
        looked += 1
        if index.count_matches(word):
            continue
        best = min(_iter_candidates(index, word.lower()), default=None)
        if best is not None:
            parts += [query[at : match.start()], best.word]
            at = match.end()
    if not parts:
        return ""
    meant = "".join([*parts, query[at:]])
    return meant if index.count_matches(meant) else ""


def _is_unspaced(word: str) -> bool:
    return any("\u0e00" <= character <= "\u0eff" or character >= "\u2e80" for character in word)


def _iter_candidates(searcher: SpellingIndex, word: str) -> Iterator[_SpellingCandidate]:
    """Yield the words of documents that are near, as they are written there."""
    for distance in (1, 2) if len(word) >= 6 else (1,):
        written: Counter[str] = Counter()
        for fields in searcher.fuzzy_documents(word, distance, _SAMPLE_DOCUMENTS):
            seen = {
                match.group().lower()
                for name in ("title", "content")
                for text in field_values(fields, name)
                for match in _CHECKED_WORD.finditer(text[:_MAX_TEXT_CHARACTERS])
            }
            written.update(
                each for each in seen if each[0] == word[0] and edit_distance(word, each, distance) <= distance
            )
        if written:
            yield from (
                _SpellingCandidate(edit_distance(word, each, distance), -count, each) for each, count in written.items()
            )
            return


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return how many letters to insert, delete, replace or swap with the next make one word the other.

    Counting ends at ``most + 1`` (optimal string alignment).

    >>> changes("crwaler", "crawler", 2), changes("nutch", "notch", 2), changes("abc", "xyz", 1)
    (1, 1, 2)
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before = before, row
        row = [i]
        for j, against in enumerate(other, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
