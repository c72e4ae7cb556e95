import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.backends.analysis import Analyzer
from nutch2py.document import clean_text
from nutch2py.search.snippet import Snippet, make_snippet, mark

ANALYZER = Analyzer()


def shown(text, *terms, length=200):
    return make_snippet(ANALYZER, text, terms, length).marked("[", "]")


def test_every_form_of_a_word_is_marked():
    assert shown("Crawlers crawl; it crawled.", "crawl") == "Crawlers [crawl]; it [crawled]."


def test_the_window_with_most_different_words_is_shown():
    text = "crawler " * 3 + "filler " * 100 + "the crawler keeps a table of pages " + "filler " * 100
    snippet = shown(text, "crawler", "tabl", length=80)
    assert "[crawler] keeps a [table]" in snippet
    assert snippet.startswith("…filler")
    assert snippet.endswith("filler…")
    assert len(snippet) < 130


def test_a_text_without_the_words_shows_its_beginning():
    assert shown("one two " * 100, "three", length=20) == "one two one two one…"
    assert shown("", "x") == ""


def test_line_ends_and_blanks_are_one_blank():
    assert shown("a\n\n  b\tword \r\n c", "word") == "a b [word] c"


def test_overlapping_chinese_words_are_one_mark():
    assert shown("看北京奥运会开幕", "北京", "奥运", "奥运会") == "看[北京奥运会]开幕"


def test_a_long_text_is_looked_through_to_a_limit_only():
    assert "[needle]" in shown("hay " * 10_000 + "needle", "needl")
    assert "[" not in shown("hay " * 20_000 + "needle", "needl")


def test_a_title_is_shown_whole():
    assert mark(ANALYZER, "Running crawlers", ["run"]).marked("<", ">") == "<Running> crawlers"


@given(st.text(st.sampled_from("ab \n漢字奥运会カé’'."), max_size=300), st.integers(1, 80))
def test_marks_lie_within_the_text_and_apart(text, length):
    text = clean_text(text)
    terms = set(ANALYZER.words(text)[::3])
    snippet = make_snippet(ANALYZER, text, terms, length)
    end = 0
    for start, stop in snippet.marks:
        assert end <= start < stop <= len(snippet.text)
        end = stop
    assert isinstance(snippet, Snippet)
    assert "\n" not in snippet.text
    assert len(snippet.text) <= length + 2 * 40 + 2


@pytest.mark.parametrize("terms", [[], ["nothing"]])
def test_no_marks_without_matches(terms):
    assert make_snippet(ANALYZER, "some text", terms).marks == ()
