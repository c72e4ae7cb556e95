"""The application: what the server answers, composed of the rooms that have pages or paths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError, InputError, NutchError
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.office import Office
from nutch2py.rest.operation import refused
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.routes import routes
from nutch2py.rest.tokens import Role
from nutch2py.room.routes import routes as room
from nutch2py.server.guard import Guard
from nutch2py.server.protocol import STOPPING
from nutch2py.server.searching import SearchPages


def application(conf: Configuration, local: bool = True) -> Starlette:
    """Return the application over the crawl of ``conf``; ``local``: it is served on loopback alone."""
    gatekeeper = Gatekeeper(Office(conf, local))
    search = SearchPages(conf, gatekeeper.may_read, lambda request: gatekeeper.admitted(request, Role.SEARCH, False))
    made = Starlette(
        routes=[*search.routes(), *room(gatekeeper), *routes(gatekeeper, STOPPING)],
        middleware=[Middleware(Guard, local=local)],
        exception_handlers={
            HTTPException: _refused,
            Refusal: lambda _, error: refused(error),
            InputError: _not_understood,
            IndexingError: _no_index,
            NutchError: _failed,
            ClientDisconnect: _gone,
        },
        lifespan=_lifespan,
    )
    made.router.redirect_slashes = False
    made.state.search, made.state.gatekeeper = search, gatekeeper
    return made


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[dict[str, object]]:
    clock = app.state.gatekeeper.office.clock
    clock.begin()
    try:
        yield {STOPPING: asyncio.Event()}
    finally:
        await asyncio.to_thread(clock.end)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if request.url.path.startswith("/api/"):
        return refused(Refusal(status, status.phrase, error.headers))
    known = status == HTTPStatus.NOT_FOUND
    answer = _said(request, status, "no_such" if known else "no_answer", "no_page" if known else f"{status.phrase}.")
    answer.headers.update(error.headers or {})
    return answer


def _not_understood(request: Request, error: Exception) -> Response:
    return _said(request, HTTPStatus.BAD_REQUEST, "not_understood", str(error))


def _no_index(request: Request, error: Exception) -> Response:
    return _said(request, HTTPStatus.SERVICE_UNAVAILABLE, "no_answer", str(error))


def _failed(request: Request, error: Exception) -> Response:
    return _said(request, HTTPStatus.INTERNAL_SERVER_ERROR, "no_answer", str(error))


def _said(request: Request, status: int, title: str, text: str) -> Response:
    search: SearchPages = request.app.state.search
    return search.said(request, status, title, text)


def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=HTTPStatus.BAD_REQUEST)
