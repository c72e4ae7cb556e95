"""libcurl's messages for broken responses, which select the retry; one table contains them.

Each message is provoked in the installed libcurl, so that a release with other texts is noticed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pycurl
import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader.transport import FilteringEventLoop, failure_from_exception
from nutch2py.fetcher.protocols import lenient_http
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.curl_errors import RETRY_HINTS, get_retry_hint
from nutch2py.fetcher.protocols.curl_transfer import CurlTransfer
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, RetryHint
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.runtime.fd_budget import probe_socket_error
from nutch2py.url.java_url import parse_url
from tests.fetcher.conftest import Crawl
from tests.site.server import Reply, ScriptedSite

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PAGE = b"<html><body>hello</body></html>"
HTTP = {"http.agent.name": "probe", "http.filter.ipaddress.exclude": "", "http.useHttp11": "true"}


def settings(**more: str) -> HttpSettings:
    return HttpSettings.from_conf(Configuration({**HTTP, **{k.replace("_", "."): v for k, v in more.items()}}))


def fetched(url: str, http: HttpSettings) -> tuple[FetchFailure | None, int, str]:
    """Send one request as the handler does; return the failure and libcurl's code and message."""
    transfer, code, message = CurlTransfer(http), 0, ""
    parts = parse_url(url)
    transfer.prepare(url, parts.host, parts.port, 10_000, (), ())
    try:
        transfer.curl.perform()
    except pycurl.error as error:
        code, message = error.args
    return transfer.build_response(code, message).failure, code, message


