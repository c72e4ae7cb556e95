"""Values of requests stay values on the embedded index, Solr and OpenSearch: nothing expands or parses them."""

from __future__ import annotations

import json
import string
from urllib.parse import urlencode

import pytest

from nutch2py.url.keys import reverse_url
from tests.server.test_public_errors import internals_in
from tests.server.test_serve import get

HOSTILE = [
    "${json}", "${q}", "${x:en}", "${expandMacros}", "${${q}}", "e${x:n}", "{!func}1", "{!lucene v=$q}",
    "{!join from=id to=id}*:*", '_query_:"{!func}1"', '_val_:"sum(1,1)"', "{!terms f=id}a", "*:*", 'en" OR "zh',
    "en\\", 'x"^=1000 OR *:*', "en)) OR (*:*", "$q", "$filter_lang", '{"match_all":{}}', "_exists_:id",
    "<match_all/>", "[* TO *]", "/.*/", "e?", "e*", "en~2", "true",
]  # fmt: skip
PATHS = ["/search.json", "/", "/suggest", "/explain", "/api/v1/search", "/api/v1/suggest"]
MANY_WORDS = " ".join(f"{a}{b}{c}" for a in string.ascii_lowercase for b in "ab" for c in "abcde")[:999]


def found(server, **arguments):
    response, body = get(server, f"/search.json?{urlencode(arguments)}")
    assert response.status == 200, body
    return json.loads(body)["total"]


@pytest.mark.parametrize("value", HOSTILE)
def test_filter_value_is_compared_as_it_is(indexed_server, value):
    assert found(indexed_server, q="needle", lang="en") == 3
    for name in ("host", "path", "type", "lang", "date"):
        assert (name, found(indexed_server, q="needle", **{name: value})) == (name, 0)


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_query_is_answered_or_rejected(indexed_server, value):
    for path in PATHS:
        query = urlencode({"q": f"needle {value}", **({"id": value} if path == "/explain" else {})})
        response, body = get(indexed_server, f"{path}?{query}")
        assert response.status in ((200, 404) if path == "/explain" else (200,)), (path, body)
        if path != "/explain":
            assert "_tt0" not in body
    for path in ("/explain", "/cached", "/cached/view"):
        response, body = get(indexed_server, f"{path}?{urlencode({'q': 'needle', 'id': value})}")
        assert response.status == 404, (path, body)


LONG_QUERIES = {
    "words": MANY_WORDS,
    "phrases": " ".join(f'"{word} x"' for word in MANY_WORDS.split())[:999],
    "prefixes": "a* b* c* " * 100,
    "alternatives": " OR ".join(MANY_WORDS.split())[:999],
    "groups": " ".join(f"({word} OR x)" for word in MANY_WORDS.split())[:999],
    "excluded": "needle " + " ".join(f"-{word}" for word in MANY_WORDS.split())[:990],
    "characters": "奥运会开幕北京" * 142,
    "one word": "abcdefghij" * 99,
}


@pytest.mark.parametrize("name", LONG_QUERIES)
def test_long_query_is_no_outage(indexed_server, capsys, name):
    query = LONG_QUERIES[name]
    for path in PATHS:
        arguments = {"q": query, **({"id": reverse_url("http://b.org/plain")} if path == "/explain" else {})}
        response, body = get(indexed_server, f"{path}?{urlencode(arguments)}")
        assert response.status in ((200, 400, 404) if path == "/explain" else (200, 400)), (path, body[:500])
        if response.status == 400:
            assert "too many words" in body
            assert internals_in(body) == []
    assert "solr.server.url" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "cursor", ["WzEsImEiXQ", "W3t9LCJhIl0", "WzEse31d", "bnVsbA", "W10", "${json}", "*", "A" * 2000, "-1", "1e5"]
)
def test_invented_cursor_is_error_of_client(indexed_server, cursor):
    response, body = get(indexed_server, f"/api/v1/search?{urlencode({'q': 'needle', 'cursor': cursor})}")
    assert response.status in (200, 400), body
    if response.status == 400:
        assert internals_in(body) == []
