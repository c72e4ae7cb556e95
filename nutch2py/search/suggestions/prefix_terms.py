"""Terms of an index with a prefix, with their numbers of pages and their spellings.

Solr and OpenSearch have no common API for their dictionaries. So terms are read from the matching pages with the
highest weights, and the server counts the pages of each: a frequent term occurs in some of these pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.analysis.word_forms import get_plain_letters
from nutch2py.search.query.query_plan import PhraseClause
from nutch2py.search.results.search_results import field_values, first_value
from nutch2py.support.bounded_cache import bounded_cache

SUGGEST_FIELDS = ("title", "content")
"""Fields that provide suggestions."""
SAMPLE_SIZE = 40
"""Number of pages read for a prefix."""
MAX_TEXT_CHARACTERS = 20_000
"""Characters of a page that suggestions read."""
_WORD_RUN = re.compile(r"[^\W_]+")


@bounded_cache(maxsize=2_000, max_key_length=16)
def start_pattern(start: str) -> re.Pattern[str]:
    """Return a pattern of words with a start, for a text with plain letters."""
    return re.compile(rf"(?<![^\W_]){re.escape(start)}[^\W_]*(?:['’][^\W_]+)*", re.IGNORECASE)


class PrefixTerm(NamedTuple):
    """A term, its number of pages (title and content count separately), and its spellings in texts."""

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
    """Return terms with a prefix that occur in ``pages``, those of most pages first.

    ``count_pages`` returns the number of pages with each phrase.
    """
    seen: Counter[str] = Counter()
    spellings: dict[str, Counter[str]] = {}
    for page in pages:
        of_page = [*_iter_terms(page, prefix, analyzer)]
        seen.update({term for term, _ in of_page})
        for term, word in of_page:
            spellings.setdefault(term, Counter())[word] += 1
    terms = [term for term, _ in seen.most_common(2 * limit)]
    rows = [PhraseClause(field, (term,)) for term in terms for field in SUGGEST_FIELDS]
    counted = count_pages(rows) if rows else []
    prefix_terms = [
        PrefixTerm(term, sum(counted[i : i + len(SUGGEST_FIELDS)]), spellings[term])
        for term, i in zip(terms, range(0, len(rows), len(SUGGEST_FIELDS)), strict=True)
    ]
    counted_terms = (each for each in prefix_terms if each.page_count)
    return sorted(counted_terms, key=lambda each: (-each.page_count, each.term))[:limit]


def _iter_terms(page: dict[str, Any], start: str, analyzer: Analyzer) -> Iterator[tuple[str, str]]:
    """Yield the terms of a page with a prefix, each with its spelling."""
    lang = first_value(page, "lang") or "en"
    pattern = start_pattern(start)
    for name in SUGGEST_FIELDS:
        for text in field_values(page, name):
            if start.isascii():
                read = text[:MAX_TEXT_CHARACTERS]
                for match in pattern.finditer(get_plain_letters().replace_in(read)):
                    word = read[match.start() : match.end()].lower()
                    for term in analyzer.index_terms(word, lang):
                        if term.startswith(start):
                            yield term, word
                continue
            for run in _WORD_RUN.findall(analyzer.fold(text[:MAX_TEXT_CHARACTERS])):
                if start in run.lower():
                    yield from ((term, term) for term in analyzer.index_terms(run, lang) if term.startswith(start))
