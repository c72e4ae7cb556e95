"""The search page gives equal results on the embedded index and on a real Solr."""

import json
from urllib.parse import quote, urlencode

import pytest

from nutch2py.url.keys import reverse_url
from tests.server.test_serve import ask, get


def test_hits_are_highlighted_and_escaped(indexed_server):
    _, body = ask(indexed_server, q="needle")
    assert "4 documents" in body
    assert "Evil <em>needle</em> &lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "<script>" not in body


def test_hit_links_to_control_room_page(indexed_server):
    _, body = ask(indexed_server, q="trap")
    link = '<a href="/crawl/page?url=http%3A%2F%2Fa.org%2Fevil">crawl history</a>'
    assert link in body
    response, body = get(indexed_server, "/crawl/page?url=http%3A%2F%2Fa.org%2Fevil")
    assert response.status == 200
    assert "http://a.org/evil" in body


def test_query_is_escaped(indexed_server):
    _, body = ask(indexed_server, q='"><script>alert(1)</script>')
    assert "<script>" not in body
    assert "&#34;&gt;&lt;script&gt;" in body


def test_facets_count_and_narrow(indexed_server):
    _, body = ask(indexed_server, q="needle")
    assert '<a href="/?q=needle&amp;host=a.org">a.org</a><span>2</span>' in body
    assert '<a href="/?q=needle&amp;lang=zh">Chinese</a><span>1</span>' in body
    assert '<a href="/?q=needle&amp;type=text%2Fplain">text/plain</a><span>1</span>' in body
    _, body = ask(indexed_server, q="needle", host="a.org", lang="en")
    assert "1 document ·" in body
    assert 'class="chosen">a.org<' in body
    assert '<a href="/?q=needle&amp;lang=en">all</a>' in body  # without the host, with the language


def test_filter_without_hits_can_be_removed(indexed_server):
    _, body = ask(indexed_server, q="needle", lang="ja")
    assert "No document matches" in body
    assert '<a href="/?q=needle">all</a>' in body


def test_result_pages_are_consecutive(indexed_server):
    _, first = ask(indexed_server, q="hay")
    assert "30 documents · 1–10" in first
    assert 'rel="next"' in first
    assert 'rel="prev"' not in first
    _, last = ask(indexed_server, q="hay", start=20)
    assert "21–30" in last
    assert 'rel="next"' not in last
    for start in ("x", "-1", "99999999999", "40"):
        response, _ = ask(indexed_server, q="hay", start=start)
        assert response.status == 200


def test_chinese_is_found_by_words(indexed_server):
    _, body = ask(indexed_server, q="奥运会")
    assert "1 document" in body
    assert "北京<em>奥运会</em>" in body


def test_json_contains_same_data_as_page(indexed_server):
    response, body = get(indexed_server, f"/search.json?{urlencode({'q': 'needle', 'rows': 2, 'lang': 'en'})}")
    found = json.loads(body)
    assert response.headers["Content-Type"] == "application/json"
    assert (found["total"], len(found["hits"]), found["query"]) == (3, 2, "needle")
    assert found["filters"] == {"lang": "en"}
    assert found["facets"]["host"] == {"b.org": 2, "a.org": 1}


def test_cached_page_is_offered_and_shown(indexed_server):
    _, body = ask(indexed_server, q="plain")
    link = f"/cached?{urlencode({'id': reverse_url('http://b.org/plain'), 'q': 'plain'})}"
    assert link.replace("&", "&amp;") in body
    response, frame = get(indexed_server, link)
    assert (response.status, 'copy of <a href="http://b.org/plain"' in frame) == (200, True)
    _, body = get(indexed_server, f"/cached/view?id={quote(reverse_url('http://b.org/plain'))}")
    assert body == "needle <b>plain</b>"
    assert "cached" not in ask(indexed_server, q="secret")[1]


def test_score_is_explained_only_for_found_document(indexed_server):
    key = reverse_url("http://b.org/plain")
    response, body = get(indexed_server, f"/explain?{urlencode({'q': 'needle', 'id': key})}")
    assert (response.status, "http://b.org/plain" in body) == (200, True)
    assert "idf" in body
    assert "pagerank" in body
    assert get(indexed_server, f"/explain?{urlencode({'q': 'hay', 'id': key})}")[0].status == 404
    assert get(indexed_server, f"/explain?{urlencode({'q': 'needle', 'id': 'no such'})}")[0].status == 404


def test_words_and_titles_are_suggested(indexed_server):
    def suggested(typed):
        response, body = get(indexed_server, f"/suggest?{urlencode({'q': typed})}")
        assert response.status == 200
        return json.loads(body)

    query, texts, kinds, addresses = suggested("nee")
    assert (query, texts[0], kinds[0]) == ("nee", "needle", "")
    assert addresses[0] == f"{indexed_server.url}?q=needle"
    assert ("Plain needle", "page", "http://b.org/plain") in [*zip(texts, kinds, addresses, strict=True)]
    assert suggested("plain nee")[1][0] == "plain needle"
    assert suggested("Hay ne")[1] == []  # no document has both
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
def test_unknown_word_shows_results_for_similar_word(indexed_server, query, meant):
    _, body = ask(indexed_server, q=query)
    typo = query.split()[0]
    only = urlencode({"q": query.replace(typo, f"+{typo}")})
    assert f'Showing results for <a href="/?{urlencode({"q": meant})}">{meant}</a>.' in body
    assert f'Search only for <a href="/?{only}">{query}</a>.' in body
    assert '<ol class="hits"' in body
    for typed in ("needle", "xylophone", f"+{typo}"):
        assert "Showing results" not in ask(indexed_server, q=typed)[1]
    assert "Did you mean" not in ask(indexed_server, q="xylophone")[1]
    assert f'Did you mean <a href="/?{urlencode({"q": "+needle"})}">+needle</a>?' in ask(indexed_server, q="+nedle")[1]


@pytest.mark.parametrize("query", ["((", '"', "AND", "title:", "a:b:c", "boost:x", "*", "{!func}1", "[a TO", "-", "\\"])
def test_any_input_is_a_valid_query(indexed_server, query):
    assert ask(indexed_server, q=query)[0].status == 200


def test_filters_can_be_removed_individually(indexed_server):
    _, body = ask(indexed_server, q="needle", host="a.org", lang="en")
    assert 'href="/?q=needle&amp;lang=en" aria-label="Remove filter site a.org"' in body
    assert 'href="/?q=needle&amp;host=a.org" aria-label="Remove filter language en"' in body
