"""The paths of the REST interface, with the document that describes them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.rest.api import OPERATIONS
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.openapi import document, page


def routes(gatekeeper: Gatekeeper) -> list[BaseRoute]:
    """Return the paths."""
    described, shown = document(OPERATIONS), page(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    async def docs(_: Request) -> Response:
        return HTMLResponse(shown)

    found: list[BaseRoute] = [one.route(gatekeeper) for one in OPERATIONS]
    return [*found, Route("/api/openapi.json", openapi), Route("/api/docs", docs)]
