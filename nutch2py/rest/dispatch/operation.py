"""Operation: one method of one path with its role, parameters, body and response.

Routes and the OpenAPI document are built from the same operations, so that they always agree.
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
from nutch2py.rest.dispatch.request_body import read_body
from nutch2py.rest.http_error import HttpError, describe_publicly, storage_error
from nutch2py.rest.job_control.job_requests import Identifier, PropertyName
from nutch2py.support.formatting import valid_utf8

PATH_PARAM_TYPES: Mapping[str, object] = {"id": Identifier, "name": PropertyName}
"""Types of path parameters."""
PROBLEM_MEDIA_TYPE = "application/problem+json"
_MAX_FORM_FIELDS = 20
_LOG = logging.getLogger("nutch2py.rest")


@dataclass(frozen=True)
class ApiCall:
    """A validated request. ``query`` and ``body`` have the types that the operation declares."""

    context: RestContext
    caller: Caller
    path_params: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    Attributes:
        handler: runs in a thread.
        response_type: type of its result, None for no body, str for plain text.
        modifies: whether it changes anything; then it is audited and rejects cross-site requests.
        accepts_form: the body may also be an HTML form.
        reads_store: the handler may wait for a store; such requests have threads of their own.
        allows_cors: pages of other sites may read the response (``search.cors.origins``).
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
    reads_store: bool = False

    async def respond(self, authorizer: Authorizer, request: Request) -> Response:
        """Respond to a request. Changes and unauthorized requests are recorded in the audit log."""
        context, started = authorizer.context, time.monotonic()
        caller_name = detail = ""
        try:
            caller = authorizer.authorize(request, self.role, self.modifies)
            caller_name = caller.name
            body = await read_body(request, context.conf) if self.body_type is not None else b""
            call = ApiCall(
                context,
                caller,
                _validate_path_params(request),
                self._parse_query(request),
                self._parse_body(request, body),
            )
            threads = authorizer.store_thread_limit if self.reads_store else authorizer.thread_limit
            result = await threads.run(self.handler, call)
            detail = str(getattr(result, "id", ""))
            response = self._build_response(result)
        except (NutchError, msgspec.MsgspecError, OSError) as error:
            response, detail = error_response(error, is_public=self.role <= Role.SEARCH), str(error)
        if self.allows_cors:
            response.headers.update(authorizer.cors_headers(request))
        method, status = request.method, response.status_code
        context.metrics.count_request(method, self.path, status, time.monotonic() - started)
        _LOG.info("%s %s %d %s", method, quote(request.url.path), status, caller_name)  # a path may contain line breaks
        if self.modifies or status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS):
            address = request.client.host if request.client else ""
            await authorizer.thread_limit.run(
                context.audit_log.record, caller_name, address, method, request.url.path, status, detail
            )
        return response

    def _parse_query(self, request: Request) -> object:
        if self.query_type is None:
            return None
        params = dict(request.query_params)
        names = {field.encode_name for field in msgspec.structs.fields(self.query_type)}
        unknown = sorted(params.keys() - names)
        if unknown:
            raise InputError(f"unknown parameter {unknown[0]!r:.50}")
        return msgspec.convert(params, self.query_type, strict=False)

    def _parse_body(self, request: Request, body: bytes) -> object:
        if self.body_type is None:
            return None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.accepts_form and media_type == "application/x-www-form-urlencoded":
            return msgspec.convert(_parse_form(body), self.body_type)
        if media_type != "application/json":
            raise HttpError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be JSON: send Content-Type: application/json"
            )
        try:
            return msgspec.json.decode(body, type=self.body_type)
        except RecursionError:
            raise InputError("the body is nested too deeply") from None

    def _build_response(self, result: Any) -> Response:
        if self.response_type is None:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        data = (
            result.encode("utf-8", "replace") if self.media_type != "application/json" else msgspec.json.encode(result)
        )
        return Response(data, self.status, {"Cache-Control": "no-store"}, media_type=self.media_type)


def build_routes(operations: Iterable[Operation], authorizer: Authorizer) -> list[Route]:
    """Return the routes of operations. Nutch 2's paths may end in a slash, as its clients write them.

    A path is a single route for all its methods, so that status 405 lists the allowed ones.
    """
    by_path: dict[str, dict[str, Operation]] = {}
    for one in operations:
        by_path.setdefault(one.path, {})[one.method] = one
    routes = []
    for path, by_method in by_path.items():
        spellings = [path] if path.startswith("/api") else [path, f"{path}/"]
        for each in spellings:
            route = Route(each, _endpoint(by_method, authorizer), methods=[*by_method])
            if route.methods is not None and "GET" in by_method and by_method["GET"].modifies:
                route.methods.discard("HEAD")  # HEAD must have no effect
            if route.methods is not None and any(one.allows_cors for one in by_method.values()):
                route.methods.add("OPTIONS")
            routes.append(route)
    return routes


def _endpoint(by_method: Mapping[str, Operation], authorizer: Authorizer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.method == "OPTIONS":
            return authorizer.preflight_response(
                request, sorted({*by_method, *(["HEAD"] if "GET" in by_method else [])})
            )
        operation = by_method.get(request.method) or by_method["GET"]  # for HEAD
        return await operation.respond(authorizer, request)

    return endpoint


def _validate_path_params(request: Request) -> dict[str, str]:
    """Return the path parameters; raise InputError for an invalid one."""
    for name, value in request.path_params.items():
        try:
            msgspec.convert(value, PATH_PARAM_TYPES[name])
        except msgspec.ValidationError:
            raise InputError(f"invalid {name} {value!r:.100}: use letters, digits and _ . -") from None
    return dict(request.path_params)


def _parse_form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS))
    except ValueError:
        raise InputError(f"a form has at most {_MAX_FORM_FIELDS} fields") from None


class ProblemDetails(msgspec.Struct):
    """Problem details of an error (RFC 9457). ``detail`` and ``error`` are the same text."""

    title: str
    status: int
    detail: str
    error: str


def error_response(error: Exception, is_public: bool = False) -> Response:
    """Return the response to a failed or rejected request. ``is_public``: without details of the server."""
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
    text = describe_publicly(error) if is_public and isinstance(error, NutchError) else str(error)
    message = valid_utf8(text)
    body = msgspec.json.encode(ProblemDetails(status.phrase, int(status), message, message))
    return Response(body, status, headers, media_type=PROBLEM_MEDIA_TYPE)
