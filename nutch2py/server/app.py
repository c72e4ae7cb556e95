"""ASGI application: the search page, the control room and the REST API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from nutch2py.conf.configuration import Configuration
from nutch2py.control_room.page_routes import control_room_routes
from nutch2py.errors import IndexingError, InputError, NutchError, StoreError
from nutch2py.mcp_server import require_mcp
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.api_routes import rest_routes
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import error_response
from nutch2py.rest.http_error import HttpError, describe_publicly
from nutch2py.server.connection_limits import SHUTDOWN_KEY
from nutch2py.server.key_directory_view import key_directory_routes
from nutch2py.server.request_guard import RequestGuardMiddleware
from nutch2py.server.search_views import JSON_PATHS, SearchViews

if TYPE_CHECKING:
    from nutch2py.mcp_server.http_endpoint import McpEndpoint


def create_app(conf: Configuration, is_local: bool = True) -> Starlette:
    """Return the application for the crawl of ``conf``. ``is_local``: the server listens on loopback only."""
    context = RestContext(conf, is_local)
    authorizer = Authorizer(context)
    search = SearchViews(
        conf,
        lambda: context.searchers,
        authorizer.can_read,
        lambda request: authorizer.authorize(request, Role.SEARCH, False),
        context.search_logger,
    )
    mcp_endpoint = _create_mcp_endpoint(authorizer)
    app = Starlette(
        routes=[
            *search.routes(),
            *control_room_routes(authorizer, SHUTDOWN_KEY),
            *rest_routes(authorizer, SHUTDOWN_KEY),
            *key_directory_routes(conf, authorizer),
            *([] if mcp_endpoint is None else [mcp_endpoint.route()]),
        ],
        middleware=[Middleware(RequestGuardMiddleware, is_local=is_local)],
        exception_handlers={
            HTTPException: _http_error_page,
            HttpError: lambda _, error: error_response(error),
            InputError: _bad_request_page,
            IndexingError: _unavailable_page,
            StoreError: _unavailable_page,
            NutchError: _server_error_page,
            ClientDisconnect: _client_disconnected,
        },
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False
    app.state.search, app.state.authorizer, app.state.mcp_endpoint = search, authorizer, mcp_endpoint
    return app


def _create_mcp_endpoint(authorizer: Authorizer) -> McpEndpoint | None:
    """Return the endpoint of ``serve.mcp``, None when it is off."""
    if not authorizer.context.conf.get_bool("serve.mcp", False):
        return None
    require_mcp("serve.mcp")
    from nutch2py.mcp_server.http_endpoint import McpEndpoint

    return McpEndpoint(authorizer)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[dict[str, object]]:
    context = app.state.authorizer.context
    context.scheduler.start()
    mcp_endpoint = app.state.mcp_endpoint
    try:
        async with nullcontext() if mcp_endpoint is None else mcp_endpoint.run():
            yield {SHUTDOWN_KEY: asyncio.Event()}
    finally:
        await asyncio.to_thread(context.scheduler.stop)
        await asyncio.to_thread(context.close_searchers)
        if context.search_logger is not None:
            await asyncio.to_thread(context.search_logger.close)
        await asyncio.to_thread(context.audit_log.close)


def _http_error_page(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    if request.url.path.startswith("/api/"):
        return error_response(HttpError(status, status.phrase, error.headers))
    is_missing = status == HTTPStatus.NOT_FOUND
    response = _message_page(
        request, status, "no_such" if is_missing else "no_answer", "no_page" if is_missing else f"{status.phrase}."
    )
    response.headers.update(error.headers or {})
    return response


def _bad_request_page(request: Request, error: Exception) -> Response:
    return _error_page(request, HTTPStatus.BAD_REQUEST, "not_understood", error)


def _unavailable_page(request: Request, error: Exception) -> Response:
    response = _error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, "no_answer", error)
    response.headers["Retry-After"] = "10"
    return response


def _server_error_page(request: Request, error: Exception) -> Response:
    return _error_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, "no_answer", error)


def _error_page(request: Request, status: HTTPStatus, title: str, error: Exception) -> Response:
    """Return the page or, for paths that return JSON, the problem details of a failed search."""
    if not isinstance(error, NutchError):
        raise error
    if request.url.path in JSON_PATHS:
        return error_response(HttpError(status, describe_publicly(error)))
    is_operator_page = request.url.path.startswith("/crawl")  # authorized before anything can fail
    return _message_page(request, status, title, str(error) if is_operator_page else describe_publicly(error))


def _message_page(request: Request, status: int, title: str, text: str) -> Response:
    search: SearchViews = request.app.state.search
    return search.message_page(request, status, title, text)


def _client_disconnected(_: Request, __: Exception) -> Response:
    return Response(status_code=HTTPStatus.BAD_REQUEST)
