"""Terms with a prefix: read from pages, as for Solr and OpenSearch, and from the embedded dictionary."""

from collections import Counter

import pytest

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query.query_plan import PhraseClause
from nutch2py.search.suggestions.prefix_terms import SUGGEST_FIELDS, find_prefix_terms
from nutch2py.search.suggestions.suggester import Suggester, SuggestionCache
from tests.search.test_query_suite import BEGINNINGS, embedded

__all__ = ["embedded"]


class Reading(EmbeddedSearcher):
    """The embedded index with the methods of a server: it returns pages and numbers of pages."""

    def prefix_terms(self, prefix, limit):
        pages = {}
        for field in SUGGEST_FIELDS:
            for term, _ in self._searcher.terms_with_prefix(field, prefix, limit=1000):
                pages |= {page["id"]: page for page in self.documents_with_term(term, 100)}
        return find_prefix_terms(prefix, limit, [*pages.values()], self._numbers, self.analyzer)

    def _numbers(self, rows):
        return [self._searcher.doc_freq(row.field, row.terms[0]) for row in rows]


@pytest.mark.parametrize("typed", BEGINNINGS)
def test_prefix_terms_equal_dictionary_terms(embedded, typed):
    read, listed = Suggester(Reading(embedded)).suggest(typed), Suggester(EmbeddedSearcher(embedded)).suggest(typed)
    assert sorted(read.queries) == sorted(listed.queries)
    assert read.pages == listed.pages


def test_word_with_nested_stem_is_suggested(embedded):
    assert "database" in Suggester(EmbeddedSearcher(embedded)).suggest("datab").queries


@pytest.mark.parametrize(("typed", "word"), [("軟", "软件"), ("ｃｒａ", "crawler")])
def test_input_in_other_script_or_width_is_completed(embedded, typed, word):
    assert word in Suggester(EmbeddedSearcher(embedded)).suggest(typed).queries


def test_completions_are_cached(embedded):
    asked = Counter()

    class Counting(Reading):
        def prefix_terms(self, start, most):
            asked[start] += 1
            return super().prefix_terms(start, most)

    remembered = SuggestionCache()
    first = Suggester(Counting(embedded), remembered).suggest("craw")
    assert Suggester(Counting(embedded), remembered).suggest("craw") == first
    assert asked == {"craw": 1}


def test_completion_counts_come_from_index():
    pages = [{"title": "crab crabs", "content": ["crab crawler"], "lang": "en"}, {"title": "Crawlers", "content": ""}]
    numbers = {"crab": 3, "crawler": 50, "crawl": 50}

    def counted(rows: list[PhraseClause]) -> list[int]:
        return [numbers.get(row.terms[0], 0) * (row.field == "content") for row in rows]

    found = find_prefix_terms("cra", 5, pages, counted, Analyzer())
    assert [(each.term, each.page_count) for each in found] == [("crawler", 50), ("crab", 3)]
    assert found[1].spellings == {"crab": 2, "crabs": 1}
    assert find_prefix_terms("zzz", 5, pages, counted, Analyzer()) == []
    assert find_prefix_terms("cra", 5, [], lambda rows: pytest.fail("nothing to count"), Analyzer()) == []
