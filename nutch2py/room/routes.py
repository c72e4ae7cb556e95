"""The control room over HTTP: pages that need no script, and a stream of events for those that have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError, StoreError
from nutch2py.pictures.picture import style
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.tokens import Role
from nutch2py.room import deeds
from nutch2py.room.answers import HEADERS, Look, answer, refused
from nutch2py.room.checkup import Checkup
from nutch2py.room.looks import Looks, NotThereError
from nutch2py.room.templates import sheet
from nutch2py.room.watch import Watch

_BEAT = 15.0
"""Seconds after which a stream of events says that it lives, so that what lies between keeps it open."""
_LONGEST = 10_000
"""Characters of an argument, such as a URL."""


def routes(gatekeeper: Gatekeeper) -> list[BaseRoute]:
    """Return the paths of the control room, all below ``/crawl``; who reads them needs the role ``read``."""
    reader = partial(CrawlReader, gatekeeper.office.conf)
    looks, watch = Looks(reader, gatekeeper.office.children), Watch(reader)
    pages: dict[str, Callable[[dict[str, str]], Look]] = {
        "/crawl": looks.crawl,
        "/crawl/jobs": looks.jobs,
        "/crawl/job": looks.job,
        "/crawl/rounds": looks.rounds,
        "/crawl/hosts": looks.hosts,
        "/crawl/host": looks.host,
        "/crawl/page": looks.page,
        "/crawl/doctor": Checkup(gatekeeper.office.conf),
    }
    found: list[BaseRoute] = [Route(path, _endpoint(gatekeeper, path, look)) for path, look in pages.items()]
    return [
        *found,
        Route("/crawl/room.css", partial(_file, style() + sheet("room.css"), "text/css; charset=utf-8")),
        Route("/crawl/room.js", partial(_file, sheet("room.js"), "text/javascript; charset=utf-8")),
        *deeds.routes(gatekeeper),
        Route("/crawl/events", partial(_events, gatekeeper, watch)),
    ]


def _endpoint(
    gatekeeper: Gatekeeper, path: str, look: Callable[[dict[str, str]], Look]
) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            needed = Role.RUN if path == "/crawl/doctor" else Role.READ  # it tells of the machine, and costs more
            caller = gatekeeper.admitted(request, needed, changes=False)
        except Refusal as error:
            return refused(path, error)
        arguments = {name: value[: _LONGEST + 1] for name, value in request.query_params.items()}
        if any(len(value) > _LONGEST for value in arguments.values()):
            raise InputError(f"An argument has at most {_LONGEST:,} characters.")
        may_run = caller.role >= Role.RUN
        try:
            return answer(path, look(arguments), may_run=may_run)
        except NotThereError as error:
            return answer(path, Look("message.html", "Not there", {"text": str(error)}), HTTPStatus.NOT_FOUND)
        except StoreError:
            try:
                gatekeeper.office.crawl_conf("", "default")
            except Refusal:
                return answer(path, Look("none.html", "No crawl yet", {}), HTTPStatus.NOT_FOUND, may_run)
            raise

    return endpoint


async def _file(text: str, kind: str, _: Request) -> Response:
    return Response(text, headers={**HEADERS, "Content-Type": kind, "Cache-Control": "max-age=60"})


async def _events(gatekeeper: Gatekeeper, watch: Watch, request: Request) -> Response:
    try:
        gatekeeper.admitted(request, Role.READ, changes=False)
        return gatekeeper.streams.answer(_stream(watch, request), HEADERS)
    except Refusal as error:
        return refused("/crawl/events", error)


async def _stream(watch: Watch, request: Request) -> AsyncIterator[str]:
    """Yield an event each time that the log has changed, until who asked hangs up or the server ends."""
    stopping: Any = getattr(request.state, "stopping", None) or asyncio.Event()
    yield "retry: 3000\n\n"
    seen = await to_thread.run_sync(watch.sign)
    quiet = 0.0
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), watch.PERIOD)
        except TimeoutError:
            quiet += watch.PERIOD
        now = await to_thread.run_sync(watch.sign)
        if now != seen:
            seen, quiet = now, 0.0
            yield f"event: change\ndata: {now}\n\n"
        elif quiet >= _BEAT:
            quiet = 0.0
            yield ": still here\n\n"
