"""``nutch2py serve``: the search page over HTTP, on loopback unless told otherwise."""

from __future__ import annotations

import io
import ipaddress
import socket
import sys
import threading
import time
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, InputError, NutchError
from nutch2py.reporting import warn
from nutch2py.search.search_backends import FACETS, Backend, backend
from nutch2py.server import pages
from nutch2py.server.cached import HEADERS as SANDBOX
from nutch2py.server.cached import cached_page

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Sent with every page of ours. There is no script and no cookie."""

_MAX_ROWS = 100
_FEW = 3
"""Fewer hits than that, and another spelling is offered."""
_CONNECTIONS = 128
"""At one time; more get 503."""
_READING = 10.0  # seconds for all of a request to arrive, or for the next one on a connection
_WRITING = 30.0  # seconds for the answer to be taken
_HTML = "text/html; charset=utf-8"
_FILES = {"/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml"}
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class SearchServer(ThreadingHTTPServer):
    """Answers from one index and one table."""

    daemon_threads = True

    def __init__(self, conf: Configuration, address: tuple[str, int]) -> None:
        self.conf = conf
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            super().__init__(address, SearchHandler)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address[0]} port {address[1]}: {error.strerror}: choose another with serve.host, "
                "serve.port"
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or say that there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.settimeout(1.0)
            request.sendall(_BUSY)
        except OSError:
            pass  # it is gone, which is as well
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show what went wrong, unless it is that a browser hung up."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @cached_property
    def backend(self) -> Backend:
        """The index."""
        return backend(self.conf)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, (bytes, bytearray)) else str(host)
        return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"

    @cached_property
    def local(self) -> bool:
        """Whether it listens on loopback alone."""
        return _is_loopback(str(self.server_address[0]))


class _Reader(io.RawIOBase):
    """What a browser sends. All of a request must have come by a time: one byte now and then keeps no thread busy."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.ends = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class SearchHandler(BaseHTTPRequestHandler):
    """One request. Paths: ``/``, ``/search.json``, ``/explain``, ``/cached``, ``/cached/view``, and two files."""

    server: SearchServer
    protocol_version = "HTTP/1.1"
    server_version = "nutch2py"
    sys_version = ""

    def setup(self) -> None:
        """Read from the connection in our own way."""
        super().setup()
        self.rfile.close()
        self._reader = _Reader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """Give the next request its time."""
        self._reader.ends = time.monotonic() + _READING
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer a GET."""
        try:
            if self.server.local and not _is_loopback(_host_name(self.headers.get("Host", ""))):
                # a page of another site whose name was made to point here must not read the index
                self._say(HTTPStatus.MISDIRECTED_REQUEST, "Not here", "This server answers on loopback.")
            else:
                self._answer()
        except InputError as error:
            self._say(HTTPStatus.BAD_REQUEST, "Not understood", str(error))
        except IndexingError as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, "No answer", str(error))
        except NutchError as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, "No answer", str(error))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self) -> None:
        try:
            target = urlsplit(self.path)
            arguments = parse_qs(target.query, max_num_fields=50)
        except ValueError:
            raise InputError("The address of this page is not one of ours.") from None
        self.arguments = {name: values[0] for name, values in arguments.items()}
        if len(self.arguments.get("q", "")) > pages.MAX_QUERY:
            raise InputError(f"A query has at most {pages.MAX_QUERY:,} characters.")
        answer = {
            "/": self._results,
            "/search.json": self._json,
            "/explain": self._explain,
            "/cached": self._cached,
            "/cached/view": self._view,
            **dict.fromkeys(_FILES, self._file),
        }.get(target.path)
        if answer is None:
            self._say(HTTPStatus.NOT_FOUND, "Not found", "There is no such page.")
        else:
            answer()

    do_HEAD = do_GET  # noqa: N815

    def _asked(self) -> tuple[str, dict[str, str], int, int]:
        filters = {name: self.arguments[name][:300] for name in FACETS if self.arguments.get(name)}
        start, rows = self._number("start", 0), self._number("rows", pages.ROWS)
        return self.arguments.get("q", "").strip(), filters, max(start, 0), min(max(rows, 0), _MAX_ROWS)

    def _number(self, name: str, default: int) -> int:
        text = self.arguments.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else default

    def _results(self) -> None:
        query, filters, start, _ = self._asked()
        index = self.server.backend
        if not query:
            self._send(HTTPStatus.OK, pages.home(index.count()))
            return
        result = index.search(query, filters, start, pages.ROWS)
        facets = (
            index.facets(query, filters) if result.total else {name: [(value, 0)] for name, value in filters.items()}
        )
        meant = index.corrected(query) if result.total < _FEW and not start else ""
        self._send(HTTPStatus.OK, pages.results(result, facets, filters, meant if meant != query else ""))

    def _json(self) -> None:
        import orjson

        query, filters, start, rows = self._asked()
        result = self.server.backend.search(query, filters, start, rows)
        facets = {name: dict(values) for name, values in self.server.backend.facets(query, filters).items()}
        body = orjson.dumps({**result.to_dict(), "filters": filters, "facets": facets})
        self._send(HTTPStatus.OK, body, "application/json")

    def _explain(self) -> None:
        query, key = self.arguments.get("q", ""), self.arguments.get("id", "")
        told = self.server.backend.explain(query, key)
        if told is None:
            self._say(HTTPStatus.NOT_FOUND, "Not found", "The query does not find this document.", query)
        else:
            self._send(HTTPStatus.OK, pages.explanation(self._url_of(key), query, told))

    def _cached(self) -> None:
        key, query = self.arguments.get("id", ""), self.arguments.get("q", "")
        refusal = cached_page(self.server.conf, key).refusal
        if refusal:
            self._say(HTTPStatus.NOT_FOUND, "No cached page", refusal, query)
        else:
            self._send(HTTPStatus.OK, pages.cached_frame(self._url_of(key), key, query))

    def _view(self) -> None:
        page = cached_page(self.server.conf, self.arguments.get("id", ""))
        if page.refusal:
            self._send(HTTPStatus.NOT_FOUND, page.refusal, "text/plain; charset=utf-8", SANDBOX)
        else:
            self._send(HTTPStatus.OK, page.text, f"{page.content_type}; charset=utf-8", SANDBOX)

    def _url_of(self, key: str) -> str:
        fields = self.server.backend.get(key) or {}
        url = fields.get("url", key)
        return str(url[0] if isinstance(url, list) and url else url)

    def _file(self) -> None:
        path = urlsplit(self.path).path
        self._send(HTTPStatus.OK, Path(__file__).with_name(path[1:]).read_bytes(), _FILES[path])

    def _say(self, status: HTTPStatus, title: str, text: str, query: str = "") -> None:
        self._send(status, pages.message(title, text, query))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is not HTTP, too long, or another method; with the headers of all our pages."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, f"{status.phrase}\n", "text/plain; charset=utf-8", {**HEADERS, "Connection": "close"})

    def _send(
        self, status: HTTPStatus, body: str | bytes, content_type: str = _HTML, headers: dict[str, str] = HEADERS
    ) -> None:
        data = body.encode("utf-8", "replace") if isinstance(body, str) else body
        self.connection.settimeout(_WRITING)
        self.send_response(status)
        for name, value in {**headers, "Content-Type": content_type, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: queries are people's own."""


def _host_name(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def serve(conf: Configuration) -> int:
    """Serve until Ctrl-C."""
    port = conf.get_int("serve.port", 8080)
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"serve.port is {port}: write a number from 0 to 65535")
    with SearchServer(conf, (conf.get_trimmed("serve.host", "127.0.0.1"), port)) as server:
        if not server.local:
            warn("serve.host is not loopback: whoever reaches this address can search and see cached pages")
        print(f"serve: {server.url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("serve: stopped")
    return 0
