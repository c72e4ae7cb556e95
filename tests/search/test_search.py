import json

import pytest

from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.results.search_results import SearchResult, format_for_terminal
from nutch2py.search.search_backends import search
from tests.indexer.pages import doc


@pytest.fixture
def filled(conf):
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(
        doc(
            "a",
            url="http://a.org/",
            title="A <b>crawler",
            content="The crawler fetches & parses\nits pages.",
            type="text",
        )
    )
    writer.write(doc("b", url="http://b.org/", content="Another crawler \x1b[31mred and long " + "word " * 200))
    writer.close()
    return conf


def test_hit_shows_title_url_snippet_and_score(filled):
    text = format_for_terminal(search(filled, "crawlers"))
    lines = text.splitlines()
    assert lines[0].startswith("2 documents, 1–2 (")
    assert lines[2] == "1. A <b>crawler"
    assert lines[3].startswith("   http://a.org/  ")
    assert lines[4] == "   The crawler fetches & parses its pages."
    assert lines[6] == "2. http://b.org/"
    assert "\x1b" not in text


def test_words_are_highlighted_in_colour(filled):
    assert "The \x1b[1;33mcrawler\x1b[0m fetches" in format_for_terminal(search(filled, "crawlers"), color=True)


def test_terminal_escapes_of_pages_are_removed(filled):
    searcher = EmbeddedSearcher(filled)
    found = search(filled, "another", searcher=searcher)
    hit = found.hits[0]
    evil = hit._replace(url="http://b.org/\x1b]0;x\x07", snippet=hit.snippet._replace(text="a\x9bb", highlights=()))
    text = format_for_terminal(found._replace(hits=[evil]), color=False)
    assert all(c.isprintable() or c == "\n" for c in text)


def test_terminal_shows_host_in_unicode_and_json_as_stored(filled):
    found = search(filled, "crawlers")
    result = found._replace(hits=[found.hits[0]._replace(url="http://xn--mnchen-3ya.de/a")])
    assert "http://münchen.de/a" in format_for_terminal(result)
    assert result.to_dict()["hits"][0]["url"] == "http://xn--mnchen-3ya.de/a"


def test_json_output_is_escaped_and_omits_content(filled):
    found = json.loads(search(filled, "crawler", rows=1).to_json())
    assert (found["total"], found["start"], found["query"]) == (2, 0, "crawler")
    (hit,) = found["hits"]
    assert hit["title"] == "A &lt;b&gt;<em>crawler</em>"
    assert hit["snippet"] == "The <em>crawler</em> fetches &amp; parses its pages."
    assert hit["fields"] == {"id": "a", "url": "http://a.org/", "title": "A <b>crawler", "type": "text"}


def test_empty_result_is_reported(filled):
    assert format_for_terminal(search(filled, "nothing")).startswith("no document matches 'nothing'")
    assert format_for_terminal(search(filled, "crawler", start=10)).startswith("no hit from 11 on, of 2")


@pytest.mark.parametrize(
    ("start", "rows", "expected"), [(-5, 10, 2), (0, 0, 0), (1, 10, 1), (10**12, 10**12, 0), (0, -1, 0)]
)
def test_result_paging_is_limited(filled, start, rows, expected):
    found = search(filled, "crawler", start=start, rows=rows)
    assert (len(found.hits), found.total) == (expected, 2)


def test_render_empty_result_reports_no_match_and_time():
    assert format_for_terminal(SearchResult("x", 0, 0, [], 1.0)) == "no document matches 'x' (1.0 ms)\n"


def test_cached_searcher_equals_new_searcher(filled):
    searcher = EmbeddedSearcher(filled)
    for query in ("crawler", "red", "nothing"):
        assert search(filled, query, searcher=searcher).hits == search(filled, query).hits


def test_snippet_prefers_main_text(conf):
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    content = "Menu of boats and trains. The article about boats."
    writer.write(doc("a", url="http://a.org/", content=content, maintext="The article about boats."))
    writer.close()
    snippets = [search(conf, words).hits[0].snippet.text for words in ("boats", "trains")]
    assert snippets == ["The article about boats.", content]
