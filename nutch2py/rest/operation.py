"""Operation: one method of one path: who may ask, with which words, and what is answered.

Routes and the OpenAPI document are made of the same operations, so that neither can say what the other does not do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nutch2py.errors import IndexingError, InputError, LockedError, NutchError, StoreError
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.office import Office
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.tokens import Caller, Role

_LOG = logging.getLogger("nutch2py.rest")


@dataclass(frozen=True)
class Call:
    """A request as an operation gets it. ``path``: parts of the path; ``query``, ``body``: of the operation's types."""

    office: Office
    caller: Caller
    path: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True)
class Operation:
    """``handler`` runs in a thread. ``answer``: what it returns, None for no body, str for plain text.

    ``changes``: whether it changes anything, which is written down, and asked by no other site's page. ``form``: the
    body may come as an HTML form, too.
    """

    method: str
    path: str
    role: Role
    summary: str
    handler: Callable[[Call], Any]
    answer: Any = None
    body: Any = None
    query: type[msgspec.Struct] | None = None
    status: HTTPStatus = HTTPStatus.OK
    changes: bool = False
    media: str = "application/json"
    form: bool = False

    def routes(self, gatekeeper: Gatekeeper) -> list[Route]:
        """Return what answers; Nutch 2's paths may end in a slash, as clients of it write them."""

        async def endpoint(request: Request) -> Response:
            return await self._answered(gatekeeper, request)

        paths = [self.path] if self.path.startswith("/api") else [self.path, f"{self.path}/"]
        return [Route(path, endpoint, methods=[self.method]) for path in paths]

    async def _answered(self, gatekeeper: Gatekeeper, request: Request) -> Response:
        office, begun, who = gatekeeper.office, time.monotonic(), ""
        what = ""
        try:
            caller = gatekeeper.admitted(request, self.role, self.changes)
            who = caller.name
            body = await gatekeeper.body(request) if self.body is not None else b""
            call = Call(office, caller, dict(request.path_params), self._query(request), self._body(request, body))
            result = await gatekeeper.threads.run(self.handler, call)
            what = str(getattr(result, "id", ""))
            answer = self._response(result)
        except (NutchError, msgspec.MsgspecError) as error:
            answer, what = refused(error), str(error)
        method, status = request.method, answer.status_code
        office.metrics.count(method, self.path, status, time.monotonic() - begun)
        _LOG.info("%s %s %d %s", method, request.url.path, status, who)
        if self.changes or status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS):
            address = request.client.host if request.client else ""
            await gatekeeper.threads.run(office.audit.note, who, address, method, request.url.path, status, what)
        return answer

    def _query(self, request: Request) -> Any:
        if self.query is None:
            return None
        given = dict(request.query_params)
        numbers = {field.encode_name for field in msgspec.structs.fields(self.query)}
        unknown = sorted(given.keys() - numbers)
        if unknown:
            raise InputError(f"there is no parameter {unknown[0]!r:.50}")
        return msgspec.convert(given, self.query, strict=False)

    def _body(self, request: Request, body: bytes) -> Any:
        if self.body is None:
            return None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.form and kind == "application/x-www-form-urlencoded":
            return msgspec.convert(dict(parse_qsl(body.decode("utf-8", "replace"))), self.body)
        if kind != "application/json":
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is to be JSON: Content-Type: application/json")
        return msgspec.json.decode(body, type=self.body)

    def _response(self, result: Any) -> Response:
        if self.answer is None:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        data = result.encode("utf-8", "replace") if self.media != "application/json" else msgspec.json.encode(result)
        return Response(data, self.status, {"Cache-Control": "no-store"}, media_type=self.media)


class Problem(msgspec.Struct):
    """Why a request was not done."""

    error: str
    status: int


def refused(error: Exception) -> Response:
    """Return the answer to a request that was not done."""
    status, headers = HTTPStatus.INTERNAL_SERVER_ERROR, {}
    if isinstance(error, Refusal):
        status, headers = error.status, error.headers
    elif isinstance(error, LockedError):
        status = HTTPStatus.CONFLICT
    elif isinstance(error, StoreError | IndexingError):
        status, headers = HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "10"}
    elif isinstance(error, NutchError | msgspec.MsgspecError):
        status = HTTPStatus.BAD_REQUEST
    body = msgspec.json.encode(Problem(str(error).encode("utf-8", "replace").decode(), int(status)))
    return Response(body, status, headers, media_type="application/json")
