"""What every request passes first, whatever it asks for: limits, the name of the host, headers of the answer."""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nutch2py.server.http_protocol import MAX_HEAD_BYTES, SECURITY_HEADERS

MAX_HEADERS = 100
_HOST_HEADER = re.compile(r"(?:\[([^\[\]/?#@]*)\]|([^\[\]:/?#@]*))(?::\d*)?")


class SecurityMiddleware:
    """Around an application. ``is_local``: it is served on loopback, and answers to no other name."""

    def __init__(self, app: ASGIApp, is_local: bool) -> None:
        self.app = app
        self.is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._reject(scope) or self.app
        await answer(scope, receive, with_headers)

    def _reject(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further."""
        headers = Headers(scope=scope)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEAD_BYTES:
            return _plain_response(HTTPStatus.REQUEST_URI_TOO_LONG)
        if (
            len(headers.raw) > MAX_HEADERS
            or sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEAD_BYTES
        ):
            return _plain_response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if not scope["path"].startswith("/"):  # a proxy's form, with the host before the path
            try:
                scope["path"] = urlsplit(scope["path"]).path or "/"
            except ValueError:
                return _plain_response(HTTPStatus.BAD_REQUEST)
        if self.is_local and not is_loopback(_parse_host(headers.get("host", ""))):
            # a page of another site whose name was made to point here must not read the index
            return PlainTextResponse("This server answers on loopback.\n", HTTPStatus.MISDIRECTED_REQUEST)
        return None


def _plain_response(status: HTTPStatus) -> Response:
    return PlainTextResponse(f"{status.phrase}\n", status, {"Connection": "close"})


def _parse_host(header: str) -> str:
    """Return the name in a header ``Host``; "" for what is no name and port: what is read leniently hides names."""
    found = _HOST_HEADER.fullmatch(header)
    return (found[1] or found[2]).lower() if found else ""


def is_loopback(name: str) -> bool:
    """Tell whether a name or an address is this machine's own."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
