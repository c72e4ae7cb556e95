"""Malicious requests to the search page are rejected or harmless."""

import socket
import threading
from contextlib import suppress
from urllib.parse import quote, urlencode

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.webpage import WebPage
from nutch2py.server import connection_limits
from nutch2py.server.search_request import MAX_QUERY, SearchRequest
from nutch2py.server.translations import Translations
from nutch2py.table import open_store
from nutch2py.url.display_url import display_url
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.processes import wait_until
from tests.server.conftest import fill, running
from tests.server.test_serve import ask, get


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """Yield a running server of the embedded index, shared by the tests of this module."""
    folder = tmp_path_factory.mktemp("shared_server")
    conf = Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "storage.embedded.map.size": str(1 << 30),
            "rest.folder": str(folder / "rest"),
        }
    )
    fill(conf)
    with running(conf) as made:
        yield made


ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>",
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("path", ["/", "/explain", "/cached", "/cached/view", "/search.json", "/nothing"])
def test_url_parts_are_escaped_in_markup_and_headers(shared_server, path, attack):
    arguments = dict.fromkeys(("q", "host", "type", "lang", "id", "start", "rows"), f"needle {attack}")
    response, body = get(shared_server, f"{path}?{urlencode(arguments)}")
    assert response.status in (200, 400, 404)
    assert response.headers["Set-Cookie"] is None
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    if response.headers["Content-Type"].startswith("text/html"):
        for harm in ("<script>", "<img", "<svg", "onmouseover='", 'href="javascript'):
            assert harm not in body


@pytest.mark.parametrize("attack", ATTACKS)
def test_document_parts_are_escaped_in_markup(shared_server, attack):
    fields = {"lang": f'en" {attack}', "date": attack, "type": attack, "host": attack}
    hit = shared_server.backend.search("plain", 0, 1).hits[0]
    evil = hit._replace(url=f"http://e.org/{attack}", id=attack, fields=fields,
                        title=hit.title._replace(text=attack, highlights=((0, 3),)))  # fmt: skip
    result = shared_server.backend.search("plain", 0, 1)._replace(hits=[evil], query=attack)
    facets = {name: [(attack, 1)] for name in ("host", "type", "lang")}
    templates, i18n, search_request = (
        shared_server.app.state.search.templates,
        Translations("en"),
        SearchRequest({"q": attack, "host": attack}),
    )
    cached = {"url": attack, "key": attack, "fetch_time": attack, "terms": [attack]}
    shown = [
        templates.render_results(i18n, search_request, result, facets, attack, (attack,), is_sortable=True),
        templates.render("explain.html", i18n, url=attack, query=attack, sentences=[attack], explanation=attack),
        templates.render("cached.html", i18n, query=attack, **cached),
        templates.render_message(i18n, attack, attack, attack),
    ]
    for body in shown:
        for harm in ("<script>", "<img", "<svg", "onmouseover='", 'href="javascript'):
            assert harm not in body


def test_claimed_content_type_is_not_sent_as_header(server):
    page = WebPage()
    page.content, page.content_type = b"<script>1</script>", "text/html\r\nSet-Cookie: a=b"
    with open_store(server.conf, WebPage).batch() as batch:
        batch.put("org.x:http/", page)
    with IndexWriters(server.conf) as writers:
        writers.write(doc("org.x:http/", url="http://x.org/", title="x"))
        writers.commit()
    with running(server.conf) as reopened:
        check_content_type(reopened)


def check_content_type(server):
    response, _ = get(server, "/cached/view?id=org.x:http/")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert response.headers["Set-Cookie"] is None


