import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.records.document import clean_text
from nutch2py.search.results import snippet as snippet_module
from nutch2py.search.results.snippet import Snippet, highlight_text, make_snippet

ANALYZER = Analyzer()


def shown(text, *terms, length=200):
    return make_snippet(ANALYZER, text, terms, length).highlight("[", "]")


def test_every_word_form_is_highlighted():
    assert shown("Crawlers crawl; it crawled.", "crawl") == "Crawlers [crawl]; it [crawled]."


def test_window_with_most_distinct_words_is_chosen():
    text = "crawler " * 3 + "filler " * 100 + "the crawler keeps a table of pages " + "filler " * 100
    snippet = shown(text, "crawler", "tabl", length=80)
    assert "[crawler] keeps a [table]" in snippet
    assert snippet.startswith("…filler")
    assert snippet.endswith("filler…")
    assert len(snippet) < 130


def test_text_without_query_words_shows_beginning():
    assert shown("one two " * 100, "three", length=20) == "one two one two one…"
    assert shown("", "x") == ""


def test_whitespace_is_collapsed():
    assert shown("a\n\n  b\tword \r\n c", "word") == "a b [word] c"


def test_overlapping_chinese_words_are_one_highlight():
    assert shown("看北京奥运会开幕", "北京", "奥运", "奥运会") == "看[北京奥运会]开幕"


def test_long_text_is_searched_up_to_limit():
    assert "[needle]" in shown("hay " * 10_000 + "needle", "needl")
    assert "[" not in shown("hay " * 20_000 + "needle", "needl")


def test_title_is_shown_whole():
    assert highlight_text(ANALYZER, "Running crawlers", ["run"]).highlight("<", ">") == "<Running> crawlers"


@given(st.text(st.sampled_from("ab \n漢字奥运会カé’'."), max_size=300), st.integers(1, 80))
def test_highlights_are_within_text_and_disjoint(text, length):
    text = clean_text(text)
    terms = set(ANALYZER.index_terms(text)[::3])
    snippet = make_snippet(ANALYZER, text, terms, length)
    end = 0
    for start, stop in snippet.highlights:
        assert end <= start < stop <= len(snippet.text)
        end = stop
    assert isinstance(snippet, Snippet)
    assert "\n" not in snippet.text
    assert len(snippet.text) <= length + 2 * 40 + 2


@pytest.mark.parametrize("terms", [[], ["nothing"]])
def test_text_without_matches_has_no_highlight(terms):
    assert make_snippet(ANALYZER, "some text", terms).highlights == ()


CHAPTER = (
    "Chapter\xa05.\xa0Network setup\nChapter\xa05.\xa0Network setup\n\xa0\n\xa0\nChapter\xa05.\xa0Network setup\n"
    "Table of Contents\n5.1. The basic network infrastructure\n5.1.1. The hostname resolution\n"
    "5.2. The network setup of desktops\nTip\nUnder systemd, networkd may be used to manage them.\n"
    "5.1.\xa0The basic network infrastructure\nLet's review the basic network setup of the modern system. It is "
    "described by files that administrators write, and by what the desktop asks for. Nothing else is read.\n"
)


def test_sentences_are_shown_without_repeating_title():
    snippet = make_snippet(ANALYZER, CHAPTER, ("network", "setup"), title="Chapter\xa05.\xa0Network setup")
    assert snippet.highlight("[", "]") == (
        "Let's review the basic [network] [setup] of the modern system. It is described by files that "
        "administrators write, and by what the desktop asks for."
    )


def test_two_passages_cover_words_missing_in_one():
    filler = "Here is a line that says nothing about any of it at all.\n" * 20
    text = f"The ferry leaves from the pier at nine in the morning.\n{filler}"
    text += "A ticket is sold by the man on the deck.\n"
    assert shown(text, "ferri", "ticket") == (
        "The [ferry] leaves from the pier at nine in the morning. … A [ticket] is sold by the man on the deck."
    )


def test_text_without_query_words_shows_first_sentence():
    assert make_snippet(ANALYZER, CHAPTER, ["nothing"], title="Chapter 5. Network setup").text.startswith(
        "Under systemd"
    )


