"""Framing of requests that servers could read in different ways, and slow clients, which harm no other."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from nutch2py.server import connection_limits
from nutch2py.server.http_server import HttpServer
from tests.processes import wait_until
from tests.rest.conftest import running, settings

POST = b"POST /api/v1/seeds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SECOND = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def framing_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """Yield a server, shared by the tests of this module."""
    folder: Path = tmp_path_factory.mktemp("framing_server")
    with running(settings(folder, rest_requests_per_second="0")) as made:
        yield made


def exchange(server: HttpServer, sent: bytes) -> bytes:
    """Send bytes, and return all that the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.address[1]), timeout=30) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(1 << 16):
            received += part
        return received


AMBIGUOUS = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "case of length and chunks": POST + b"content-LENGTH: 5\r\ntransfer-ENCODING: Chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}",
    "two equal lengths": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "empty length": POST + b"Content-Length: \r\n\r\n",
    "folded header": POST + b"Content-Length: 2\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n{}",
    "folded length": POST + b"Content-Length:\r\n 2\r\n\r\n{}",
    "fold before headers": b"GET /health HTTP/1.1\r\n X: a\r\nHost: localhost\r\n\r\n",
    "line feed after request line": b"GET /health HTTP/1.1\nHost: localhost\r\n\r\n",
    "line feed in headers": b"GET /health HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n",
    "line feed at the end": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\n",
    "only line feeds": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "carriage return in a value": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
    "space before colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "tab before colon": POST + b"Content-Length\t: 2\r\n\r\n{}",
    "vertical tab": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two headers of coding": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "identity": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "HTTP/1.0 with chunks": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_request_is_rejected_and_connection_closed(framing_server: HttpServer, sent: bytes) -> None:
    received = exchange(framing_server, sent + SECOND)
    assert received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert received.count(b"HTTP/1.1 ") == 1  # what follows is not read as a request


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_pipelined_request_is_rejected(framing_server: HttpServer, sent: bytes) -> None:
    early = POST + b"Content-Length: 1200000\r\n\r\n"  # is answered with 413 before its body has arrived
    received = exchange(framing_server, early + b"x" * 1_200_000 + SECOND + sent + SECOND)
    statuses = re.findall(rb"HTTP/1\.1 (\d{3}) ", received)
    assert statuses[:2] == [b"413", b"200"]
    assert statuses[2:] in ([b"400"], [b"501"])


CHUNKS = {
    "extension": (b"2;a=b\r\n{}\r\n0\r\n\r\n", 201),
    "long extension": (b"2;" + b"a" * 5000 + b"\r\n{}\r\n0;b\r\n\r\n", 201),
    "trailer": (b"2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n", 201),
    "line feed after size": (b"2\n{}\r\n0\r\n\r\n", 400),
    "line feed in extension": (b"2;a\n{}\r\n0\r\n\r\n", 400),
    "wrong end": (b"2\r\n{}XX0\r\n\r\n", 400),
    "hexadecimal prefix": (b"0x2\r\n{}\r\n0\r\n\r\n", 400),
    "negative size": (b"-2\r\n{}\r\n0\r\n\r\n", 400),
}


@pytest.mark.parametrize(("body", "status"), CHUNKS.values(), ids=CHUNKS.keys())
def test_chunks_are_read_strictly(framing_server: HttpServer, body: bytes, status: int) -> None:
    last = SECOND.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    received = exchange(framing_server, POST + b"Transfer-Encoding: chunked\r\n\r\n" + body + last)
    assert received.startswith(b"HTTP/1.1 %d " % status)
    assert received.count(b"HTTP/1.1 200 ") == (status == 201)


@pytest.mark.parametrize(("sent", "status"), [(SECOND, b"200"), (SECOND.replace(b"\r\nHost", b"\nHost"), b"400")])
def test_head_in_single_bytes_is_checked(framing_server: HttpServer, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", framing_server.address[1]), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in sent:
            connection.sendall(bytes([byte]))
        assert connection.recv(12) == b"HTTP/1.1 " + status


def honest_statuses(server: HttpServer, number: int) -> list[int]:
    statuses = []
    for _ in range(number):
        connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=30)
        connection.request("POST", "/api/v1/seeds", b'{"id": "x"}', {"Content-Type": "application/json"})
        statuses.append(connection.getresponse().status)
        connection.close()
    return statuses


SLOW = {
    "body": POST + b"Content-Length: 1000\r\n\r\n{",
    "chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n{",
    "head": POST + b"Content-Len",
    "nothing": b"",
    "second request": SECOND + POST + b"Content-Length: 1000\r\n\r\n{",
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW.keys())
def test_slow_clients_harm_no_other_and_are_not_reset(framing_server: HttpServer, sent: bytes) -> None:
    wait_until(lambda: not framing_server.uvicorn_server.server_state.connections)  # of other tests
    with ExitStack() as stack:
        slow = []
        for _ in range(150):
            connection = socket.create_connection(("127.0.0.1", framing_server.address[1]), timeout=30)
            slow.append(stack.enter_context(connection))
            connection.sendall(sent)
            if sent.startswith(SECOND):  # before the response, the server would wait, and not the client
                assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert honest_statuses(framing_server, 8) == [201] * 8
        closed = []
        for connection in slow:
            connection.setblocking(False)
            received = b""
            with suppress(BlockingIOError):
                while part := connection.recv(1 << 16):  # raises ConnectionResetError after a reset
                    received += part
                closed.append(received)
        assert len(closed) >= 150 + 8 - connection_limits.MAX_CONNECTIONS - 8
        assert all(b"HTTP/1.1 503 " in each and b"Retry-After: 5" in each for each in closed)


def test_busy_server_rejects_without_reset(framing_server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections wait for a response: new ones get status 503, although their body is unread."""
    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS", 1)
    wait_until(lambda: not framing_server.uvicorn_server.server_state.connections)  # of other tests
    with socket.create_connection(("127.0.0.1", framing_server.address[1]), timeout=30) as busy:
        busy.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert busy.recv(100).startswith(b"HTTP/1.1 200")
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", framing_server.address[1]), timeout=30) as connection:
                with suppress(BrokenPipeError):
                    connection.sendall(POST + b"Content-Length: 900000\r\n\r\n" + b"x" * 900_000)
                assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