@pytest.mark.parametrize(
    "path",
    ["/../../../../etc/passwd", "/%2e%2e/serve.py", "/style.css/../serve.py", "/serve.py", "/..%2fserve.py",
     "//etc/passwd", "/style.css%00", "/cached?id=../../../../etc/passwd", "/cached/view?id=file:///etc/passwd",
     "/cached/view?id=%00", "/explain?q=x&id=../../etc/passwd"],
)  # fmt: skip
def test_path_traversal_is_rejected(shared_server, path):
    response, body = get(shared_server, path)
    assert response.status == 404
    assert "root:" not in body
    assert "import" not in body


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"/?q={'a' * (MAX_QUERY + 1)}", 400),
        (f"/search.json?q={quote('奥' * (MAX_QUERY + 1))}", 400),
        (f"/?{'&'.join(f'a{n}=1' for n in range(60))}", 400),
        (f"/?q={'a' * 70_000}", 414),
        (f"/?q={'a' * MAX_QUERY}", 200),
    ],
    ids=lambda value: str(value)[:20],
)
def test_request_size_is_limited(shared_server, target, status):
    response, _ = get(shared_server, target)
    assert response.status == status
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("line", [b"GET http://[/ HTTP/1.1", b"GET / HTTP/9.9.9", b"\x00\xff\x16\x03"])
def test_invalid_http_is_rejected(shared_server, line):
    with socket.create_connection(("127.0.0.1", shared_server.address[1]), timeout=30) as connection:
        connection.sendall(line + b"\r\nHost: localhost\r\n\r\n")
        assert b"Bad Request" in connection.recv(100)


@pytest.mark.parametrize(
    "query", ["(" * 1000, '"a" ' * 250, "a OR " * 199 + "a", "-" * 1000, "奥" * 1000, "a* " * 333, "(" * 300]
)
def test_complex_query_is_answered(indexed_server, query):
    response, body = ask(indexed_server, q=query)
    if indexed_server.conf.get("search.backend") == "solr" and response.status == 400:
        assert "more than 300 words and signs" in body
    else:
        assert response.status == 200
    assert ask(indexed_server, q="needle")[0].status == 200


def test_deep_paging_is_limited(indexed_server):
    response, body = ask(indexed_server, q="hay", start="999999999")
    assert (response.status, "Only 30 match" in body) == (200, True)
    _, body = get(indexed_server, "/search.json?q=hay&rows=100000&start=0")
    assert body.count('"score"') == 30
    far = indexed_server.backend.search("hay")._replace(total=10**9, start=100_000)
    shown = indexed_server.app.state.search.templates.render_results(
        Translations("en"), SearchRequest({"q": "hay"}), far, {}
    )
    assert 'rel="prev"' in shown
    assert 'rel="next"' not in shown


def test_header_size_is_limited(shared_server):
    many = {f"X-{number}": "a" for number in range(200)}
    assert get(shared_server, "/", **many)[0].status == 431
    assert get(shared_server, "/", **{"X-Long": "a" * 70_000})[0].status == 431


@pytest.mark.parametrize("host", ["[", "a[b", "evil.example", ""])
def test_foreign_host_header_is_rejected(shared_server, host):
    assert get(shared_server, "/", Host=host)[0].status == 421


POSTED = b"POST /api/v1/seeds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHo", b"HTTP/1.1 408"),
        (b"GET /?q=needle HTTP/1.1\r\nHost: localhost\r\n", b"HTTP/1.1 408"),
        (POSTED + b"Content-Length: 1000\r\n\r\n", b"HTTP/1.1 408"),
        (POSTED + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "a-line", "headers", "a-body", "a-chunk"],
)
def test_slowly_sending_client_is_disconnected(shared_server, monkeypatch, sent, response):
    monkeypatch.setattr(connection_limits, "READ_TIMEOUT", 0.5)
    with socket.create_connection(("127.0.0.1", shared_server.address[1]), timeout=30) as connection:
        connection.sendall(sent)
        ended = threading.Event()

        def drip():
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"X")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        if sent:
            dripping.start()
        try:
            received = all_of(connection)  # the whole response, never a reset
        finally:
            ended.set()
            if sent:
                dripping.join()
    assert received[: len(response)] == response
    assert bool(received) == bool(response)


def connected(server):
    return socket.create_connection(("127.0.0.1", server.address[1]), timeout=30)


def test_connections_over_limit_get_retry_later(server, monkeypatch):
    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS", 1)
    with connected(server) as busy:
        busy.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert busy.recv(100).startswith(b"HTTP/1.1 200")
        response, _ = get(server, "/style.css")
        assert (response.status, response.headers["Retry-After"]) == (503, "5")


