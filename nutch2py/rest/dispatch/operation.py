"""Operation: one method of one path: who may ask, with which words, and what is answered.

Routes and the OpenAPI document are made of the same operations, so that neither can say what the other does not do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nutch2py.errors import IndexingError, InputError, LockedError, NutchError, StoreError
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.http_error import HttpError, storage_error
from nutch2py.rest.job_control.job_requests import Identifier, PropertyName

PATH_PARAM_TYPES: Mapping[str, Any] = {"id": Identifier, "name": PropertyName}
"""What the parts of paths can be."""
PROBLEM_MEDIA_TYPE = "application/problem+json"
_MAX_FORM_FIELDS = 20  # of a form
_LOG = logging.getLogger("nutch2py.rest")


@dataclass(frozen=True)
class ApiCall:
    """A request as an operation gets it. ``path_params``: parts of the path; ``query``, ``body``: of the operation's types."""

    context: RestContext
    caller: Caller
    path_params: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True)
class Operation:
    """``handler`` runs in a thread. ``response_type``: what it returns, None for no body, str for plain text.

    ``modifies``: whether it changes anything, which is written down, and asked by no other site's page. ``accepts_form``: the
    body may come as an HTML form, too. ``allows_cors``: pages of other sites may read the answer (``search.cors.origins``).
    """

    method: str
    path: str
    role: Role
    summary: str
    handler: Callable[[ApiCall], Any]
    response_type: Any = None
    body_type: Any = None
    query_type: type[msgspec.Struct] | None = None
    status: HTTPStatus = HTTPStatus.OK
    modifies: bool = False
    media_type: str = "application/json"
    accepts_form: bool = False
    allows_cors: bool = False

    async def respond(self, gatekeeper: Authorizer, request: Request) -> Response:
        """Return the answer to a request; what was refused for who asked, or changes anything, is written down."""
        office, begun, who = gatekeeper.context, time.monotonic(), ""
        what = ""
        try:
            caller = gatekeeper.authorize(request, self.role, self.modifies)
            who = caller.name
            body = await gatekeeper.read_body(request) if self.body_type is not None else b""
            call = ApiCall(
                office,
                caller,
                _validate_path_params(request),
                self._parse_query(request),
                self._parse_body(request, body),
            )
            result = await gatekeeper.thread_limit.run(self.handler, call)
            what = str(getattr(result, "id", ""))
            answer = self._build_response(result)
        except (NutchError, msgspec.MsgspecError, OSError) as error:
            answer, what = error_response(error), str(error)
        if self.allows_cors:
            answer.headers.update(gatekeeper.cors_headers(request))
        method, status = request.method, answer.status_code
        office.metrics.count_request(method, self.path, status, time.monotonic() - begun)
        _LOG.info("%s %s %d %s", method, quote(request.url.path), status, who)  # a path may hold line ends
        if self.modifies or status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS):
            address = request.client.host if request.client else ""
            await gatekeeper.thread_limit.run(
                office.audit_log.record, who, address, method, request.url.path, status, what
            )
        return answer

    def _parse_query(self, request: Request) -> Any:
        if self.query_type is None:
            return None
        given = dict(request.query_params)
        numbers = {field.encode_name for field in msgspec.structs.fields(self.query_type)}
        unknown = sorted(given.keys() - numbers)
        if unknown:
            raise InputError(f"there is no parameter {unknown[0]!r:.50}")
        return msgspec.convert(given, self.query_type, strict=False)

    def _parse_body(self, request: Request, body: bytes) -> Any:
        if self.body_type is None:
            return None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.accepts_form and kind == "application/x-www-form-urlencoded":
            return msgspec.convert(_parse_form(body), self.body_type)
        if kind != "application/json":
            raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is to be JSON: Content-Type: application/json")
        try:
            return msgspec.json.decode(body, type=self.body_type)
        except RecursionError:
            raise InputError("the body is nested too deep") from None

    def _build_response(self, result: Any) -> Response:
        if self.response_type is None:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        data = (
            result.encode("utf-8", "replace") if self.media_type != "application/json" else msgspec.json.encode(result)
        )
        return Response(data, self.status, {"Cache-Control": "no-store"}, media_type=self.media_type)


def build_routes(operations: Iterable[Operation], authorizer: Authorizer) -> list[Route]:
    """Return what answers; Nutch 2's paths may end in a slash, as clients of it write them.

    A path is one route, whatever its methods: so a method that it has not is told which it has.
    """
    by_path: dict[str, dict[str, Operation]] = {}
    for one in operations:
        by_path.setdefault(one.path, {})[one.method] = one
    found = []
    for path, by_method in by_path.items():
        written = [path] if path.startswith("/api") else [path, f"{path}/"]
        for each in written:
            route = Route(each, _endpoint(by_method, authorizer), methods=[*by_method])
            if route.methods is not None and "GET" in by_method and by_method["GET"].modifies:
                route.methods.discard("HEAD")  # which asks for nothing to be done
            if route.methods is not None and any(one.allows_cors for one in by_method.values()):
                route.methods.add("OPTIONS")
            found.append(route)
    return found


def _endpoint(by_method: Mapping[str, Operation], gatekeeper: Authorizer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.method == "OPTIONS":
            return gatekeeper.preflight_response(
                request, sorted({*by_method, *(["HEAD"] if "GET" in by_method else [])})
            )
        one = by_method.get(request.method) or by_method["GET"]  # for HEAD
        return await one.respond(gatekeeper, request)

    return endpoint


def _validate_path_params(request: Request) -> dict[str, str]:
    """Return the parts of a path; InputError for what can be none."""
    for name, value in request.path_params.items():
        try:
            msgspec.convert(value, PATH_PARAM_TYPES[name])
        except msgspec.ValidationError:
            raise InputError(
                f"{value!r:.100} is no {name}: it has other signs than letters, digits and _ . -"
            ) from None
    return dict(request.path_params)


def _parse_form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS))
    except ValueError:
        raise InputError(f"a form has at most {_MAX_FORM_FIELDS} fields") from None


class ProblemDetails(msgspec.Struct):
    """Why a request was not done, as RFC 9457 has it. ``detail`` and ``error`` are the same."""

    title: str
    status: int
    detail: str
    error: str


def error_response(error: Exception) -> Response:
    """Return the answer to a request that was not done."""
    status, headers = HTTPStatus.INTERNAL_SERVER_ERROR, {}
    if isinstance(error, OSError):
        error = storage_error(error)
    if isinstance(error, HttpError):
        status, headers = error.status, error.headers
    elif isinstance(error, LockedError):
        status = HTTPStatus.CONFLICT
    elif isinstance(error, StoreError | IndexingError):
        status, headers = HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "10"}
    elif isinstance(error, NutchError | msgspec.MsgspecError):
        status = HTTPStatus.BAD_REQUEST
    told = str(error).encode("utf-8", "replace").decode()
    body = msgspec.json.encode(ProblemDetails(status.phrase, int(status), told, told))
    return Response(body, status, headers, media_type=PROBLEM_MEDIA_TYPE)
