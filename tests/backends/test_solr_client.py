"""SolrClient with servers that fail in every way, and problems of a schema. No Solr is needed."""

import json
import socket
from contextlib import contextmanager

import pytest

from nutch2py.backends.servers.solr_client import SolrClient, SolrRejectedError, resolve_solr_addresses
from nutch2py.backends.servers.solr_schema import EXPECTED_FIELDS, SolrSchema
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.writers.solr_writer import SolrIndexWriter
from nutch2py.jobs.index.solrdedup import solrdedup
from nutch2py.search.engines.solr_searcher import SolrSearcher
from tests.backends.failing_server import server
from tests.indexer.pages import doc

FINE = (200, b'{"responseHeader": {"status": 0}}')
ERROR = b'{"error": {"msg": "what Solr says", "code": 400}}'


@contextmanager
def client(*urls, **settings):
    made = SolrClient(urls, **{"timeout": 1.0, "max_retry_seconds": 20.0, **settings})
    try:
        yield made
    finally:
        made.close()


def unused_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.mark.parametrize(
    "failure",
    [
        *((503, b"starting"), (502, b"<html>no gateway</html>"), (504, b""), (429, b"slowly"), (500, ERROR)),
        *((200, b"<html>closed for the night</html>"), (200, b""), "cut", "drop", "hang"),
    ],
    ids=str,
)
def test_transient_failure_is_retried(failure):
    with server(failure, failure, FINE) as (url, seen), client(url) as solr:
        solr.add([{"id": "1"}])
    assert [json.loads(body) for body in seen] == [[{"id": "1"}]] * 3


def test_search_with_truncated_or_invalid_json_is_retried():
    found = (200, b'{"response": {"numFound": 1, "docs": []}}')
    with server("cut", (200, b"<html>a proxy</html>"), found) as (url, _), client(url) as solr:
        fetched = solr.call_with_retry(lambda one: json.loads(one._send_request("post", "select", body="q=x")))
    assert fetched["response"]["numFound"] == 1


def test_not_found_is_retried_after_collection_responded():
    with server(FINE, (404, b"stopping"), FINE) as (url, seen), client(url) as solr:
        solr.add([{"id": "1"}])
        solr.add([{"id": "2"}])
    assert len(seen) == 3
    with server((404, b"no such core")) as (url, seen), client(url) as solr:
        with pytest.raises(SolrRejectedError) as raised:
            solr.add([{"id": "1"}])
        assert (raised.value.status, len(seen)) == (404, 1)


def test_rejected_request_is_not_retried():
    with server((400, ERROR)) as (url, seen), client(url) as solr:
        with pytest.raises(SolrRejectedError, match=r"^what Solr says$") as raised:
            solr.add([{"id": "1"}])
        assert (raised.value.status, len(seen)) == (400, 1)


def test_persistent_internal_error_is_a_rejection():
    with server((500, ERROR)) as (url, seen), client(url) as solr, pytest.raises(SolrRejectedError):
        solr.add([{"id": "1"}])
    assert len(seen) == 4


def test_too_large_request_is_not_retried():
    body = b'{"error": {"msg": "java.lang.StackOverflowError", "code": 500}}'
    with (
        server((500, body)) as (url, seen),
        client(url) as solr,
        pytest.raises(SolrRejectedError, match="StackOverflow"),
    ):
        solr.add([{"id": "1"}])
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        ({"msg": "x", "trace": "java.lang.RuntimeException: x\nCaused by: java.lang.StackOverflowError\n"}, 1),
        ({"msg": "x", "metadata": ["error-class", "a.B", "root-error-class", "java.lang.StackOverflowError"]}, 1),
        ({"msg": "ERROR: [doc=com.a:http/StackOverflowError] unknown field"}, 4),
        ({"msg": ["StackOverflowError"]}, 4),
        ({}, 4),
    ],
)  # fmt: skip
def test_solr_exception_decides_instead_of_document_text(error, tries):
    body = json.dumps({"error": {**error, "code": 500}}).encode()
    with server((500, body)) as (url, seen), client(url) as solr, pytest.raises(SolrRejectedError):
        solr.add([{"id": "1"}])
    assert len(seen) == tries


def test_status_is_taken_from_response_instead_of_text():
    words = b'{"error": {"msg": "the page says (HTTP 503): come again", "code": 400}}'
    with server((400, words)) as (url, seen), client(url) as solr:
        with pytest.raises(SolrRejectedError, match=r"the page says .HTTP 503.: come again") as raised:
            solr.add([{"id": "1"}])
        assert (raised.value.status, len(seen)) == (400, 1)


SECRET = "s3cr3t"


def with_login(url):
    return url.replace("://", f"://me:{SECRET}@")


