"""Errors for people who search name nothing of the server: no address, no property, no advice for its operator."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager

import pytest

from nutch2py.errors import ConfigurationError, IndexingError, QueryError, RunnerError, StoreError
from nutch2py.rest import http_error
from tests.server.conftest import running
from tests.server.test_serve import get
from tests.site.server import Reply, ScriptedSite

PATHS = ["/", "/?q=x", "/?q=x&partial=1", "/search.json?q=x", "/suggest?q=x", "/explain?q=x&id=a", "/cached?id=a",
         "/cached/view?id=a", "/api/v1/search?q=x", "/api/v1/suggest?q=x"]  # fmt: skip
INTERNALS = ("solr", "elastic", "127.0.0.1", "http://", "nutch2py index", "run ", "server.url", "tantivy", "/tmp",
             "storage.", "terms_", "Exception", "secret-of-the-index")  # fmt: skip
JSON = "application/json"
INTERNAL_QUERY = b'{"error":{"msg":"secret-of-the-index {!bool must=$_tt0}","code":400}}'
TOO_MANY = (
    b'{"error":{"msg":"Query contains too many nested clauses; maxClauseCount is set to 1024","code":500,"metadata":['
    b'"error-class","org.apache.solr.common.SolrException","root-error-class","org.apache.lucene.search.IndexSearcher$TooManyNestedClauses"]}}'
)


def internals_in(body: str) -> list[str]:
    shown = body.replace('rel="noreferrer', "").replace("http://www.w3.org", "")
    return [name for name in INTERNALS if name.lower() in shown.lower()]


@contextmanager
def serving_solr(conf, url, monkeypatch):
    monkeypatch.setattr("nutch2py.search.engines.solr_searcher.MAX_RETRY_SECONDS", 0.0)
    conf.set("search.backend", "solr")
    conf.set("solr.server.url", url)
    with running(conf) as made:
        yield made


@pytest.mark.parametrize("path", PATHS)
def test_unavailable_solr_is_not_named(conf, monkeypatch, capsys, path):
    monkeypatch.setattr(http_error, "logged_errors", {})
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/solr/nutch"
        with serving_solr(conf, address, monkeypatch) as server:
            response, body = get(server, path)
    assert response.status == 503
    assert response.headers["Retry-After"] == "10"
    assert internals_in(body) == []
    logged = capsys.readouterr().err
    assert address in logged
    assert "solr.server.url" in logged


@pytest.mark.parametrize(
    "path", [path for path in PATHS if "=x" in path and "suggest" not in path and "explain" not in path]
)
@pytest.mark.parametrize("reply", [INTERNAL_QUERY, TOO_MANY], ids=["rejected", "too-many-clauses"])
def test_rejected_query_is_error_of_client_without_internals(conf, monkeypatch, path, reply):
    with ScriptedSite() as solr:
        ready = Reply(body=b'{"responseHeader":{},"response":{"numFound":3,"docs":[]}}', content_type=JSON)
        status = 400 if reply is INTERNAL_QUERY else 500
        schema = Reply(body=b"{}", content_type=JSON)
        solr.on("/solr/nutch/schema", schema)
        solr.on("/solr/nutch/select?expandMacros=false", ready, Reply(status, reply, content_type=JSON))
        with serving_solr(conf, f"http://127.0.0.1:{solr.port}/solr/nutch", monkeypatch) as server:
            response, body = get(server, path)
        requests = solr.request_counts["/solr/nutch/select?expandMacros=false"]
    assert (response.status, internals_in(body)) == (400, [])
    assert requests == 2, "a rejected query is not sent again"
    if reply is TOO_MANY:
        assert "too many words" in body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "error",
    [
        IndexingError("the index /tmp/x cannot be searched: run index -reindex"),
        StoreError("the table /tmp/x is locked by http://127.0.0.1: run checktable"),
        ConfigurationError("solr.server.url is 'secret-of-the-index'"),
        RunnerError("YARN at http://127.0.0.1 is away"),
        QueryError("Solr at http://127.0.0.1 rejects terms_content", "The query was not understood."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_error_of_search_shows_internals(server, monkeypatch, path, error):
    class Failing:
        def __getattr__(self, name):
            def fail(*_, **__):
                raise error

            return fail

    @contextmanager
    def acquire():
        yield Failing()

    monkeypatch.setattr(type(server.app.state.authorizer.context.searchers), "acquire", lambda _: acquire())
    response, body = get(server, path)
    assert response.status >= 400
    assert internals_in(body) == []


@pytest.mark.parametrize(
    "arguments",
    ["rows=abc", "rows=-1", "rows=1e3", "rows=1.5", "start=x", "start=-1", "rows=9999999999", "sort=newest",
     f"host={'a' * 301}", f"lang={'a' * 301}", "rows=%00"],
)  # fmt: skip
def test_invalid_json_search_arguments_are_rejected(server, arguments):
    response, body = get(server, f"/search.json?q=needle&{arguments}")
    assert (response.status, response.headers["Content-Type"]) == (400, "application/problem+json")
    assert arguments.partition("=")[0] in json.loads(body)["detail"]


def test_valid_json_search_arguments_are_followed(server):
    response, body = get(server, "/search.json?q=hay&rows=3&start=1&sort=date")
    result = json.loads(body)
    assert (response.status, result["start"], len(result["hits"])) == (200, 1, 3)
    assert {hit["score"] for hit in result["hits"]} == {0.0}  # not in the order of relevance
