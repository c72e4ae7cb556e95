"""A session of requests in which the body of a response has a limit of bytes and of time, whatever the server sends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from nutch2py.conf.redaction import redact_address
from nutch2py.errors import IndexingError


def open_bounded_session(server_name: str, max_bytes: int, max_seconds: float) -> requests.Session:
    """Return a session for a search server.

    Args:
        server_name: Name of the server, for messages.
        max_bytes: Bytes of a body, decoded. A longer one raises IndexingError while it is read.
        max_seconds: Seconds from the headers to the end of a body. A longer one raises ``requests.ReadTimeout``.
    """
    session = requests.Session()
    adapter = _BoundedAdapter(server_name, max_bytes, max_seconds)
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


class _BoundedAdapter(HTTPAdapter):
    def __init__(self, server_name: str, max_bytes: int, max_seconds: float) -> None:
        super().__init__()
        self._server_name, self._max_bytes, self._max_seconds = server_name, max_bytes, max_seconds

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Return the response, whose body is not read yet."""
        response = super().build_response(req, resp)
        address = redact_address((req.url or "").partition("?")[0])
        response.raw = _BoundedBody(
            resp, f"{self._server_name} at {address}", self._max_bytes, time.monotonic() + self._max_seconds
        )
        return response


class _BoundedBody:
    """The body of a response of urllib3. ``deadline``: monotonic time in seconds."""

    def __init__(self, body: Any, sender: str, max_bytes: int, deadline: float) -> None:
        self._body, self._sender, self._max_bytes, self._deadline = body, sender, max_bytes, deadline

    def stream(self, amt: int, decode_content: bool | None = None) -> Iterator[bytes]:
        """Yield the decoded body as it arrives, at most ``amt`` bytes at once; close the connection at a limit."""
        size = 0
        while piece := self._body.read1(amt, decode_content=decode_content):
            size += len(piece)
            if size > self._max_bytes:
                self._body.close()
                raise IndexingError(
                    f"{self._sender} sends a response of more than {self._max_bytes:,} bytes "
                    "(index.response.max.bytes): request fewer or smaller documents, or raise the limit"
                )
            if time.monotonic() > self._deadline:
                self._body.close()
                raise requests.ReadTimeout(f"{self._sender} did not finish its response in time")
            yield piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)
