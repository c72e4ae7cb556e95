import doctest

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nutch2py.backends import analysis, folding, index_folder, languages
from nutch2py.backends.analysis import Analyzer
from nutch2py.backends.variants import opencc_variants
from nutch2py.conf import Configuration
from nutch2py.document import clean_text
from nutch2py.errors import ConfigurationError
from nutch2py.search import plan, results
from nutch2py.search import query_language as query
from nutch2py.search.query_language import And, Not, Or, Text, parse_query, wanted

ANALYZER = Analyzer()
FOLDING = Analyzer.of(Configuration.load())


def rows(text, analyzer=ANALYZER):
    """Return what an English query asks for."""
    return [row for unit in analyzer.query_words(text) for row in unit.ways[0]]


@pytest.mark.parametrize("module", [analysis, folding, languages, index_folder, plan, query, results])
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
        ("한국어 문서를", ["한국", "국어", "문서", "서를"]),
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
    assert rows("北京奥运会") == [("北京",), ("奥运会",)]


def test_a_user_word_is_kept_whole_and_makes_another_version(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("# ours\n博鳌亚洲论坛 1000 nz\n\n金融危机\n", encoding="utf-8")
    analyzer = Analyzer.of(Configuration({"index.userdict.file": str(words)}))
    assert analyzer.user_words == ("博鳌亚洲论坛", "金融危机")
    assert rows("博鳌亚洲论坛", analyzer) == [("博鳌亚洲论坛",)]
    assert rows("博鳌亚洲论坛") != [("博鳌亚洲论坛",)]
    assert analyzer.version != ANALYZER.version


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("自由軟體", "自由软件"),
        ("網際網路", "互联网"),
        ("部落格", "博客"),
        ("資料庫", "数据库"),
        ("Ｎｕｔｃｈ", "nutch"),
        ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
    ],
)
def test_what_means_the_same_has_the_same_words(one, other):
    assert FOLDING.words(one) == FOLDING.words(other)
    assert FOLDING.query_words(one) == FOLDING.query_words(other)


def test_folding_knows_where_each_word_stood():
    text = "我的部落格 ﾃﾞｰﾀ 與軟體"
    found = {text[token.start : token.end] for token in FOLDING.tokens(text)}
    assert {"部落格", "ﾃﾞｰ", "ｰﾀ", "軟體"} <= found


@given(st.text(st.sampled_from("部落格體軟文件檔案ﾃﾞｰab 網路"), max_size=40))
@settings(deadline=None)  # the tables are read with the first text
def test_folding_is_done_once_and_marks_what_is_there(text):
    folds = folding.folding(opencc_variants())
    folded = folds.fold(text)
    spans = [folded.span(i, i + 1) for i in range(len(folded.text))]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    assert folds.fold(folded.text).text == folded.text


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("de", "Häuser", "Haus"),
        ("de", "Häuser", "hauser"),
        ("fr", "l’homme", "hommes"),
        ("ru", "Москвы", "Москва"),
        ("es", "canciones", "canción"),
        ("no", "husene", "hus"),
    ],
)
def test_words_are_reduced_by_the_rules_of_the_page_s_language(lang, one, other):
    assert ANALYZER.words(one, lang) == ANALYZER.words(other, lang)
    (unit,) = ANALYZER.query_words(one, {lang})
    assert (tuple(ANALYZER.words(other, lang)),) in unit.ways


def test_japanese_is_cut_into_pairs_and_its_particles_are_not_asked_for():
    assert ANALYZER.words("検索エンジン", "ja") == ["検索", "エン", "ンジ", "ジン"]
    units = ANALYZER.query_words("検索のエンジン", {"ja"})
    assert [unit.ways[-1] for unit in units] == [(("検索",),), (("エン", "ンジ", "ジン"),)]


def test_the_words_of_0_1_0_are_still_those():
    old = Analyzer.of(Configuration.load(), rules=1)
    assert old.version == "1"
    assert old.words("한국어 Häuser 軟體", "de") == ["한국어", "hauser", *old.words("軟體")]


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
    assert {term for row in rows(text) for term in row} <= indexed


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
    assert rows("奥运会", analyzer) == [("奥",), ("运",), ("会",)]
    assert [token.terms for token in analyzer.tokens("奥运")] == [("奥",), ("运",)]
    assert analyzer.version != Analyzer.of(Configuration({})).version
    with pytest.raises(ConfigurationError, match=r"index\.chinese"):
        Analyzer.of(Configuration({"index.chinese": "syllables"}))


@given(st.text(alphabet="aB1'’ _-.éカ\n\x1f\u3000", max_size=40))
@example("1'1 é")
@example("a'b1’1é")
def test_the_quick_ways_find_the_words_that_the_pattern_of_words_finds(text):
    for each in (text, text.encode("ascii", "ignore").decode()):
        assert ANALYZER.words(each) == [term for token in ANALYZER.tokens(each) for term in token.terms]