def test_idle_connections_do_not_block_others(server, monkeypatch):
    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS", 8)
    silent = [connected(server) for _ in range(40)]
    for number, each in enumerate(silent):
        with suppress(OSError):
            each.sendall(b"GET / HTTP/1.1\r\nX: y"[: number % 24])
    with connected(server) as honest:
        honest.sendall(ASKED)
        assert honest.recv(100).startswith(b"HTTP/1.1 200")  # the connection may be kept
        assert all(get(server, "/style.css")[0].status == 200 for _ in range(20))
    for each in silent:
        each.close()


ASKED = b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n"


def all_of(connection):
    received = b""
    while part := connection.recv(1 << 16):
        received += part
    return received


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (ASKED, 1),
        (ASKED * 5, 5),
        (ASKED * 3 + b"GET / HT", 3),
        (b"GET / HT", 0),
        (b"", 0),
        (b"POST /api/v1/seeds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc", 0),
    ],
    ids=["one", "pipelined", "and-a-part", "a-part", "nothing", "half-a-body"],
)
def test_half_closed_client_is_answered_and_closed(shared_server, sent, answers, monkeypatch):
    monkeypatch.setattr(connection_limits, "READ_TIMEOUT", 3.0)
    with connected(shared_server) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        try:
            received = all_of(connection)
        except ConnectionResetError:
            received = b""
    assert received.count(b"HTTP/1.1 200 OK") == answers
    assert received.count(b"HTTP/1.1 ") == answers


def test_pipelined_responses_keep_order(shared_server):
    paths = [b"/search.json?q=hay&rows=1", b"/nothing", b"/style.css", b"/search.json?q=needle"] * 5
    with connected(shared_server) as connection:
        connection.sendall(b"".join(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths))
        connection.shutdown(socket.SHUT_WR)
        received = all_of(connection)
    kinds = [line.split(b";")[0].split(b": ")[1] for line in received.split(b"\r\n")
             if line.lower().startswith(b"content-type: ")]  # fmt: skip
    assert kinds == [b"application/json", b"text/html", b"text/css", b"application/json"] * 5


def test_event_stream_ends_on_half_close(server):
    streams = server.app.state.authorizer.event_streams
    with connected(server) as connection:
        connection.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert streams.open_count == 1
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: streams.open_count == 0)


def test_client_not_reading_is_disconnected(shared_server, monkeypatch):
    monkeypatch.setattr(connection_limits, "WRITE_TIMEOUT", 0.5)
    requests = b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000
    connection = socket.create_connection(("127.0.0.1", shared_server.address[1]), timeout=60)
    with connection, pytest.raises(ConnectionError):
        connection.sendall(requests)
    assert get(shared_server, "/style.css")[0].status == 200


def test_browser_disconnect_is_not_logged(shared_server, capfd):
    import struct

    for sent in (b"GET /?q=hay HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /?q=h"):
        connection = socket.create_connection(("127.0.0.1", shared_server.address[1]))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(sent)
        connection.close()
    assert get(shared_server, "/")[0].status == 200
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a/%E5%8C%97%E4%BA%AC/x", "http://a/北京/x"),
        ("http://a/caf%C3%A9", "http://a/café"),
        ("http://a/?x=%26%3C%20", "http://a/?x=%26%3C%20"),
        ("http://a/%E2%80%AEgpj.exe", "http://a/%E2%80%AEgpj.exe"),  # reverses the reading direction
        ("http://a/%D7%90", "http://a/%D7%90"),
        ("http://a/%FF%FE", "http://a/%FF%FE"),
        ("http://a/%C0%AE", "http://a/%C0%AE"),
    ],
)
def test_displayed_url_is_unescaped(url, shown):
    assert display_url(url) == shown


def test_link_target_is_original_url(shared_server):
    result = shared_server.backend.search("plain", 0, 1)
    found = result._replace(hits=[result.hits[0]._replace(url="http://a/%E5%8C%97")])
    made = shared_server.app.state.search.templates.render_results(
        Translations("en"), SearchRequest({"q": "q"}), found, {}
    )
    assert 'href="http://a/%E5%8C%97"' in made
    assert ">http://a/北<" in made
    assert reverse_url("http://a/%E5%8C%97") not in made
