"""Base of the small sites of tests: responses with a body, and no log of clients that are killed."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answering(BaseHTTPRequestHandler):
    """Answers on connections that stay; a subclass says in ``serve`` what."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.serve()

    def serve(self) -> None:
        """Answer a request."""
        raise NotImplementedError

    def answer(self, status: int, body: bytes = b"", kind: str = "text/html", location: str = "") -> None:
        """Send an answer; ``location``: where a redirect leads."""
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class QuietServer(ThreadingHTTPServer):
    """Says nothing of a client that hangs up, as one that is killed does."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]
