"""ElasticClient with servers that fail in every way, and messages about addresses. No search server is needed."""

import json
import re

import pytest

from nutch2py.backends.servers.elastic_client import BulkAction, ElasticClient, parse_elastic_addresses
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.indexer.writers.elastic_writer import ElasticIndexWriter, elastic_document_id
from nutch2py.indexer.writers.server_writer import RequestRejectedError
from nutch2py.search.engines.elastic_searcher import ElasticSearcher
from tests.backends.failing_server import server
from tests.backends.test_solr_client import ENDLESS, unused_port
from tests.indexer.pages import doc

BUSY = {"type": "rejected_execution_exception", "reason": "queue full"}
ERROR = b'{"error": {"type": "what_it_is", "reason": "what it says", "caused_by": {"type": "a", "reason": "b"}}}'


def items(*outcomes):
    """Return the response to a bulk: a status for each operation, with an error unless it is a success."""
    listed = [
        {
            "index": {"status": status}
            | ({"error": BUSY if status == 429 else {"type": "t", "reason": "r"}} if status > 299 else {})
        }
        for status in outcomes
    ]
    return 200, json.dumps({"errors": any(status > 299 for status in outcomes), "items": listed}).encode()


def client(url, **settings):
    given = {"timeout": 1.0, "max_retry_seconds": 20.0, "first_delay": 0.01, **settings}
    return ElasticClient([url.removesuffix("/solr/nutch")], "nutch", **given)


def actions(*names):
    return [BulkAction(name, f"{name}\n".encode(), True) for name in names]


@pytest.mark.parametrize(
    "failure",
    [
        *((503, ERROR), (502, b"<html>no gateway</html>"), (504, b""), (429, ERROR), (500, ERROR)),
        *((200, b"<html>closed for the night</html>"), (200, b"{}"), "cut", "drop", "hang"),
    ],
    ids=str,
)
def test_transient_failure_is_retried(failure):
    with server(failure, failure, items(200)) as (url, seen):
        assert client(url).bulk(actions("a")) == []
    assert seen == [b"a\n"] * 3


def test_bulk_retry_resends_only_rejected_items():
    answers = (items(200, 429, 400, 503), items(200, 429), items(201))
    with server(*answers) as (url, seen):
        assert client(url).bulk(actions("a", "b", "c", "d")) == [("c", "t: r")]
    assert seen == [b"a\nb\nc\nd\n", b"b\nd\n", b"d\n"]


def test_request_too_large_for_server_is_split():
    with server((429, ERROR), items(200, 200)) as (url, seen):
        assert client(url).bulk(actions("a", "b", "c", "d")) == []
    assert seen == [b"a\nb\nc\nd\n", b"a\nb\n", b"c\nd\n"]


def test_server_staying_busy_ends_job_after_retries():
    with server(items(429)) as (url, seen), pytest.raises(IndexingError, match=r"is overloaded \(.*queue full\)"):
        client(url, max_overloads=3).bulk(actions("a"))
    assert len(seen) == 4


def test_server_rejection_is_reported_with_cause():
    with (
        server((400, ERROR)) as (url, seen),
        pytest.raises(RequestRejectedError, match=r"^what_it_is: what it says; a: b$") as raised,
    ):
        client(url).bulk(actions("a"))
    assert (raised.value.status, len(seen)) == (400, 1)


def refused_creation(error):
    return 400, json.dumps({"error": error, "status": 400}).encode()


@pytest.mark.parametrize(
    "error",
    [
        {"type": "resource_already_exists_exception", "reason": "index exists"},
        {"type": "remote_transport_exception", "caused_by": {"type": "resource_already_exists_exception"}},
        {"type": "exception", "root_cause": [{"type": "resource_already_exists_exception", "reason": ""}]},
    ],
)
def test_index_created_by_other_process_is_kept(error):
    with server(refused_creation(error)) as (url, seen):
        client(url).create_index(b"{}")
    assert seen == [b"{}"]


@pytest.mark.parametrize(
    "error",
    [
        {"type": "mapper_parsing_exception", "reason": "a field resource_already_exists_exception"},
        {"type": "resource_already_exists_exceptional"},
        "resource_already_exists_exception",
    ],
)
def test_index_exists_is_not_detected_by_text(error):
    with server(refused_creation(error)) as (url, _), pytest.raises(RequestRejectedError):
        client(url).create_index(b"{}")


@pytest.mark.parametrize(
    "answer", [(503, ERROR), (429, ERROR), (400, ERROR), (401, ERROR), (200, b"<html>"), "drop", "hang"]
)
def test_error_hides_login_of_address(answer, capsys):
    with server(answer) as (url, _):
        shown = url.removesuffix("/solr/nutch")
        made = client(shown.replace("://", "://me:s3cr3t@"), max_retry_seconds=0.3, timeout=0.3)
        with pytest.raises((IndexingError, RequestRejectedError)) as raised:
            made.bulk(actions("a"))
        output = f"{raised.value}{capsys.readouterr().err}{made.url}"
    assert "s3cr3t" not in output
    assert shown in output


@pytest.mark.parametrize("status", [400, 413])
def test_rejected_bulk_is_halved_until_document_is_found(status, capsys):
    mapping, rejection = (200, b'{"nutch": {"mappings": {}}}'), (status, b"<html>no</html>")
    with server(mapping, rejection, rejection, items(200), rejection, items(200, 200)) as (url, seen):
        conf = Configuration({"elastic.host": url.removesuffix("/solr/nutch")})
        writer = ElasticIndexWriter(conf)
        writer.open(conf, {})
        for name in "abcd":
            writer.write(doc(name, title="t"))
        writer.close()
    assert [body.count(b"_id") for body in seen] == [0, 4, 2, 1, 1, 2]
    assert (writer.rejected, writer.accepted) == (1, 3)
    assert re.search(rf"rejects the document b: .* \(HTTP {status}\)\n", capsys.readouterr().err)


