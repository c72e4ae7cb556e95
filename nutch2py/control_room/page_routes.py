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

from nutch2py.charts.chart import read_stylesheet
from nutch2py.control_room import actions
from nutch2py.control_room.change_watcher import ChangeWatcher
from nutch2py.control_room.page_responses import PAGE_HEADERS, TemplatePage, render_error_page, render_page
from nutch2py.control_room.templates import read_asset
from nutch2py.control_room.views import ControlRoomViews, DoctorView, NotFoundError
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError, StoreError
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.http_error import HttpError

_HEARTBEAT_SECONDS = 15.0
"""Seconds after which a stream of events says that it lives, so that what lies between keeps it open."""
_MAX_ARGUMENT_LENGTH = 10_000
"""Characters of an argument, such as a URL."""


def control_room_routes(authorizer: Authorizer) -> list[BaseRoute]:
    """Return the paths of the control room, all below ``/crawl``; who reads them needs the role ``read``."""
    reader = partial(CrawlReader, authorizer.context.conf)
    looks, watch = ControlRoomViews(reader, authorizer.context.jobs), ChangeWatcher(reader)
    pages: dict[str, Callable[[dict[str, str]], TemplatePage]] = {
        "/crawl": looks.crawl,
        "/crawl/jobs": looks.jobs,
        "/crawl/job": looks.job,
        "/crawl/rounds": looks.rounds,
        "/crawl/hosts": looks.hosts,
        "/crawl/host": looks.host,
        "/crawl/page": looks.page,
        "/crawl/doctor": DoctorView(authorizer.context.conf),
    }
    found: list[BaseRoute] = [Route(path, _endpoint(authorizer, path, look)) for path, look in pages.items()]
    return [
        *found,
        Route(
            "/crawl/room.css",
            partial(_serve_asset, read_stylesheet() + read_asset("room.css"), "text/css; charset=utf-8"),
        ),
        Route("/crawl/room.js", partial(_serve_asset, read_asset("room.js"), "text/javascript; charset=utf-8")),
        *actions.action_routes(authorizer),
        Route("/crawl/events", partial(_events, authorizer, watch)),
    ]


def _endpoint(
    gatekeeper: Authorizer, path: str, look: Callable[[dict[str, str]], TemplatePage]
) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            needed = Role.RUN if path == "/crawl/doctor" else Role.READ  # it tells of the machine, and costs more
            caller = gatekeeper.authorize(request, needed, modifies=False)
        except HttpError as error:
            return render_error_page(path, error)
        arguments = {name: value[: _MAX_ARGUMENT_LENGTH + 1] for name, value in request.query_params.items()}
        if any(len(value) > _MAX_ARGUMENT_LENGTH for value in arguments.values()):
            raise InputError(f"An argument has at most {_MAX_ARGUMENT_LENGTH:,} characters.")
        may_run = caller.role >= Role.RUN
        try:
            return render_page(path, look(arguments), can_run=may_run)
        except NotFoundError as error:
            return render_page(
                path, TemplatePage("message.html", "Not there", {"text": str(error)}), HTTPStatus.NOT_FOUND
            )
        except StoreError:
            try:
                gatekeeper.context.existing_crawl_configuration("", "default")
            except HttpError:
                return render_page(path, TemplatePage("none.html", "No crawl yet", {}), HTTPStatus.NOT_FOUND, may_run)
            raise

    return endpoint


async def _serve_asset(text: str, kind: str, _: Request) -> Response:
    return Response(text, headers={**PAGE_HEADERS, "Content-Type": kind, "Cache-Control": "max-age=60"})


async def _events(gatekeeper: Authorizer, watch: ChangeWatcher, request: Request) -> Response:
    try:
        gatekeeper.authorize(request, Role.READ, modifies=False)
        return gatekeeper.event_streams.open_response(_stream(watch, request), PAGE_HEADERS)
    except HttpError as error:
        return render_error_page("/crawl/events", error)


async def _stream(watch: ChangeWatcher, request: Request) -> AsyncIterator[str]:
    """Yield an event each time that the log has changed, until who asked hangs up or the server ends."""
    stopping: Any = getattr(request.state, "stopping", None) or asyncio.Event()
    yield "retry: 3000\n\n"
    seen = await to_thread.run_sync(watch.fingerprint)
    quiet = 0.0
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), watch.POLL_SECONDS)
        except TimeoutError:
            quiet += watch.POLL_SECONDS
        now = await to_thread.run_sync(watch.fingerprint)
        if now != seen:
            seen, quiet = now, 0.0
            yield f"event: change\ndata: {now}\n\n"
        elif quiet >= _HEARTBEAT_SECONDS:
            quiet = 0.0
            yield ": still here\n\n"
