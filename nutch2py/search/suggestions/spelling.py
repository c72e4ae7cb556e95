"""Spelling correction of queries with few hits, for every index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from nutch2py.records.document import clean_text
from nutch2py.search.results.search_results import field_values

_MAX_CHECKED_WORDS = 8  # of a query
_SAMPLE_DOCUMENTS = 30  # documents read for the spelling of a word
_MAX_TEXT_CHARACTERS = 20_000  # of a document
_CHECKED_WORD = re.compile(r"(?<![\w:\-])[^\W\d_]{4,64}(?![\w:])")


class SpellingIndex(Protocol):
    """The part of an index that spelling correction needs."""

    def count_matches(self, query: str) -> int:
        """Return the number of matching documents."""

    def fuzzy_documents(self, word: str, distance: int, limit: int) -> list[dict[str, Any]]:
        """Return documents with a similar word in title or content, with these two fields."""


class _SpellingCandidate(NamedTuple):
    """A word of the index; the smallest candidate is the best."""

    distance: int
    rarity: int  # minus the number of its documents
    word: str


def correct_query(index: SpellingIndex, query: str) -> str:
    """Return the query with words that no document has replaced by similar ones; "" without a better query.

    Similar words start with the same letter and differ by one edit (insert, delete, replace or swap a letter), or by
    two from six letters on. Words of fewer than four letters and Chinese words, each similar to hundreds of others,
    stay unchanged; so do fields, excluded words and operators. The returned query has matches.
    """
    query = clean_text(query)
    parts: list[str] = []
    at = checked = 0
    for match in _CHECKED_WORD.finditer(query):
        word = match.group()
        if checked == _MAX_CHECKED_WORDS:
            break
        if word in ("AND", "NOT") or _is_unspaced(word):
            continue
        checked += 1
        if index.count_matches(word):
            continue
        best = min(_iter_candidates(index, word.lower()), default=None)
        if best is not None:
            parts += [query[at : match.start()], best.word]
            at = match.end()
    if not parts:
        return ""
    corrected = "".join([*parts, query[at:]])
    return corrected if index.count_matches(corrected) else ""


def _is_unspaced(word: str) -> bool:
    return any("\u0e00" <= character <= "\u0eff" or character >= "\u2e80" for character in word)


def _iter_candidates(searcher: SpellingIndex, word: str) -> Iterator[_SpellingCandidate]:
    """Yield similar words of documents, in their original spelling."""
    for distance in (1, 2) if len(word) >= 6 else (1,):
        spellings: Counter[str] = Counter()
        for fields in searcher.fuzzy_documents(word, distance, _SAMPLE_DOCUMENTS):
            seen = {
                match.group().lower()
                for name in ("title", "content")
                for text in field_values(fields, name)
                for match in _CHECKED_WORD.finditer(text[:_MAX_TEXT_CHARACTERS])
            }
            spellings.update(
                each for each in seen if each[0] == word[0] and edit_distance(word, each, distance) <= distance
            )
        if spellings:
            yield from (
                _SpellingCandidate(edit_distance(word, each, distance), -count, each)
                for each, count in spellings.items()
            )
            return


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the edit distance of two words, with swaps of neighbours (optimal string alignment).

    The result is at most ``limit + 1``.

    >>> edit_distance("crwaler", "crawler", 2), edit_distance("nutch", "notch", 2), edit_distance("abc", "xyz", 1)
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