@pytest.mark.parametrize("answer", [(404, b"<html>nothing here</html>"), (301, b""), (405, b"")])
def test_address_of_other_server_ends_job_immediately(answer):
    with server(answer) as (url, _):
        conf = Configuration({"elastic.host": url.removesuffix("/solr/nutch")})
        with pytest.raises(IndexingError, match=rf"rejects .*\(HTTP {answer[0]}\)"):
            IndexWriters(conf).prepare()


@pytest.mark.parametrize("status", [401, 403])
def test_missing_login_is_reported(status):
    with server((status, ERROR)) as (url, _), pytest.raises(IndexingError, match=f"HTTP {status}, .*elastic.username"):
        client(url).refresh()


def test_partially_failed_refresh_is_repeated():
    part = (200, b'{"_shards": {"total": 2, "successful": 1, "failed": 1}}')
    with server(part, (200, b'{"_shards": {"total": 2, "successful": 2, "failed": 0}}')) as (url, seen):
        client(url).refresh()
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"http://127.0.0.1:{unused_port()}", "connection refused"),
        ("http://elastic.invalid", "no such host"),
    ],
    ids=["refused", "unknown"],
)
def test_retries_end_after_service_wait(url, reason):
    with pytest.raises(IndexingError) as raised:
        client(url, max_retry_seconds=0.3).refresh()
    assert str(raised.value) == (
        f"The search server does not respond at {url} ({reason}): start it or correct elastic.host, "
        "and run the job again"
    )


def test_closed_connection_suggests_tls():
    with server("drop") as (url, _), pytest.raises(IndexingError, match=r"perhaps .* elastic\.scheme https"):
        client(url, max_retry_seconds=0.2).refresh()


@pytest.mark.parametrize(
    ("hosts", "scheme", "expected"),
    [
        ("a", "http", ["http://a:9200"]),
        ("a, b:9201,c", "https", ["https://a:9200", "https://b:9201", "https://c:9200"]),
        ("https://x.example.com/search/ http://y", "http", ["https://x.example.com/search", "http://y"]),
        ("[::1]", "http", ["http://[::1]:9200"]),
        ("", "http", []),
    ],
)
def test_host_accepts_name_or_url(hosts, scheme, expected):
    assert parse_elastic_addresses(hosts, 9200, scheme) == expected


@pytest.mark.parametrize(
    ("hosts", "scheme", "message"),
    [
        ("a:b", "http", "'a:b': write HOST, HOST:9200"),
        ("ftp://a", "http", "'ftp://a': write HOST"),
        ("http://", "http", "write HOST"),
        ("a?b=c", "http", "write HOST"),
        ("a", "tcp", "write http or https"),
        ("https://elastic:geheim@a", "https", "^elastic.host contains a login: move it to elastic.username"),
    ],
)
def test_unusable_hosts_are_reported(hosts, scheme, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_elastic_addresses(hosts, 9200, scheme)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tls.ca": "/no/such/file.pem"}, "elastic.tls.ca names /no/such/file.pem, which is not a file"),
        ({"trust.store.path": "trust.jks"}, "key stores of Java"),
        ({"max.bulk.docs": "many"}, "max.bulk.docs of indexer-elastic is 'many', not a whole number"),
        ({"host": ""}, "elastic.host is not set"),
    ],
)
def test_unusable_settings_are_reported(parameters, message):
    conf = Configuration({})
    with pytest.raises(ConfigurationError, match=message):
        ElasticIndexWriter(conf).open(conf, {"host": "a", **parameters})


def test_transport_port_of_nutch_2_logs_warning(capsys):
    with server((200, b'{"nutch": {"mappings": {}}}')) as (url, _):
        host = url.removesuffix("/solr/nutch")
        ElasticIndexWriter(Configuration({})).prepare(
            Configuration({}), {"host": f"{host},127.0.0.1", "port": "9300"}, False
        )
    assert "elastic.port is 9300" in capsys.readouterr().err


def test_id_up_to_512_bytes_is_kept():
    whole = "é" * 256
    assert elastic_document_id(whole) == whole
    cut, other = elastic_document_id(whole + "a"), elastic_document_id(whole + "b")
    assert cut != other
    assert (cut[:200], len(cut.encode()) <= 512) == (whole[:200], True)


def test_document_without_id_is_reported():
    writer = ElasticIndexWriter(Configuration({}))
    with pytest.raises(IndexingError, match="has no field id"):
        writer.write(doc(""))


@pytest.mark.parametrize("kind", ENDLESS)
def test_response_without_end_is_cut_and_named(kind):
    with server(kind) as (url, seen):
        made = client(url, max_response_bytes=500_000)
        for ask in (
            lambda: made.post_json("/_search", {}),
            lambda: made.bulk(actions("a")),
            made.refresh,
            made.count_documents,
        ):
            with pytest.raises(IndexingError, match=r"at http://127\.0\.0\.1.* 500,000 bytes \(index\.response\.max"):
                ask()
        made.close()
    assert len(seen) == 4  # not repeated


def test_limit_of_responses_is_that_of_the_property(conf):
    conf.set("index.response.max.bytes", "1000")
    with server("endless") as (url, _):
        conf.set("elastic.host", url.removesuffix("/solr/nutch"))
        for use in (lambda: ElasticIndexWriter(conf).check(conf, {}), lambda: ElasticSearcher(conf).count()):
            with pytest.raises(IndexingError, match=r"more than 1,000 bytes"):
                use()
