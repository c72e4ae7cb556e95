"""The hosts that the pages of docs/ use in examples, behind a proxy on loopback.

``www.example.org`` and others have a few pages each, over http and https. An installed command reaches them when
``http.proxy.host`` and ``http.proxy.port`` name the proxy, so a page can show public addresses and a test can run it.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from tests.site.certificate import self_signed

_SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://www.example.org/hidden.html</loc></url></urlset>"""


def _page(title: str, *paragraphs: str, lang: str = "en") -> str:
    body = "".join(f"<p>{each}</p>" for each in paragraphs)
    return f'<html lang="{lang}"><meta charset="utf-8"><title>{title}</title><main><h1>{title}</h1>{body}</main></html>'


_LIGHT = "A lighthouse warns ships of rocks, and it guides them home through the night and the fog."
_KEEPER = "The keeper of a lighthouse trimmed the wick and wound the clockwork, every night of the year."
PAGES: Mapping[str, Mapping[str, str]] = {
    "www.example.org": {
        "/": _page("Lighthouses", _LIGHT, '<a href="/keeper.html">its keeper</a> <a href="/private/a.html">plans</a>'),
        "/keeper.html": _page("The keeper", _KEEPER, '<a href="/">all lighthouses</a>'),
        "/private/a.html": _page("Plans", "Not for robots."),
        "/hidden.html": _page("Fog signals", "In fog a horn replaces the light. No page links here."),
        "/sitemap.xml": _SITEMAP,
        "/robots.txt": "User-agent: *\nDisallow: /private/\nSitemap: https://www.example.org/sitemap.xml\n",
    },
    "zh.example.org": {
        "/": _page("軟體", "這個軟體會抓取網頁。天文學家在博物館看星星。", lang="zh-TW"),
    },
    "app.example.org": {
        "/": '<!doctype html><title>App</title><div id="root"></div><script>document.getElementById("root").innerHTML ='
        ' "<h1>Tide tables</h1><p>" + "High water at noon. ".repeat(20) + "</p>"</script>',
    },
    "members.example.org": {"/": _page("Members", "Only members read this page about tides.")},
}
"""Path and text of every page, by host."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing of a client that closes its connection in the middle."""
        if not isinstance(sys.exc_info()[1], ConnectionError | ssl.SSLError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    context: ssl.SSLContext
    host = ""

    def do_CONNECT(self) -> None:
        self.host = self.path.partition(":")[0]
        self.send_response(200)
        self.end_headers()
        for file in (self.rfile, self.wfile):
            file.close()
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        host = self.host or target.hostname or ""
        text = PAGES.get(host, {}).get(target.path or "/")
        status = 200 if text is not None else 404
        if (
            host == "members.example.org"
            and target.path != "/robots.txt"
            and "session=s3cret" not in self.headers.get("Cookie", "")
        ):
            status, text = 403, _page("Log in", "This page is for members.")
        data = (text or _page("Not found", "There is no such page.")).encode()
        kind = {"txt": "text/plain", "xml": "application/xml"}.get(target.path.rpartition(".")[2], "text/html")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def example_hosts(folder: Path) -> Iterator[int]:
    """Serve the hosts behind a proxy; yield its port. The key of the certificate is written into a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(folder, "www.example.org"))
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"context": context}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
