"""The search page answers alike on the embedded index and on a real Solr."""

import json
from urllib.parse import quote, urlencode

import pytest

from nutch2py.url.keys import reverse_url
from tests.server.test_serve import ask, get


def test_hits_are_highlighted_and_escaped(either):
    _, body = ask(either, q="needle")
    assert "4 documents" in body
    assert "Evil <em>needle</em> &lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "<script>" not in body


def test_hit_links_to_control_room_page(either):
    _, body = ask(either, q="trap")
    link = '<a href="/crawl/page?url=http%3A%2F%2Fa.org%2Fevil">crawl history</a>'
    assert link in body
    answer, body = get(either, "/crawl/page?url=http%3A%2F%2Fa.org%2Fevil")
    assert answer.status == 200
    assert "http://a.org/evil" in body


def test_query_is_escaped(either):
    _, body = ask(either, q='"><script>alert(1)</script>')
    assert "<script>" not in body
    assert "&#34;&gt;&lt;script&gt;" in body


def test_facets_count_and_narrow(either):
    _, body = ask(either, q="needle")
    assert '<a href="/?q=needle&amp;host=a.org">a.org</a><span>2</span>' in body
    assert '<a href="/?q=needle&amp;lang=zh">Chinese</a><span>1</span>' in body
    assert '<a href="/?q=needle&amp;type=text%2Fplain">text/plain</a><span>1</span>' in body
    _, body = ask(either, q="needle", host="a.org", lang="en")
    assert "1 document ·" in body
    assert 'class="chosen">a.org<' in body
    assert '<a href="/?q=needle&amp;lang=en">all</a>' in body  # without the host, the language kept


def test_filter_without_hits_can_be_removed(either):
    _, body = ask(either, q="needle", lang="ja")
    assert "No document matches" in body
    assert '<a href="/?q=needle">all</a>' in body


def test_result_pages_are_consecutive(either):
    _, first = ask(either, q="hay")
    assert "30 documents · 1–10" in first
    assert 'rel="next"' in first
    assert 'rel="prev"' not in first
    _, last = ask(either, q="hay", start=20)
    assert "21–30" in last
    assert 'rel="next"' not in last
    for start in ("x", "-1", "99999999999", "40"):
        answer, _ = ask(either, q="hay", start=start)
        assert answer.status == 200


def test_chinese_is_found_by_words(either):
    _, body = ask(either, q="奥运会")
    assert "1 document" in body
    assert "北京<em>奥运会</em>" in body


def test_json_contains_same_data_as_page(either):
    answer, body = get(either, f"/search.json?{urlencode({'q': 'needle', 'rows': 2, 'lang': 'en'})}")
    found = json.loads(body)
    assert answer.headers["Content-Type"] == "application/json"
    assert (found["total"], len(found["hits"]), found["query"]) == (3, 2, "needle")
    assert found["filters"] == {"lang": "en"}
    assert found["facets"]["host"] == {"b.org": 2, "a.org": 1}


def test_cached_page_is_offered_and_shown(either):
    _, body = ask(either, q="plain")
    link = f"/cached?{urlencode({'id': reverse_url('http://b.org/plain'), 'q': 'plain'})}"
    assert link.replace("&", "&amp;") in body
    answer, frame = get(either, link)
    assert (answer.status, 'copy of <a href="http://b.org/plain"' in frame) == (200, True)
    _, body = get(either, f"/cached/view?id={quote(reverse_url('http://b.org/plain'))}")
    assert body == "needle <b>plain</b>"
    assert "cached" not in ask(either, q="secret")[1]


def test_score_is_explained_only_for_found_document(either):
    key = reverse_url("http://b.org/plain")
    answer, body = get(either, f"/explain?{urlencode({'q': 'needle', 'id': key})}")
    assert (answer.status, "http://b.org/plain" in body) == (200, True)
    assert "idf" in body
    assert "pagerank" in body
    assert get(either, f"/explain?{urlencode({'q': 'hay', 'id': key})}")[0].status == 404
    assert get(either, f"/explain?{urlencode({'q': 'needle', 'id': 'no such'})}")[0].status == 404


def test_words_and_titles_are_suggested(either):
    def suggested(typed):
        answer, body = get(either, f"/suggest?{urlencode({'q': typed})}")
        assert answer.status == 200
        return json.loads(body)

    asked, texts, kinds, addresses = suggested("nee")
    assert (asked, texts[0], kinds[0]) == ("nee", "needle", "")
    assert addresses[0] == f"{either.url}?q=needle"
    assert ("Plain needle", "page", "http://b.org/plain") in [*zip(texts, kinds, addresses, strict=True)]
    assert suggested("plain nee")[1][0] == "plain needle"
    assert suggested("Hay ne")[1] == []  # nothing has both
    assert "北京" in " ".join(suggested("北")[1])
    for typed in (
        "",
        "n",
        " ",
        '"',
        "-",
        "title:",
        "((",
        "a" * 900,
        "\x00",
        "xyzzy",
        "NOT",
        "\u202e",
        "%",
        "a* OR *",
        "needle~",
    ):
        assert suggested(typed)[1] == []


@pytest.mark.parametrize(("query", "meant"), [("nedle", "needle"), ("plein needle", "plain needle")])
def test_spelling_is_suggested_for_few_hits(either, query, meant):
    _, body = ask(either, q=query)
    assert f'Did you mean <a href="/?{urlencode({"q": meant})}">{meant}</a>?' in body
    assert "Did you mean" not in ask(either, q="needle")[1]
    assert "Did you mean" not in ask(either, q="xylophone")[1]


@pytest.mark.parametrize("query", ["((", '"', "AND", "title:", "a:b:c", "boost:x", "*", "{!func}1", "[a TO", "-", "\\"])
def test_any_input_is_a_valid_query(either, query):
    assert ask(either, q=query)[0].status == 200


def test_filters_can_be_removed_individually(either):
    _, body = ask(either, q="needle", host="a.org", lang="en")
    assert 'href="/?q=needle&amp;lang=en" aria-label="Remove filter site a.org"' in body
    assert 'href="/?q=needle&amp;host=a.org" aria-label="Remove filter language en"' in body