@pytest.mark.parametrize(
    "answer",
    [
        *((503, b"starting"), (429, b""), (500, ERROR), (400, ERROR), (404, b""), (401, b""), (200, b"<html>")),
        *("cut", "drop", "hang"),
    ],
    ids=str,
)  # fmt: skip
def test_error_hides_login_of_address(answer, capsys):
    with server(answer) as (url, _), client(with_login(url), max_retry_seconds=0.3, timeout=0.3) as solr:
        with pytest.raises((IndexingError, SolrRejectedError)) as raised:
            solr.add([{"id": "1"}])
        output = f"{raised.value}{capsys.readouterr().err}{solr.url}"
    assert SECRET not in output
    assert url in output


@pytest.mark.parametrize(
    "address", ["http://me:{}@127.0.0.1:1/solr/n", "http://me:a@{}/b@127.0.0.1:1/solr", "me:{}@h/solr"]
)
def test_writer_error_hides_login(address, capsys):
    conf = Configuration({"solr.server.url": address.format(SECRET), "service.wait.seconds": "0.1"})
    writer = SolrIndexWriter(conf)

    def work():
        writer.open(conf, {})
        writer.write(doc("a", title="t"))
        writer.close()

    with pytest.raises((IndexingError, ConfigurationError)) as raised:
        work()
    assert SECRET not in f"{raised.value}{capsys.readouterr().err}{writer.describe()}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h:8983/solr/n", "http://h:8983/solr/n"),
        ("http://me@h/solr", "http://h/solr"),
        ("https://me:a@b:c@h/solr", "https://h/solr"),
        ("http://me:a/b@h/solr", "http://h/solr"),
        ("me:pw@h", "h"),
        ("http://a:b@h/x, http://c:d@i/y", "http://h/x, http://i/y"),
        ("cannot reach http://a:b@h/x: no", "cannot reach http://h/x: no"),
        ("the page https://example.org/@name is refused", "the page https://example.org/@name is refused"),
        ("mail a@b.org is no number", "mail a@b.org is no number"),
        ("", ""),
    ],
)
def test_shown_address_is_redacted(text, shown):
    assert redact_address(text) == shown


