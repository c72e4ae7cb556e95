"""ASGI middleware of all requests: Host check, size limits of the request head, and security headers of responses."""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nutch2py.server.connection_limits import MAX_HEAD_BYTES, SECURITY_HEADERS

MAX_HEADERS = 100
_HOST_HEADER = re.compile(r"(?:\[([^\[\]/?#@]*)\]|([^\[\]:/?#@]*))(?::\d*)?")


class RequestGuardMiddleware:
    """Rejects oversized request heads and foreign ``Host`` headers, and adds security headers to every response.

    ``is_local``: on loopback, only loopback names are accepted in the header ``Host``.
    """

    def __init__(self, app: ASGIApp, is_local: bool) -> None:
        self.app = app
        self.is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        handler = self._reject(scope) or self.app
        await handler(scope, receive, with_headers)

    def _reject(self, scope: Scope) -> Response | None:
        """Return the response to a rejected request, None for an accepted one."""
        headers = Headers(scope=scope)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEAD_BYTES:
            return _plain_response(HTTPStatus.REQUEST_URI_TOO_LONG)
        if (
            len(headers.raw) > MAX_HEADERS
            or sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEAD_BYTES
        ):
            return _plain_response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if not scope["path"].startswith("/"):  # absolute form, as sent to proxies
            try:
                scope["path"] = urlsplit(scope["path"]).path or "/"
            except ValueError:
                return _plain_response(HTTPStatus.BAD_REQUEST)
        if self.is_local and not is_loopback(_parse_host(headers.get("host", ""))):
            # DNS rebinding: a foreign name that resolves to loopback must not reach the index
            return PlainTextResponse("This server accepts loopback names only.\n", HTTPStatus.MISDIRECTED_REQUEST)
        return None


def _plain_response(status: HTTPStatus) -> Response:
    return PlainTextResponse(f"{status.phrase}\n", status, {"Connection": "close"})


def _parse_host(header: str) -> str:
    """Return the name in a header ``Host``; "" for an invalid header. Lenient parsing could be abused."""
    match = _HOST_HEADER.fullmatch(header)
    return (match[1] or match[2]).lower() if match else ""


def is_loopback(name: str) -> bool:
    """Return whether a name or an address is loopback."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
