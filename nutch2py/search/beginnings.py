"""Words that begin as what was typed: terms of an index, how many pages have them, and how they are written there.

A server does not tell its dictionary in a way that Solr and OpenSearch share. So words are read in the pages of best
standing that have any, and the server counts the pages of each: a word of many pages is in some of these.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from string import ascii_lowercase
from typing import Any, NamedTuple

from nutch2py.backends.analysis import Analyzer
from nutch2py.search.plan import Row
from nutch2py.search.results import first_of, texts_of

FIELDS = ("title", "content")
"""Where words are suggested from."""
SAMPLED = 40
"""Pages that are read for a beginning."""
_TEXT = 20_000  # characters of each
_RUN = re.compile(r"[^\W_]+")


def _written() -> dict[str, str]:
    """Return how each letter from a to z can be written in a text: with an accent, too."""
    found = {letter: letter for letter in ascii_lowercase}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base in found:
            found[base] += chr(code)
    return found


_WRITTEN = _written()


def words_beginning(start: str) -> re.Pattern[str]:
    """Return a pattern of words that begin so; a letter of ``start`` stands for those with an accent, too."""
    letters = "".join(f"[{_WRITTEN[each]}]" if each in _WRITTEN else re.escape(each) for each in start)
    return re.compile(rf"(?<![^\W_]){letters}[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)


class Beginning(NamedTuple):
    """A term, the number of pages that have it (in the title and in the content are two), how they write it."""

    term: str
    pages: int
    written: Counter[str]


def terms_beginning(
    start: str,
    most: int,
    pages: Sequence[dict[str, Any]],
    numbers: Callable[[list[Row]], list[int]],
    analyzer: Analyzer,
) -> list[Beginning]:
    """Return terms that begin so, those of most pages first, as far as they stand in ``pages``.

    ``numbers`` says how many pages have each row.
    """
    seen: Counter[str] = Counter()
    written: dict[str, Counter[str]] = {}
    for page in pages:
        of_page = [*_terms(page, start, analyzer)]
        seen.update({term for term, _ in of_page})
        for term, word in of_page:
            written.setdefault(term, Counter())[word] += 1
    terms = [term for term, _ in seen.most_common(2 * most)]
    rows = [Row(field, (term,)) for term in terms for field in FIELDS]
    counted = numbers(rows) if rows else []
    found = [
        Beginning(term, sum(counted[i : i + len(FIELDS)]), written[term])
        for term, i in zip(terms, range(0, len(rows), len(FIELDS)), strict=True)
    ]
    return sorted((each for each in found if each.pages), key=lambda each: (-each.pages, each.term))[:most]


def _terms(page: dict[str, Any], start: str, analyzer: Analyzer) -> Iterator[tuple[str, str]]:
    """Yield the terms of a page that begin so, each with how it is written."""
    lang = first_of(page, "lang") or "en"
    begins = words_beginning(start)
    for name in FIELDS:
        for text in texts_of(page, name):
            if start.isascii():
                for match in begins.finditer(text[:_TEXT]):
                    word = match.group().lower()
                    for term in analyzer.words(word, lang):
                        if term.startswith(start):
                            yield term, word
                continue
            for run in _RUN.findall(analyzer.folded(text[:_TEXT])):
                if start in run.lower():
                    yield from ((term, term) for term in analyzer.words(run, lang) if term.startswith(start))