BROKEN = {
    "no-colon": (b"nonsense\r\n\r\n", RetryHint.MALFORMED_HEADERS, "Header without colon"),
    "nul": (b"X: a\0b\r\n\r\n", RetryHint.MALFORMED_HEADERS, "NUL byte in header"),
    "carriage-return": (b"X: a\rb\r\n\r\n", RetryHint.MALFORMED_HEADERS, "Carriage return"),
    "encoding-unasked": (b"Transfer-Encoding: gzip\r\n\r\n", RetryHint.MALFORMED_HEADERS, ""),
    "encoding-unknown": (b"Transfer-Encoding: no\r\n\r\n", RetryHint.MALFORMED_HEADERS, ""),
    "encoding-after-chunked": (b"Transfer-Encoding: chunked, gzip\r\n\r\n", RetryHint.MALFORMED_HEADERS, ""),
    "length-no-number": (b"Content-Length: x\r\n\r\n", RetryHint.BAD_CONTENT_LENGTH, "Content-Length"),
    "length-negative": (b"Content-Length: -5\r\n\r\n", RetryHint.BAD_CONTENT_LENGTH, "Content-Length"),
    "lengths-differ": (
        b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n",
        RetryHint.BAD_CONTENT_LENGTH,
        "Content-Length",
    ),
    "closed-amid-headers": (b"X-Ha", RetryHint.MALFORMED_HEADERS, ""),
    "bad-chunk": (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", RetryHint.NONE, ""),
    "closed-amid-chunks": (b"Transfer-Encoding: chunked\r\n\r\n1f\r\nhello", RetryHint.NONE, ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_curl_malformed_header_errors_are_classified(site: ScriptedSite, name: str) -> None:
    head, cause, words = BROKEN[name]
    body = b"" if name.startswith(("closed", "bad-chunk")) else PAGE
    site.on("/p", Reply(raw=HEAD + head + body))
    failure, code, message = fetched(site.url("/p"), settings())
    assert failure is not None
    assert failure.retry_hint is cause, (code, message)
    assert words in message
    if words:
        assert (words, cause) in RETRY_HINTS[code]


@pytest.mark.parametrize("raw", [b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/3 200 OK\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b""])
def test_response_of_other_protocol_is_not_retried(site: ScriptedSite, raw: bytes) -> None:
    site.on("/p", Reply(raw=raw))
    failure, *_ = fetched(site.url("/p"), settings())
    assert failure is not None
    assert failure.retry_hint is RetryHint.NONE


def test_error_text_counts_only_with_its_code() -> None:
    assert (
        get_retry_hint(pycurl.E_RECV_ERROR, "Connection died, Content-Length, Header without colon") is RetryHint.NONE
    )
    assert get_retry_hint(pycurl.E_SEND_ERROR, "Header without colon") is RetryHint.NONE
    assert get_retry_hint(pycurl.E_COULDNT_RESOLVE_HOST, "Could not resolve host: Content-Length") is RetryHint.NONE


@contextmanager
def closing(connections: int) -> Iterator[str]:
    """Serve one response per connection and keep it alive; close at the second request without notice."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def serve(connection: socket.socket) -> None:
            with connection, connection.makefile("rb") as lines:
                for answers in (1, 0):
                    while lines.readline() not in (b"\r\n", b""):
                        pass
                    if answers:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        def accept() -> None:
            for _ in range(connections):
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


def test_dead_keepalive_connections_are_classified() -> None:
    """Twelve connections are kept; libcurl tries some of them and gives up."""
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, 20)

    def run(transfers: list[CurlTransfer]) -> list[tuple[Any, int, str]]:
        for transfer in transfers:
            multi.add_handle(transfer.curl)
        failures: list[tuple[Any, int, str]] = []
        running = len(transfers)
        while running:
            multi.select(0.05)
            _, running = multi.perform()
        waiting = 1
        while waiting:
            waiting, _, failed = multi.info_read()
            failures += failed
        for transfer in transfers:
            multi.remove_handle(transfer.curl)
        return failures

    http = settings()
    with closing(12) as url:
        parts = parse_url(url)

        def prepared() -> CurlTransfer:
            transfer = CurlTransfer(http)
            transfer.prepare(url, parts.host, parts.port, 10_000, (), ())
            return transfer

        assert run([prepared() for _ in range(12)]) == []
        last = prepared()
        ((_, code, message),) = run([last])
    failure = last.build_response(code, message).failure
    multi.close()
    assert failure is not None
    assert (code, failure.retry_hint) == (pycurl.E_SEND_ERROR, RetryHint.DEAD_CONNECTIONS), message


def test_refused_connection_is_detected_by_errno() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    failure, code, _ = fetched(f"http://127.0.0.1:{port}/refused", settings())
    assert failure is not None
    assert (failure.kind, code) == (FailureKind.REFUSED, pycurl.E_COULDNT_CONNECT)


@pytest.mark.parametrize("gate", ["", "10.0.0.0/8"])
def test_local_socket_error_is_not_blamed_on_server(gate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For sockets checked by the address filter, and for libcurl's own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        http = settings(http_filter_ipaddress_exclude=gate)
        fetched("http://127.0.0.1:9/", http)  # libcurl opens files of its own at the first time
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = os.dup(0)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            filled = []
            with suppress(OSError):
                while True:
                    filled.append(os.dup(0))
            transfer, code, message = CurlTransfer(http), 0, ""
            parts = parse_url(url)
            transfer.prepare(url, parts.host, parts.port, 10_000, (), ())
            try:
                transfer.curl.perform()
            except pycurl.error as error:
                code, message = error.args
            failure = transfer.build_response(code, message).failure
            lacks = probe_socket_error()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for descriptor in (highest, *filled):
                os.close(descriptor)
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.SOCKET, lacks)
    assert lacks == (
        "cannot create a socket (Too many open files): raise the limit of open files of this process (ulimit -n), or "
        "lower fetcher.threads.fetch"
    )
    assert failure_from_exception(OSError(errno.EMFILE, "x"), ()).kind == FailureKind.SOCKET


def test_words_in_url_do_not_affect_classification(site: ScriptedSite, crawl: Crawl) -> None:
    """A host, path or header with the text of a message is not mistaken for one."""
    http = settings()
    malformed = "http://excluded by Connection died refused ssl/"
    transfer = CurlTransfer(http)
    transfer.prepare(malformed, "excluded", 80, 10, (), ())
    failure = transfer.build_response(pycurl.E_URL_MALFORMAT, f"Connection died at {malformed}").failure
    assert failure is not None
    assert (failure.kind, failure.retry_hint) == (FailureKind.URL, RetryHint.NONE)
    assert failure_from_exception(OSError("address excluded by http.filter.ipaddress"), ()).kind == FailureKind.OTHER
    crawl("http://excluded.invalid/address excluded")
    assert crawl.report.counters["exception_unknown_host"] == 1


def test_address_filter_error_is_detected_by_type() -> None:
    gate = AddressExcludedError("127.0.0.1")
    wrapped = OSError("all failed")
    wrapped.__cause__ = ExceptionGroup("several", [OSError("a"), gate])
    assert failure_from_exception(wrapped, ()) == FetchFailure(FailureKind.ADDRESS_FILTER, str(gate))
    assert failure_from_exception(OSError("without a code"), [gate]) == FetchFailure(
        FailureKind.ADDRESS_FILTER, str(gate)
    )


def test_lenient_reader_separates_address_filter_from_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    async def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")  # as a firewall does

    monkeypatch.setattr(asyncio, "open_connection", denied)
    for excluded, kind in (("", FailureKind.CLOSED), ("127.0.0.1", FailureKind.ADDRESS_FILTER)):
        http = settings(http_filter_ipaddress_exclude=excluded)
        url = "http://127.0.0.1:9/"
        answer = asyncio.run(lenient_http.fetch_leniently(http, url, 100, ()))
        assert answer.failure is not None
        assert answer.failure.kind == kind


def test_address_filter_rejects_one_of_several_addresses_in_every_handler(crawl: Crawl) -> None:
    """aiohttp merges the errors of several addresses into one OSError without their types."""
    pytest.importorskip("aiohttp")
    values = {"fetcher.download.handler": "aiohttp", "http.hosts.file": "", "http.filter.ipaddress.exclude": "loopback"}
    for name, value in values.items():
        crawl.conf.set(name, value)
    crawl("http://localhost:9/")
    assert crawl.report.counters["exception_address_excluded"] == 1


def test_event_loop_raises_address_filter_error_type() -> None:
    loop = FilteringEventLoop()
    loop.address_filter = settings(http_filter_ipaddress_exclude="127.0.0.1").address_filter
    with socket.socket() as sock:
        sock.setblocking(False)
        with pytest.raises(AddressExcludedError, match=r"127\.0\.0\.1"):
            loop.run_until_complete(loop.sock_connect(sock, ("127.0.0.1", 9)))
    loop.close()