def test_title_starting_a_sentence_is_kept():
    assert make_snippet(ANALYZER, "Package managers install what is asked for. " * 20, ["packag"],
                        title="Package managers").text.startswith("Package managers install")  # fmt: skip


def test_chinese_sentences_end_at_their_punctuation():
    text = (
        "第一章\n"
        + "这里没有什么。" * 30
        + "启动管理器是启动流程的第一阶段，它检查启动配置。"
        + "这里也没有什么。" * 30
    )
    assert make_snippet(ANALYZER, text, ["配置"], 30).text.startswith("启动管理器是")


@given(
    st.lists(
        st.sampled_from(["Running", "RUNS", "runner's", "Café", "cafe", "ｒｕｎ", "don’t", "x2", "\n", "_run", "中文"])
    ),
    st.sets(st.sampled_from(["run", "runner", "cafe", "dont", "x2", "a"]), min_size=1),
)
def test_long_text_is_highlighted_like_short_text(words, terms):
    text = " ".join(words)
    long = text + "\n" + "." * snippet_module.SHORT_TEXT_LENGTH
    found = snippet_module.find_matches(ANALYZER, long, frozenset(terms), "en")
    assert found == snippet_module.find_matches(ANALYZER, text, frozenset(terms), "en")


LONG = "Nothing of interest stands in this sentence here. " * 30


def highlights(text, terms, lang="en", **options):
    snippet = make_snippet(ANALYZER, text, terms, lang=lang, **options)
    return [snippet.text[start:end] for start, end in snippet.highlights]


def test_filler_words_are_highlighted_only_when_there_is_no_other_word():
    text = "The crawler of the web reads what the server sends."
    assert highlights(text, ["the", "what", "crawler"]) == ["crawler"]
    assert highlights(text, ["the", "what"]) == ["The", "the", "what", "the"]
    title = highlight_text(ANALYZER, "What is the crawler", ["what", "the", "crawler"])
    assert [title.text[start:end] for start, end in title.highlights] == ["crawler"]
    assert highlights("Wer war der Kanzler?", ANALYZER.index_terms("wer war Kanzler", "de"), "de") == ["Kanzler"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run VACUUM , then stop . Then ( see below ) go .", "Run VACUUM, then stop. Then ( see below) go."),
        ("use .NET and ... dots", "use .NET and ... dots"),
        ("the value ; of x , y", "the value; of x, y"),
    ],
)
def test_blank_before_punctuation_is_removed(text, shown):
    snippet = make_snippet(ANALYZER, text, ["stop", "go", "y"])
    assert snippet.text == shown
    assert {snippet.text[start:end] for start, end in snippet.highlights} <= {"stop", "go", "y"}


@pytest.mark.parametrize(
    "text",
    [
        "Network setup guide Network setup guide Every network setup needs a name server that answers.",
        "Network setup guide Every network setup needs a name server that answers.",
        "Network setup guide\nNot a sentence at all",
    ],
)
def test_title_at_start_is_not_repeated(text):
    for terms in (["network", "setup"], ["zebra"], ["sentenc", "server"]):
        snippet = make_snippet(ANALYZER, text, terms, title="Network setup guide")
        assert not snippet.text.startswith("Network setup guide"), terms


@pytest.mark.parametrize("lead", ["", LONG])
@pytest.mark.parametrize(
    ("lang", "text", "query", "marked"),
    [
        ("de", "Die Haftpflichtversicherung zahlt.", "Versicherung", "Haftpflichtversicherung"),
        ("en", "Written in C++ by hand.", "C++", "C++"),
        ("en", "A Wi-Fi network.", "wifi", "Wi-Fi"),
        ("en", "The iPhone15 is new.", "15", "iPhone15"),
    ],
)
def test_other_spellings_are_highlighted(lead, lang, text, query, marked):
    if (lead, query) != (LONG, "15"):  # a long text is searched for the first letters of terms
        assert highlights(lead + text, ANALYZER.index_terms(query, lang), lang) == [marked]
