"""Spelling correction for queries of the embedded index without hits."""

import doctest

import pytest

from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query import query_language
from nutch2py.search.suggestions import spelling, word_edits
from nutch2py.search.suggestions.word_edits import edit_distance
from tests.indexer.pages import doc


@pytest.mark.parametrize("module", [spelling, word_edits, query_language])
def test_docstring_examples_hold(module):
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [("a", "a", 0), ("ab", "ba", 1), ("abc", "ab", 1), ("ab", "abc", 1), ("abc", "axc", 1), ("abcd", "badc", 2),
     ("kitten", "sitting", 3), ("", "abcdef", 4), ("ca", "abc", 3)],
)  # fmt: skip
def test_edit_distance_is_counted_up_to_limit(one, other, count):
    assert edit_distance(one, other, 3) == count
    assert edit_distance(other, one, 3) == count


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    from nutch2py.conf.configuration import Configuration

    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("index"))})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("a", title="Crawling the web", content="Crawlers obey robots. Studies of studios. Naïve cafés."))
    for number in range(3):
        writer.write(
            doc(f"b{number}", title="Crawler", content="A crawler visits pages. 北京奥运会. Москва. NOT a studio")
        )
    writer.close()
    return EmbeddedSearcher(conf)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("crwaler", "crawler"),
        ("CRWALER", "crawler"),
        ("crawlre pages", "crawler pages"),
        ("vistis pagse", "visits pages"),
        ("crwaling", "crawling"),
        ("rabots", "robots"),
        ('"obey rbots"', '"obey robots"'),
        ("pagse -robots", "pages -robots"),
        ("pagse OR nothingofthekind", "pages OR nothingofthekind"),
        ("Мосвка", "москва"),
        ("crawler", ""),  # it has hits
        ("pgs", ""),  # too short
        ("xrawler", "crawler"),  # another first letter
        ("elephants", ""),
        ("crwaler elephants", "crawler elephants"),
        ("title:crwaler", ""),  # a field
        ("-crwaler", ""),
        ("北京奥运汇", ""),
        ("NOT", ""),
        ("", ""),
        ("((", ""),
    ],
)
def test_unknown_words_are_replaced_by_near_words(searcher, query, meant):
    assert searcher.correct_query(query) == meant


def test_long_query_is_checked_partially(searcher):
    typos = [f"crawler{letter}" for letter in "bcfghjkmnqvwz"]
    assert searcher.correct_query(" OR ".join(typos)).split(" OR ") == ["crawler"] * 8 + typos[8:]
    assert searcher.correct_query("crwaler OR " * 400 + "crwaler").count("crawler") == 401
