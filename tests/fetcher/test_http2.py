"""HTTP/2 against a real server: by libcurl, by httpx, and unsupported combinations."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import h2.config
import h2.connection
import h2.events
import pytest

from nutch2py.errors import ConfigurationError
from nutch2py.records.webpage import CrawlStatus
from tests.fetcher.conftest import Crawl
from tests.site.certificate import self_signed
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>" + b"words " * 20_000 + b"</body></html>"  # more than the first window of a stream


class Http2Server:
    """Serves one page by HTTP/2 over TLS, which it offers by ALPN. ``seen``: host and path of each request."""

    def __init__(self, certificate: str) -> None:
        self.seen: list[tuple[str, str]] = []
        self.port = 0
        self._certificate = certificate
        self._ready = threading.Event()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.port}{path}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        waiting: dict[int, bytes] = {}
        with contextlib.suppress(ConnectionError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        fields = {bytes(name): bytes(value) for name, value in event.headers or ()}
                        path = fields[b":path"].decode()
                        self.seen.append((fields[b":authority"].decode().partition(":")[0], path))
                        status = "404" if path == "/robots.txt" else "200"
                        headers = [(":status", status), ("content-type", "text/html"), ("x-h2", "yes")]
                        connection.send_headers(event.stream_id or 0, headers)
                        waiting[event.stream_id or 0] = b"none" if status == "404" else PAGE
                for stream, body in list(waiting.items()):
                    room = min(connection.local_flow_control_window(stream), connection.max_outbound_frame_size)
                    while body and room > 0:
                        connection.send_data(stream, body[:room], end_stream=len(body) <= room)
                        body = body[room:]
                        room = min(connection.local_flow_control_window(stream), connection.max_outbound_frame_size)
                    waiting[stream] = body
                    if not body:
                        del waiting[stream]
                writer.write(connection.data_to_send())
        writer.close()


@pytest.fixture
def http2(tmp_path: Path) -> Iterator[Http2Server]:
    with Http2Server(self_signed(tmp_path, "a.test")) as server:
        yield server


def test_curl_uses_http2(http2: Http2Server, crawl: Crawl) -> None:
    urls = [http2.url(f"/{number}") for number in range(5)]
    crawl(*urls, http_useHttp2="true", threads=1)
    assert {(page.status, page.content) for page in crawl.pages.values()} == {(CrawlStatus.FETCHED, PAGE)}
    assert crawl.pages[urls[0]].headers["x-h2"] == "yes"  # names are in lower case there (RFC 9113, 8.2)
    assert crawl.pages[urls[0]].headers["Content-Type"] == "text/html"
    assert [path for _, path in http2.seen] == ["/robots.txt", *(f"/{number}" for number in range(5))]


def test_http2_respects_limits_and_address_filter(http2: Http2Server, crawl: Crawl) -> None:
    page = crawl(http2.url("/p"), http_useHttp2="true", http_content_limit="1000")
    assert (page.status, page.content) == (CrawlStatus.FETCHED, PAGE[:1000])
    http2.seen.clear()
    crawl(http2.url("/q"), http_useHttp2="true", http_filter_ipaddress_exclude="loopback")
    assert crawl.report.counters["exception_address_excluded"] == 1
    assert http2.seen == []


def test_server_without_http2_is_fetched_by_http1(crawl: Crawl, tmp_path: Path) -> None:
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as site:
        site.on("/p", Reply(body=b"words"))
        page = crawl(site.url("/p"), http_useHttp2="true")
        assert (page.status, page.content) == (CrawlStatus.FETCHED, b"words")


@pytest.mark.parametrize("way", ["true"], indirect=True)
def test_httpx_uses_http2(http2: Http2Server, crawl: Crawl) -> None:
    settings = {"fetcher_download_handler": "httpx", "fetcher_scrapy_settings": "HTTPX_HTTP2_ENABLED=true"}
    page = crawl(http2.url("/p"), **settings)
    assert (page.status, page.content, page.headers["X-H2"]) == (CrawlStatus.FETCHED, PAGE, "yes")
    page = crawl(http2.url("/long"), **settings, http_content_limit="1000")
    assert (page.status, page.content) == (CrawlStatus.FETCHED, PAGE[:1000])


@pytest.mark.parametrize("way", ["true"], indirect=True)
@pytest.mark.parametrize("handler", ["http2.H2DownloadHandler", "http11.HTTP11DownloadHandler"])
def test_handler_requiring_twisted_reactor_is_rejected(http2: Http2Server, crawl: Crawl, handler: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Twisted reactor.*http\.useHttp2"):
        crawl(http2.url("/p"), fetcher_download_handler=f"scrapy.core.downloader.handlers.{handler}")
    assert http2.seen == []
