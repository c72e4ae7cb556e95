"""The paths of the REST interface, with the document that describes them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.openapi import build_document, render_html
from nutch2py.rest.dispatch.operation import build_routes
from nutch2py.rest.endpoints import api_v1, nutch_api
from nutch2py.rest.endpoints.job_events import JobEventStream

OPERATIONS = [*api_v1.OPERATIONS, *nutch_api.OPERATIONS]
"""All operations: our own paths, and those of Nutch 2."""


def rest_routes(authorizer: Authorizer, shutdown_key: str) -> list[BaseRoute]:
    """Return the paths; ``shutdown_key`` is as :class:`JobEventStream` has it."""
    described, shown = build_document(OPERATIONS), render_html(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    async def docs(_: Request) -> Response:
        return HTMLResponse(shown)

    found: list[BaseRoute] = [*build_routes(OPERATIONS, authorizer)]
    found.append(Route("/api/events", JobEventStream(authorizer, shutdown_key).respond))
    return [*found, Route("/api/openapi.json", openapi), Route("/api/docs", docs)]
