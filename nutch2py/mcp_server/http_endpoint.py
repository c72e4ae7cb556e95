"""Streamable HTTP endpoint of the server: ``POST /mcp``, behind its tokens, rate limits and origin checks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from nutch2py.mcp_server.crawl_tools import CrawlTools
from nutch2py.mcp_server.protocol_server import ProtocolHandlers, create_server
from nutch2py.rest.access.tokens import Caller, Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import error_response
from nutch2py.rest.http_error import HttpError
from nutch2py.support.invariants import not_none

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MCP_PATH = "/mcp"
_CALLER_KEY = "nutch2py.mcp.caller"
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="nutch2py"'}


class McpEndpoint:
    """ASGI application of the path. It keeps no sessions: each request has its token and its answer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._tools = CrawlTools(authorizer)
        self._manager: StreamableHTTPSessionManager | None = None

    def route(self) -> Route:
        """Return the route: other methods get status 405, so that no client holds a connection open with GET."""
        return Route(MCP_PATH, self, methods=["POST"])

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within the block."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        handlers = ProtocolHandlers(self._tools, _find_caller, is_operator=False)
        self._manager = StreamableHTTPSessionManager(
            create_server(handlers),
            json_response=True,
            stateless=True,
            # RequestGuardMiddleware and Authorizer.check_change do it, for names behind a proxy, too
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=self._authorizer.context.conf.get_int("rest.body.max.bytes", 1 << 20),
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None
            await anyio.to_thread.run_sync(self._tools.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authorize a request and answer it."""
        request = Request(scope, receive)
        try:
            caller = self._authorize(request)
        except HttpError as error:
            address = request.client.host if request.client else ""
            await self._authorizer.thread_limit.run(
                self._authorizer.context.audit_log.record,
                "", address, request.method, MCP_PATH, int(error.status), str(error),
            )  # fmt: skip
            await error_response(error)(scope, receive, send)
            return
        if self._manager is None:
            stopping = HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping", {"Retry-After": "10"})
            await error_response(stopping)(scope, receive, send)
            return
        scope[_CALLER_KEY] = caller
        await self._manager.handle_request(scope, receive, send)

    def _authorize(self, request: Request) -> Caller:
        """Return the client; raise HttpError for a wrong token, and for a request that may come from another site."""
        context = self._authorizer.context
        caller = self._authorizer.authorize(request, Role.SEARCH, modifies=True)
        if caller.role > Role.ANONYMOUS:
            return caller
        authorization = request.headers.get("authorization", "")
        if authorization or (context.tokens.path is None and context.is_local):
            known = context.authenticate(authorization)
            if known is None:
                raise HttpError(HTTPStatus.UNAUTHORIZED, "unknown token (docs/rest.md)", _CHALLENGE)
            return known
        return caller


def _find_caller(request: ServerRequestContext[Any, Any]) -> tuple[Caller, str]:
    http_request: Request = not_none(request.request, "HTTP request")
    client = http_request.client
    return http_request.scope[_CALLER_KEY], client.host if client else ""
