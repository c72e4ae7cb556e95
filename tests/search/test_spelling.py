"""Similar words for words that the embedded index does not know."""

import doctest
from typing import NamedTuple

import pytest

from bench.ranking.typos import measure_typos
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query import query_language
from nutch2py.search.search_backends import search
from nutch2py.search.suggestions import homophones, spelling, word_edits
from nutch2py.search.suggestions.word_edits import edit_distance
from tests.conftest import ROOT
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


class Opened(NamedTuple):
    conf: Configuration
    searcher: EmbeddedSearcher


def write(conf, documents):
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents:
        writer.write(document)
    writer.close()


@pytest.fixture(scope="module")
def stemmed(tmp_path_factory):
    """Return an index whose stems are shorter than its words, and in which ``causal`` is frequent."""
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("stemmed"))})
    words = ("transaction", "isolation", "replication", "configuration")
    documents = [doc(word, title="Manual", content=f"Read about {word} here.") for word in words]
    documents += [doc(f"causal{number}", title="Graphs", content="A causal model.") for number in range(120)]
    write(conf, [*documents, doc("rare", title="Clothes", content="Some casual shoes.")])
    return Opened(conf, EmbeddedSearcher(conf))


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
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


@pytest.mark.parametrize(
    "query", ["transction", "isolaton", "replicaton", "configuraton", "confgiuration", "cnofiguraiton", "configurtoin"]
)
def test_words_are_compared_as_written(stemmed, query):
    found = search(stemmed.conf, query, searcher=stemmed.searcher)
    word = {"t": "transaction", "i": "isolation", "r": "replication", "c": "configuration"}[query[0]]
    assert (found.corrected_query, found.unknown_words) == (word, (query,))
    assert [hit.id for hit in found.hits] == [word]
    assert word in found.hits[0].snippet.text
    assert found.hits[0].snippet.highlights


def test_rare_word_is_before_frequent_similar_word(stemmed):
    found = search(stemmed.conf, "casual", rows=200, searcher=stemmed.searcher)
    assert (found.hits[0].id, found.total, found.corrected_query) == ("rare", 121, "causal")
    only = search(stemmed.conf, "+casual", searcher=stemmed.searcher)
    assert ([hit.id for hit in only.hits], only.corrected_query) == (["rare"], "")


def test_known_words_and_identifiers_are_not_corrected(stemmed):
    for query in ("isolation", "isolations", "v20", "transction2", "title:transction", '"transction"', "the"):
        assert search(stemmed.conf, query, searcher=stemmed.searcher).corrected_query == ""


def test_single_edits_find_words(tmp_path):
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path / "index")})
    documents = []
    for path in sorted((ROOT / "docs").glob("*.md")):
        paragraphs = path.read_text("utf-8").split("\n\n")
        documents += [doc(f"{path.name}-{number}", title="", content=text) for number, text in enumerate(paragraphs)]
    write(conf, documents)
    # The texts change with time, and so does the sample: scripts/bench typos measures more on fixed collections.
    found = measure_typos(EmbeddedSearcher(conf), 300, min_length=6)
    assert found.share >= 0.94, found.missed


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    """Return an index with frequent and rare Chinese words."""
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("chinese"))})
    documents = [doc(f"learning{number}", title="机器学习", content="机器学习入门", lang="zh") for number in range(6)]
    documents += [
        doc("cold", title="感冒", content="感冒了多喝水。", lang="zh"),
        doc("fact", title="事实", content="这是事实。", lang="zh"),
        doc("trial", title="试试", content="试试看。", lang="zh"),
    ]
    write(conf, documents)
    return Opened(conf, EmbeddedSearcher(conf))


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("机气学习", "机器学习"),
        ("機氣學習", "机器学习"),
        ("机气 学习", "机器 学习"),
        ("赶冒", "感冒"),
        ("机器学习", ""),
        ("矢石", ""),  # 事实 and 试试 sound alike
        ("+机气", ""),
        ("火车", ""),
    ],
)
def test_chinese_homophone_is_searched_where_it_is_sure(chinese, query, meant):
    assert chinese.searcher.search(query).corrected_query == meant


def test_homophone_finds_pages_and_can_be_declined(chinese):
    found = chinese.searcher.search("机气学习")
    assert [hit.title.text for hit in found.hits[:1]] == ["机器学习"]
    assert query_language.make_verbatim_query("机气学习", "机器学习") == "+机气学习"
    assert chinese.searcher.search("+机气学习").corrected_query == ""


def test_homophones_need_readings_only():
    assert "器" in homophones.homophones_of("气")
    assert not homophones.homophones_of("a")
    assert "机器" in set(homophones.iter_homophones("机气"))
    assert "感冒" in set(homophones.iter_homophones("赶帽"))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return an index of more languages than the first ones by whose rules a typed word is compared."""
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("mixed"))})
    documents = [
        doc(f"{code}{number}", title="x", content="y", lang=code)
        for code in ("en", "de", "fr", "es")
        for number in range(3)
    ]
    documents += [
        doc("buns", title="Kanelbullar", content="Kanelbullar gräddas.", lang="sv"),
        doc("cats", title="Чем кормить", content="Кошкам дают мясо.", lang="ru"),
        doc("bread", title="Starter", content="A sourdough starter.", lang="en"),
        doc("knead", title="Dough", content="Dough is kneaded.", lang="en"),
    ]
    write(conf, documents)
    return Opened(conf, EmbeddedSearcher(conf))


@pytest.mark.parametrize(
    ("query", "found"),
    [("kanelbular", "buns"), ("кошек", "cats"), ("sour dough", "bread"), ("dough sour", "knead")],
)
def test_word_of_another_language_or_form_is_found(mixed, query, found):
    assert mixed.searcher.search(query).hits[0].id == found