def test_unavailable_address_falls_back_to_next():
    dead = f"http://127.0.0.1:{unused_port()}/solr/nutch"
    with server(FINE) as (url, seen), client(dead, url, max_retry_seconds=5.0) as solr:
        solr.add([{"id": "1"}])
        solr.add([{"id": "2"}])
        assert solr.url == url
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"http://127.0.0.1:{unused_port()}/solr/nutch", "connection refused"),
        ("http://solr.invalid/solr/nutch", "no such host"),
    ],
    ids=["refused", "unknown"],
)
def test_retries_end_after_service_wait(url, reason):
    with client(url, max_retry_seconds=0.3) as solr, pytest.raises(IndexingError) as raised:
        solr.commit()
    assert str(raised.value) == (
        f"Solr does not respond at {url} ({reason}): start it or correct solr.server.url, and run the job again"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_missing_login_is_reported(status):
    with server((status, b"")) as (url, _), client(url) as solr, pytest.raises(IndexingError, match=f"HTTP {status}"):
        solr.commit()


@pytest.mark.parametrize(
    ("given", "kind", "collection", "expected"),
    [
        ("http://a/solr/n/", "http", "", [["http://a/solr/n"]]),
        ("http://a/solr/n, http://b/solr/n", "http", "", [["http://a/solr/n"], ["http://b/solr/n"]]),
        ("http://a/solr/n http://b/solr/n", "lb", "", [["http://a/solr/n", "http://b/solr/n"]]),
        ("http://a/solr,http://b/solr/c", "cloud", "c", [["http://a/solr/c", "http://b/solr/c"]]),
    ],
)
def test_addresses_are_separate_collections_or_replicas(given, kind, collection, expected):
    assert resolve_solr_addresses(Configuration({}), given, kind, collection) == expected


@pytest.mark.parametrize(
    ("given", "kind", "collection", "message"),
    [
        ("", "http", "", "Missing SOLR URL"),
        ("localhost:8983/solr", "http", "", "'localhost:8983/solr': write http://HOST"),
        ("http://a/solr", "both", "", "write http, lb or cloud"),
        ("http://a/solr", "cloud", "", "name the collection with solr.collection"),
        ("", "cloud", "c", "set solr.server.url or solr.zookeeper.hosts"),
    ],
)
def test_unusable_addresses_are_reported(given, kind, collection, message):
    with pytest.raises(ConfigurationError, match=message):
        resolve_solr_addresses(Configuration({}), given, kind, collection)


SCHEMA = SolrSchema(
    {
        "schema": {
            "uniqueKey": "key",
            "fieldTypes": [
                {"name": "string", "class": "solr.StrField"},
                {"name": "strings", "class": "solr.StrField", "multiValued": True},
                {"name": "text", "class": "solr.TextField"},
                {"name": "date", "class": "solr.TrieDateField"},
                {"name": "float", "class": "solr.FloatPointField"},
                {"name": "flag", "class": "solr.BoolField"},
                {"name": "odd", "class": "com.example.OddField"},
            ],
            "fields": [
                {"name": "key", "type": "string", "required": True},
                {"name": "content", "type": "text"},
                {"name": "tstamp", "type": "date"},
                {"name": "boost", "type": "float"},
                {"name": "tags", "type": "string", "multiValued": True},
                {"name": "flag", "type": "flag"},
                {"name": "odd", "type": "odd"},
                {"name": "shop", "type": "string", "required": True},
                {"name": "country", "type": "string", "required": True, "default": "none"},
            ],
            "dynamicFields": [
                {"name": "meta_*", "type": "strings"},
                {"name": "meta_date_*", "type": "date"},
                {"name": "*_count", "type": "float"},
            ],
        }
    }
)


@pytest.mark.parametrize(
    ("name", "rows", "problem"),
    [
        ("content", [["x"]], ""),
        ("tstamp", [["2026-01-01T00:00:00Z"], ["soon"]], ""),
        ("tags", [["a", "b"]], ""),
        ("content", [["a"], ["a", "b"]], "field content takes one value, pages have several (set multiValued)"),
        ("lang", [["en"]], "field lang is missing"),
        ("meta_a", [["x", "y"]], ""),
        ("meta_date_a", [["2026-01-01T00:00:00.000Z"]], ""),
        ("meta_date_a", [["2026-01-01"]], "field meta_date_a has the type date, which does not take '2026-01-01'"),
        ("word_count", [["1e3"]], ""),
        ("word_count", [["many"], ["few"]], "field word_count has the type float, which does not take 'many'"),
        ("word_count", [["many"], ["2"]], ""),
        ("flag", [["true"]], ""),
        ("flag", [["yes"]], "field flag has the type flag, which does not take 'yes'"),
        ("odd", [["anything"]], ""),
    ],
)
def test_schema_reports_unsupported_fields(name, rows, problem):
    assert SCHEMA.find_problems({name: rows}, {}) == ({name: problem} if problem else {})


def test_schema_resolves_renamed_fields():
    assert SCHEMA.find_problems({"tags": [["x"]]}, {"tags": "tstamp"}) == {
        "tags": "field tags has the type string, a date is needed"
    }
    assert SCHEMA.find_problems({"tags": [["x"]]}, {"tags": "content"}) == {
        "tags": "field tags has the type string, a text is needed"
    }
    assert SCHEMA.unique_key == "key"
    assert list(SCHEMA.find_missing(EXPECTED_FIELDS)) == ["id", "url", "host", "title", "digest", "batchId"]
    assert list(SCHEMA.find_missing_required({"key"})) == ["shop"]


ENDLESS = ("endless", "endless chunks", "endless gzip", "endless error")


@pytest.mark.parametrize("kind", ENDLESS)
def test_response_without_end_is_cut_and_named(kind):
    sent, limit = [0], 500_000
    with server(kind, sent=sent) as (url, seen), client(url, max_response_bytes=limit) as solr:
        for ask in (
            lambda: solr.post_json("select", {"query": "x"}),
            lambda: solr.get_json("schema"),
            lambda: solr.search("x"),
            lambda: solr.add([{"id": "1"}]),
            solr.commit,
        ):
            with pytest.raises(IndexingError, match=r"Solr at http://127.* 500,000 bytes \(index\.resp"):
                ask()
    assert len(seen) == 5  # not repeated
    assert sent[0] < 5 * 20_000_000  # what the sockets hold, and no more


def test_response_that_drips_ends_in_time():
    with (
        server("endless drip") as (url, _),
        client(url, timeout=0.3, max_retry_seconds=0.2) as solr,
        pytest.raises(IndexingError, match="timed out"),
    ):
        solr.post_json("select", {"query": "x"})


def test_response_of_the_limit_is_read():
    body = b'{"response": {"numFound": 1, "docs": []}}'
    for limit in (len(body), len(body) - 1):
        with server((200, body)) as (url, _), client(url, max_response_bytes=limit) as solr:
            if limit == len(body):
                assert solr.post_json("select", {})["response"]["numFound"] == 1
            else:
                with pytest.raises(IndexingError, match="more than"):
                    solr.post_json("select", {})


def test_limit_of_responses_is_that_of_the_property(conf):
    conf.set("index.response.max.bytes", "1000")
    with server("endless") as (url, _):
        conf.set("solr.server.url", url)
        for use in (
            lambda: SolrIndexWriter(conf).check(conf, {}),
            lambda: SolrSearcher(conf).count(),
            lambda: solrdedup(conf),
        ):
            with pytest.raises(IndexingError, match=r"more than 1,000 bytes"):
                use()
