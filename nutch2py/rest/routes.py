"""The paths of the REST interface, with the document that describes them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nutch2py.rest import api, nutch2
from nutch2py.rest.events import Events
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.openapi import document, page
from nutch2py.rest.operation import paths

OPERATIONS = [*api.OPERATIONS, *nutch2.OPERATIONS]
"""All operations: our own paths, and those of Nutch 2."""


def routes(gatekeeper: Gatekeeper, stopping: str) -> list[BaseRoute]:
    """Return the paths; ``stopping`` is as :class:`Events` has it."""
    described, shown = document(OPERATIONS), page(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    async def docs(_: Request) -> Response:
        return HTMLResponse(shown)

    found: list[BaseRoute] = [*paths(OPERATIONS, gatekeeper)]
    found.append(Route("/api/events", Events(gatekeeper, stopping).answer))
    return [*found, Route("/api/openapi.json", openapi), Route("/api/docs", docs)]
