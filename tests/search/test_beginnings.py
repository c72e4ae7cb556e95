"""Words that begin as what was typed: read in pages, as for Solr and OpenSearch, and of the embedded dictionary."""

from collections import Counter

import pytest

from nutch2py.backends.analysis import Analyzer
from nutch2py.search.beginnings import FIELDS, terms_beginning
from nutch2py.search.plan import Row
from nutch2py.search.searcher import EmbeddedSearcher
from nutch2py.search.suggest import Remembered, Suggester
from tests.search.test_asked import BEGINNINGS, embedded

__all__ = ["embedded"]


class Reading(EmbeddedSearcher):
    """The embedded index, asked as a server is: for pages, and numbers of pages."""

    def beginning(self, start, most):
        pages = {}
        for field in FIELDS:
            for term, _ in self._searcher.terms_with_prefix(field, start, limit=1000):
                pages |= {page["id"]: page for page in self.having(term, 100)}
        return terms_beginning(start, most, [*pages.values()], self._numbers, self.analyzer)

    def _numbers(self, rows):
        return [self._searcher.doc_freq(row.field, row.terms[0]) for row in rows]


@pytest.mark.parametrize("typed", BEGINNINGS)
def test_what_is_read_in_pages_is_what_the_dictionary_says(embedded, typed):
    read, told = Suggester(Reading(embedded)).suggest(typed), Suggester(EmbeddedSearcher(embedded)).suggest(typed)
    assert sorted(read.queries) == sorted(told.queries)
    assert read.pages == told.pages


def test_a_word_whose_stem_has_a_stem_is_suggested(embedded):
    assert "database" in Suggester(EmbeddedSearcher(embedded)).suggest("datab").queries


@pytest.mark.parametrize(("typed", "word"), [("軟", "软件"), ("ｃｒａ", "crawler")])
def test_what_is_typed_in_another_script_or_width_is_completed(embedded, typed, word):
    assert word in Suggester(EmbeddedSearcher(embedded)).suggest(typed).queries


def test_what_was_asked_is_remembered(embedded):
    asked = Counter()

    class Counting(Reading):
        def beginning(self, start, most):
            asked[start] += 1
            return super().beginning(start, most)

    remembered = Remembered()
    first = Suggester(Counting(embedded), remembered).suggest("craw")
    assert Suggester(Counting(embedded), remembered).suggest("craw") == first
    assert asked == {"craw": 1}


def test_words_are_counted_by_the_index_and_not_by_the_pages_that_were_read():
    pages = [{"title": "crab crabs", "content": ["crab crawler"], "lang": "en"}, {"title": "Crawlers", "content": ""}]
    numbers = {"crab": 3, "crawler": 50, "crawl": 50}

    def counted(rows: list[Row]) -> list[int]:
        return [numbers.get(row.terms[0], 0) * (row.field == "content") for row in rows]

    found = terms_beginning("cra", 5, pages, counted, Analyzer())
    assert [(each.term, each.pages) for each in found] == [("crawler", 50), ("crab", 3)]
    assert found[1].written == {"crab": 2, "crabs": 1}
    assert terms_beginning("zzz", 5, pages, counted, Analyzer()) == []
    assert terms_beginning("cra", 5, [], lambda rows: pytest.fail("nothing to count"), Analyzer()) == []
