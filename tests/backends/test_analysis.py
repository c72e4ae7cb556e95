import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.backends import analysis, index_folder
from nutch2py.backends.analysis import Analyzer
from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import ConfigurationError
from nutch2py.search import query_language as query
from nutch2py.search import results
from nutch2py.search.query_language import And, Not, Or, Text, parse_query, wanted

ANALYZER = Analyzer()


@pytest.mark.parametrize("module", [analysis, index_folder, query, results])
def test_examples_of_the_docstrings_hold(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Crawlers are RUNNING", ["the", "crawler", "are", "run"]),
        ("it's John's don’t", ["it", "john", "dont"]),
        ("debian.org foo_bar a-b C++ 3.14", ["debian", "org", "foo", "bar", "a", "b", "c", "3", "14"]),
        ("Café naïve Straße", ["cafe", "naiv", "strass"]),
        ("ＮＵＴＣＨ　２", ["nutch", "2"]),
        ("привет Ёлка हिन्दी", ["привет", "елка", "हिन्दी"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("奥运 Nutch爬虫", ["奥运", "nutch", "爬虫"]),
        ("", []),
        (" \t.,;!", []),
    ],
)
def test_words_of_a_page(text, terms):
    assert ANALYZER.words(text) == terms


def test_chinese_is_cut_into_words_and_compounds_into_their_parts_too():
    assert ANALYZER.words("北京奥运会") == ["北京", "奥运", "奥运会"]
    assert ANALYZER.query_words("北京奥运会") == [("北京",), ("奥运会",)]


def test_a_user_word_is_kept_whole_and_makes_another_version(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("# ours\n博鳌亚洲论坛 1000 nz\n\n金融危机\n", encoding="utf-8")
    analyzer = Analyzer.of(Configuration({"index.userdict.file": str(words)}))
    assert analyzer.user_words == ("博鳌亚洲论坛", "金融危机")
    assert analyzer.query_words("博鳌亚洲论坛") == [("博鳌亚洲论坛",)]
    assert ANALYZER.query_words("博鳌亚洲论坛") != [("博鳌亚洲论坛",)]
    assert analyzer.version != ANALYZER.version


def test_a_missing_user_dictionary_is_named():
    with pytest.raises(ConfigurationError, match=r"there is no file no-such\.txt"):
        Analyzer.of(Configuration({"index.userdict.file": "no-such.txt"}))


def test_parts_of_a_compound_are_those_that_cover_it():
    assert ANALYZER.parts("香港电影") == ("香港", "电影")
    assert ANALYZER.parts("奥运会") == ()
    assert ANALYZER.parts("word") == ()


@given(st.text(max_size=200))
def test_a_page_is_found_by_its_own_words_whatever_they_are(text):
    text = clean_text(text)
    terms = ANALYZER.words(text)
    assert all(term and not any(c.isspace() for c in term) for term in terms)
    assert {t for token in ANALYZER.tokens(text) for t in token.terms} == set(terms)
    for token in ANALYZER.tokens(text):
        assert 0 <= token.start < token.end <= len(text)


@given(st.text(st.sampled_from("abcXYZ é漢字カナ한ไ'’-. 1"), max_size=60))
def test_query_words_are_among_the_words_of_the_same_text(text):
    indexed = set(ANALYZER.words(text))
    assert {term for word in ANALYZER.query_words(text) for term in word} <= indexed


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a b", And((Text("a"), Text("b")))),
        ("a OR b c", Or((Text("a"), And((Text("b"), Text("c")))))),
        ("(a OR b) c", And((Or((Text("a"), Text("b"))), Text("c")))),
        ("a AND -b", And((Text("a"), Not(Text("b"))))),
        ("NOT a", Not(Text("a"))),
        ('title:"x y" z', And((Text("x y", "title", True), Text("z")))),
        ("http://a.b/c", Text("http://a.b/c")),
        ("url:http://a.b/c", Text("http://a.b/c", "url")),
        ("at 12:30", And((Text("at"), Text("12:30")))),
        ('"a', Text("a")),
        ('a" "b c', And((Text("a"), Text(" ", "", True), Text("b"), Text("c")))),
        ("“金融 危机”", Text("金融 危机", "", True)),
        ("((a", Text("a")),
        ("a)) b", And((Text("a"), Text("b")))),
        ("AND OR NOT ()", None),
        ("", None),
        ("-", Text("-")),
    ],
)
def test_queries_are_read_as_people_mean_them(text, tree):
    if tree == And((Text("a"), Text(" ", "", True), Text("b"), Text("c"))):
        tree = And((Text("a"), Text("b"), Text("c")))  # a phrase of blanks asks for nothing
    assert parse_query(text) == tree


def test_words_may_be_joined_by_or():
    assert parse_query("a b -c", any_word=True) == And((Not(Text("c")), Or((Text("a"), Text("b")))))
    assert parse_query("+a b", any_word=True) == And((Text("a"), Text("b")))


def test_a_query_costs_no_more_than_its_limits():
    assert len(list(wanted(parse_query("a " * 5000)))) == query.MAX_WORDS
    assert parse_query("(" * 5000 + "a") == Text("a")


@given(st.text(st.sampled_from('ab "()-+:ANDORT| '), max_size=40))
def test_no_text_breaks_the_reading_of_queries(text):
    parse_query(text)
    parse_query(text, any_word=True)


def test_chinese_can_be_cut_into_characters_to_be_measured_against():
    conf = Configuration({"index.chinese": "characters"})
    analyzer = Analyzer.of(conf)
    assert analyzer.words("奥运会 Games") == ["奥", "运", "会", "game"]
    assert analyzer.query_words("奥运会") == [("奥",), ("运",), ("会",)]
    assert [token.terms for token in analyzer.tokens("奥运")] == [("奥",), ("运",)]
    assert analyzer.version != Analyzer.of(Configuration({})).version
    with pytest.raises(ConfigurationError, match=r"index\.chinese"):
        Analyzer.of(Configuration({"index.chinese": "syllables"}))
