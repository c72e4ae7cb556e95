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

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.search.query.query_plan import PhraseClause
from nutch2py.search.results.search_results import field_values, first_value

SUGGEST_FIELDS = ("title", "content")
"""Where words are suggested from."""
SAMPLE_SIZE = 40
"""Pages that are read for a beginning."""
_MAX_TEXT_CHARACTERS = 20_000  # characters of each
_WORD_RUN = re.compile(r"[^\W_]+")


def _build_accent_variants() -> dict[str, str]:
    """Return how each letter from a to z can be written in a text: with an accent, too."""
    found = {letter: letter for letter in ascii_lowercase}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base in found:
            found[base] += chr(code)
    return found


_ACCENT_VARIANTS = _build_accent_variants()


def prefix_pattern(prefix: str) -> re.Pattern[str]:
    """Return a pattern of words that begin so; a letter of ``prefix`` stands for those with an accent, too."""
    letters = "".join(f"[{_ACCENT_VARIANTS[each]}]" if each in _ACCENT_VARIANTS else re.escape(each) for each in prefix)
    return re.compile(rf"(?<![^\W_]){letters}[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)


class PrefixTerm(NamedTuple):
    """A term, the number of pages that have it (in the title and in the content are two), how they write it."""

    term: str
    page_count: int
    spellings: Counter[str]


def find_prefix_terms(
    prefix: str,
    limit: int,
    pages: Sequence[dict[str, Any]],
    count_pages: Callable[[list[PhraseClause]], list[int]],
    analyzer: Analyzer,
) -> list[PrefixTerm]:
    """Return terms that begin so, those of most pages first, as far as they stand in ``pages``.

    ``count_pages`` says how many pages have each row.
    """
    seen: Counter[str] = Counter()
    written: dict[str, Counter[str]] = {}
    for page in pages:
        of_page = [*_iter_terms(page, prefix, analyzer)]
        seen.update({term for term, _ in of_page})
        for term, word in of_page:
            written.setdefault(term, Counter())[word] += 1
    terms = [term for term, _ in seen.most_common(2 * limit)]
    rows = [PhraseClause(field, (term,)) for term in terms for field in SUGGEST_FIELDS]
    counted = count_pages(rows) if rows else []
    found = [
        PrefixTerm(term, sum(counted[i : i + len(SUGGEST_FIELDS)]), written[term])
        for term, i in zip(terms, range(0, len(rows), len(SUGGEST_FIELDS)), strict=True)
    ]
    return sorted((each for each in found if each.page_count), key=lambda each: (-each.page_count, each.term))[:limit]


def _iter_terms(page: dict[str, Any], start: str, analyzer: Analyzer) -> Iterator[tuple[str, str]]:
    """Yield the terms of a page that begin so, each with how it is written."""
    lang = first_value(page, "lang") or "en"
    begins = prefix_pattern(start)
    for name in SUGGEST_FIELDS:
        for text in field_values(page, name):
            if start.isascii():
                for match in begins.finditer(text[:_MAX_TEXT_CHARACTERS]):
                    word = match.group().lower()
                    for term in analyzer.index_terms(word, lang):
                        if term.startswith(start):
                            yield term, word
                continue
            for run in _WORD_RUN.findall(analyzer.fold(text[:_MAX_TEXT_CHARACTERS])):
                if start in run.lower():
                    yield from ((term, term) for term in analyzer.index_terms(run, lang) if term.startswith(start))
