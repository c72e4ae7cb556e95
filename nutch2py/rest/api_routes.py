"""Routes of the REST API, with the OpenAPI document that describes them."""

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
"""All operations: those of ``/api/v1``, and those of Nutch 2."""


def rest_routes(authorizer: Authorizer, shutdown_key: str) -> list[BaseRoute]:
    """Return the routes. ``shutdown_key``: see :class:`JobEventStream`."""
    document, page = build_document(OPERATIONS), render_html(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return JSONResponse(document)

    async def docs(_: Request) -> Response:
        return HTMLResponse(page)

    return [
        *build_routes(OPERATIONS, authorizer),
        Route("/api/events", JobEventStream(authorizer, shutdown_key).respond),
        Route("/api/openapi.json", openapi),
        Route("/api/docs", docs),
    ]
