"""The search API: types, limits, and the documented applications, on every index."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
from urllib.parse import urlencode

import pytest

from nutch2py.search.search_schemas import SearchResponse
from nutch2py.search_client import AsyncSearchClient, SearchClient, SearchError
from tests.conftest import ROOT
from tests.server.conftest import fill, running
from tests.server.test_serve import get

GUIDE = (ROOT / "docs" / "search-api.md").read_text(encoding="utf-8")
ANSWER = {"query", "total", "start", "millis", "hits", "facets", "cursor", "correctedQuery", "isCorrected", "note",
          "resultToken", "isCut"}  # fmt: skip
HIT = {"id", "url", "title", "titleHtml", "snippet", "snippetHtml", "score", "host", "lang", "types", "date", "fields",
       "more", "others", "cutFields"}  # fmt: skip


def address_of(server):
    return f"http://127.0.0.1:{server.address[1]}"


def raw(server, **arguments):
    response, body = get(server, f"/api/v1/search?{urlencode(arguments)}")
    return response.status, json.loads(body)


def test_response_has_all_names_and_lists(indexed_server):
    status, found = raw(indexed_server, q="needle", lang="en", facets="host,type", fields="anchor,title,none")
    assert (status, found["total"], found["query"], found["correctedQuery"]) == (200, 3, "needle", "")
    assert found.keys() == ANSWER
    for hit in found["hits"]:
        assert hit.keys() == HIT
        assert hit["fields"] == {"anchor": [], "title": [hit["title"]], "none": []}
        assert len(hit["types"]) == 1
    assert found["facets"]["host"] == [{"value": "b.org", "count": 2}, {"value": "a.org", "count": 1}]
    assert "Evil <em>needle</em> &lt;script&gt;alert(1)&lt;/script&gt;" in {hit["titleHtml"] for hit in found["hits"]}
    assert raw(indexed_server, q="")[1]["hits"] == raw(indexed_server, q="xylophone")[1]["hits"] == []
    typo = raw(indexed_server, q="nedle")[1]
    assert (typo["correctedQuery"], typo["isCorrected"], typo["total"]) == ("needle", True, 4)
    only = raw(indexed_server, q="+nedle")[1]
    assert (only["correctedQuery"], only["isCorrected"], only["total"]) == ("+needle", False, 0)


def test_folders_and_dates_narrow_stepwise(indexed_server):
    def counted(**narrower):
        found = raw(indexed_server, q="hay", facets="path,date", rows=0, **narrower)[1]["facets"]
        return {name: [(each["value"], each["count"]) for each in values] for name, values in found.items()}

    assert counted() == {"path": [("hay.org/a/", 15), ("hay.org/b/", 15)], "date": [("2026", 30)]}
    within = [(f"hay.org/a/{folder}/", 5) for folder in range(3)]
    assert counted(path="hay.org/a/", date="2026") == {
        "path": [("hay.org/a/", 15), *within], "date": [("2026", 15), ("2026-01", 15)],
    }  # fmt: skip
    assert counted(path="hay.org/a/1/", date="2026-01") == {"path": [("hay.org/a/1/", 5)], "date": [("2026-01", 5)]}
    assert counted(path="hay.org/c/") == {"path": [], "date": []}
    assert raw(indexed_server, q="needle", facets="path")[1]["facets"] == {"path": []}  # of two hosts


def test_cursor_returns_every_hit_once(indexed_server):
    client = SearchClient(address_of(indexed_server))
    at_once = [hit.id for hit in client.search("hay", rows=100).hits]
    assert len(at_once) == 30
    for rows in (7, 10, 30, 100):
        assert [hit.id for hit in client.iter_hits("hay", rows=rows)] == at_once
        assert [hit.id for hit in client.iter_hits("hay", rows=rows, freshness=30)] == at_once  # all have the same date
    assert sorted(hit.id for hit in client.iter_hits("hay", rows=7, sort="date")) == sorted(at_once)
    assert client.search("hay", start=28).hits[-1].id == at_once[-1]
    assert client.search("hay", start=28).cursor is None


def test_hits_can_be_filtered_and_collapsed(indexed_server):
    client = SearchClient(address_of(indexed_server))
    assert client.search("needle", host="org").total == 4
    assert client.search("needle", host="b.org", type="text/plain").total == 1
    found = client.search("needle OR hay", collapse="host")
    assert sorted(hit.host for hit in found.hits) == ["a.org", "b.org", "hay.org"]
    assert found.total == 34
    assert len(client.search("needle OR hay", collapse="host", start=2, rows=5).hits) == 1


def test_near_duplicates_are_one_hit_listing_others(indexed_server):
    client = SearchClient(address_of(indexed_server))
    for options in ({}, {"sort": "date"}, {"freshness": 30}, {"rows": 1}):
        found = client.search("needle OR hay", collapse="near", facets="host", **options)
        hay = [hit for hit in found.hits if hit.host == "hay.org"]
        assert [(hit.more, len(hit.others)) for hit in hay] == ([(29, 10)] if hay else [])
        assert {url.split("/")[2] for hit in hay for url in hit.others} <= {"hay.org"}
        assert (found.total, found.note, found.facets["host"][0].count) == (34, "", 30)
        assert len(found.hits) == options.get("rows", 5)
    assert [hit.more for hit in client.search("hay", collapse="near", path="hay.org/a/").hits] == [14]
    assert client.search("needle OR hay", collapse="near", start=5).hits == []
    assert len(client.search("needle OR hay", collapse="none").hits) == 10


def test_suggestions_are_reported_by_type(indexed_server):
    found = SearchClient(address_of(indexed_server)).suggest("plain nee")
    assert (found.query, found.queries) == ("plain nee", ["plain needle"])
    assert [(page.title, page.url) for page in found.pages] == [("Plain needle", "http://b.org/plain")]
    assert asyncio.run(AsyncSearchClient(address_of(indexed_server)).suggest("xyzzy")).queries == []
    for arguments in ({}, {"q": "x" * 1001}, {"q": "nee", "rows": 3}):
        response, _ = get(indexed_server, f"/api/v1/suggest?{urlencode(arguments)}")
        assert response.status == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": "many"}, {"rows": 101}, {"start": -1}, {"start": 100_001}, {"sort": "colour"}, {"collapse": "digest"},
        {"facets": "colour"}, {"cursor": "*", "start": 1}, {"cursor": "*", "collapse": "host"}, {"cursor": "?!"},
        {"cursor": "*", "collapse": "near", "facets": "host"},
        {"page": 2}, {"q": "x" * 1001}, {"freshness": -1}, {"freshness": "nan"}, {"freshness": 36_501},
        {"freshness": "soon"}, {"freshness": 30, "cursor": "7"},
    ],
)  # fmt: skip
def test_invalid_parameters_are_reported(indexed_server, wrong):
    status, body = raw(indexed_server, **{"q": "needle", **wrong})
    assert (status, body["status"]) == (400, 400)
    assert body["error"]


def test_async_client_sends_concurrent_requests(server):
    async def ask():
        client = AsyncSearchClient(address_of(server))
        answers = await asyncio.gather(*(client.search(query) for query in ("needle", "hay", "plain")))
        return answers, [hit.id async for hit in client.iter_hits("hay", rows=9)]

    answers, walked = asyncio.run(ask())
    assert all(isinstance(response, SearchResponse) for response in answers)
    assert [response.total for response in answers] == [4, 30, 1]
    assert len(walked) == len(set(walked)) == 30


def test_client_reports_errors(server):
    with pytest.raises(SearchError, match="rows") as failure:
        SearchClient(address_of(server)).search("needle", rows=1000)
    assert failure.value.status == 400
    with pytest.raises(SearchError, match="is not a search result"):
        SearchClient(f"{address_of(server)}/search.json?").search("needle")
    for address in ("http://127.0.0.1:1", "nowhere", "http://127.0.0.1:port", "http://[", "ftp://127.0.0.1"):
        with pytest.raises(SearchError, match="does not respond"):
            SearchClient(address).search("needle")


ODD = [b"", b"no\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", b"HTTP/1.1 500 No\r\n\r\n<p>",
       b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff{}", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
       b"HTTP/1.1 429 No\r\nRetry-After: soon\r\nContent-Length: 999\r\n\r\n{",
       b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n[]"]  # fmt: skip


@pytest.mark.parametrize("response", ODD)
def test_client_raises_search_error_for_any_response(response):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def say():
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(response)

        thread = threading.Thread(target=say)
        thread.start()
        with pytest.raises(SearchError) as failure:
            SearchClient(f"http://127.0.0.1:{listening.getsockname()[1]}").search("needle")
        thread.join()
    assert failure.value.status in (0, 401, 429, 500)
    assert failure.value.retry_after is None


@pytest.mark.parametrize(("origins", "allowed"), [("", None), ("*", "*"), ("https://a.example", "https://a.example")])
def test_cors_property_allows_other_origins(conf, origins, allowed):
    conf.set("search.cors.origins", origins)
    fill(conf)
    with running(conf) as server:
        for path in ("/api/v1/search?q=hay", "/api/v1/search?q=hay&rows=x"):
            response, _ = get(server, path, Origin="https://a.example")
            assert response.headers["Access-Control-Allow-Origin"] == allowed
        response, _ = get(server, "/api/v1/search?q=hay", Origin="https://b.example")
        assert response.headers["Access-Control-Allow-Origin"] == ("*" if origins == "*" else None)
        for path in ("/search.json?q=hay", "/api/v1/jobs"):
            response, _ = get(server, path, Origin="https://a.example")
            assert response.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(("language", "command"), [("python", [sys.executable]), ("javascript", ["node"])])
def test_documented_applications_run_unchanged(server, tmp_path, language, command):
    (code,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / f"app.{'py' if language == 'python' else 'mjs'}"
    path.write_text(code, encoding="utf-8")

    def run(query):
        arguments = [*command, path, address_of(server), query]
        try:
            return subprocess.run(arguments, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
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
