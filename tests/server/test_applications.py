"""The interface for applications: its types, its limits, the applications of the docs, on every index."""

import asyncio
import json
import re
import subprocess
import sys
from urllib.parse import urlencode

import pytest

from nutch2py.search.interface import SearchAnswer
from nutch2py.search_client import AsyncSearchClient, SearchClient, SearchError
from tests.conftest import ROOT
from tests.server.conftest import fill, running
from tests.server.test_serve import get

GUIDE = (ROOT / "docs" / "search-api.md").read_text(encoding="utf-8")
ANSWER = {"query", "total", "start", "millis", "hits", "facets", "cursor", "meant"}
HIT = {"id", "url", "title", "titleHtml", "snippet", "snippetHtml", "score", "host", "lang", "types", "date", "fields"}


def address_of(server):
    return f"http://127.0.0.1:{server.address[1]}"


def raw(server, **arguments):
    answer, body = get(server, f"/api/v1/search?{urlencode(arguments)}")
    return answer.status, json.loads(body)


def test_every_name_is_there_and_lists_are_lists(either):
    status, found = raw(either, q="needle", lang="en", facets="host,type", fields="anchor,title,none")
    assert (status, found["total"], found["query"], found["meant"]) == (200, 3, "needle", "")
    assert found.keys() == ANSWER
    for hit in found["hits"]:
        assert hit.keys() == HIT
        assert hit["fields"] == {"anchor": [], "title": [hit["title"]], "none": []}
        assert len(hit["types"]) == 1
    assert found["facets"]["host"] == [{"value": "b.org", "count": 2}, {"value": "a.org", "count": 1}]
    assert "Evil <em>needle</em> &lt;script&gt;alert(1)&lt;/script&gt;" in {hit["titleHtml"] for hit in found["hits"]}
    assert raw(either, q="")[1]["hits"] == raw(either, q="xylophone")[1]["hits"] == []
    assert raw(either, q="nedle")[1]["meant"] == "needle"


def test_a_cursor_gives_every_hit_once(either):
    client = SearchClient(address_of(either))
    at_once = [hit.id for hit in client.search("hay", rows=100).hits]
    assert len(at_once) == 30
    for rows in (7, 10, 30, 100):
        assert [hit.id for hit in client.walk("hay", rows=rows)] == at_once
    assert sorted(hit.id for hit in client.walk("hay", rows=7, sort="date")) == sorted(at_once)
    assert client.search("hay", start=28).hits[-1].id == at_once[-1]
    assert client.search("hay", start=28).cursor is None


def test_hits_can_be_narrowed_and_collapsed(either):
    client = SearchClient(address_of(either))
    assert client.search("needle", host="org").total == 4
    assert client.search("needle", host="b.org", type="text/plain").total == 1
    found = client.search("needle OR hay", collapse="host")
    assert sorted(hit.host for hit in found.hits) == ["a.org", "b.org", "hay.org"]
    assert found.total == 34
    assert len(client.search("needle OR hay", collapse="host", start=2, rows=5).hits) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": "many"}, {"rows": 101}, {"start": -1}, {"start": 100_001}, {"sort": "colour"}, {"collapse": "digest"},
        {"facets": "colour"}, {"cursor": "*", "start": 1}, {"cursor": "*", "collapse": "host"}, {"cursor": "?!"},
        {"page": 2}, {"q": "x" * 1001},
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(either, wrong):
    status, told = raw(either, **{"q": "needle", **wrong})
    assert (status, told["status"]) == (400, 400)
    assert told["error"]


def test_the_client_for_asyncio_asks_at_the_same_time(server):
    async def ask():
        client = AsyncSearchClient(address_of(server))
        answers = await asyncio.gather(*(client.search(query) for query in ("needle", "hay", "plain")))
        return answers, [hit.id async for hit in client.walk("hay", rows=9)]

    answers, walked = asyncio.run(ask())
    assert all(isinstance(answer, SearchAnswer) for answer in answers)
    assert [answer.total for answer in answers] == [4, 30, 1]
    assert len(walked) == len(set(walked)) == 30


def test_the_client_tells_what_went_wrong(server):
    with pytest.raises(SearchError, match="rows") as refused:
        SearchClient(address_of(server)).search("needle", rows=1000)
    assert refused.value.status == 400
    with pytest.raises(SearchError, match="is no result of a search"):
        SearchClient(f"{address_of(server)}/search.json?").search("needle")
    with pytest.raises(SearchError, match="does not answer"):
        SearchClient("http://127.0.0.1:1").search("needle")


@pytest.mark.parametrize(("origins", "told"), [("", None), ("*", "*"), ("https://a.example", "https://a.example")])
def test_other_sites_read_answers_where_a_property_says_so(conf, origins, told):
    conf.set("search.cors.origins", origins)
    fill(conf)
    with running(conf) as server:
        for path in ("/api/v1/search?q=hay", "/api/v1/search?q=hay&rows=x"):
            answer, _ = get(server, path, Origin="https://a.example")
            assert answer.headers["Access-Control-Allow-Origin"] == told
        answer, _ = get(server, "/api/v1/search?q=hay", Origin="https://b.example")
        assert answer.headers["Access-Control-Allow-Origin"] == ("*" if origins == "*" else None)
        for path in ("/search.json?q=hay", "/api/v1/jobs"):
            answer, _ = get(server, path, Origin="https://a.example")
            assert answer.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(("language", "command"), [("python", [sys.executable]), ("javascript", ["node"])])
def test_the_applications_of_the_docs_run_as_they_stand(server, tmp_path, language, command):
    (code,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / f"app.{'py' if language == 'python' else 'mjs'}"
    path.write_text(code, encoding="utf-8")

    def run(query):
        asked = [*command, path, address_of(server), query]
        try:
            return subprocess.run(asked, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
        except FileNotFoundError:
            pytest.skip(f"{command[0]} is not here")

    done = run("needle")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("4 pages\n")
    assert "b.org 2\n" in done.stdout
    assert "4 by cursor" in done.stdout
    failed = run("x" * 1001)
    assert failed.returncode == 1
    assert failed.stderr.startswith("400: ")
