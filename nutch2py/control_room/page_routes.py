"""HTTP routes of the control room: pages that work without scripts, and an event stream for live updates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nutch2py.charts.chart import read_stylesheet
from nutch2py.control_room import form_actions
from nutch2py.control_room.crawl_fingerprint import crawl_fingerprint
from nutch2py.control_room.page_responses import PAGE_HEADERS, TemplatePage, render_error_page, render_page
from nutch2py.control_room.templates import read_asset
from nutch2py.control_room.views import ControlRoomViews, DoctorView, NotFoundError, SearchQualityView
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError, StoreError
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.sse import SharedPoller, event_stream
from nutch2py.rest.http_error import HttpError

_POLL_SECONDS = 1.0
_RECONNECT = b"retry: 3000\n\n"
"""Milliseconds after which browsers reconnect."""
_MAX_ARGUMENT_LENGTH = 10_000
"""Characters of an argument, such as a URL."""


def control_room_routes(authorizer: Authorizer, shutdown_key: str) -> list[BaseRoute]:
    """Return the routes below ``/crawl``; they require the role ``read``.

    ``shutdown_key``: key of the event in the ASGI state that is set at shutdown.
    """
    context = authorizer.context

    def open_reader() -> CrawlReader:
        return CrawlReader.for_server(context.reading_configuration(""))

    views = ControlRoomViews(open_reader, context.jobs, context.conf.get_trimmed("storage.crawl.id"))
    read_fingerprint = partial(crawl_fingerprint, open_reader, context.jobs)
    poller = SharedPoller(read_fingerprint, _POLL_SECONDS, authorizer.store_thread_limit)
    pages: dict[str, Callable[[dict[str, str]], TemplatePage]] = {
        "/crawl": views.crawl,
        "/crawl/activity": views.activity,
        "/crawl/jobs": views.jobs,
        "/crawl/job": views.job,
        "/crawl/rounds": views.rounds,
        "/crawl/hosts": views.hosts,
        "/crawl/host": views.host,
        "/crawl/page": views.page,
        "/crawl/search-quality": SearchQualityView(authorizer.context.conf),
        "/crawl/doctor": DoctorView(authorizer.context.conf),
    }
    css, script = read_stylesheet() + read_asset("control_room.css"), read_asset("control_room.js")
    return [
        *(Route(path, _endpoint(authorizer, path, view, views)) for path, view in pages.items()),
        Route("/crawl/control_room.css", partial(_serve_asset, css, "text/css; charset=utf-8")),
        Route("/crawl/control_room.js", partial(_serve_asset, script, "text/javascript; charset=utf-8")),
        *form_actions.action_routes(authorizer),
        Route("/crawl/events", partial(_events, authorizer, poller, shutdown_key)),
    ]


def _endpoint(
    authorizer: Authorizer, path: str, view: Callable[[dict[str, str]], TemplatePage], views: ControlRoomViews
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            # doctor shows facts about the machine, and its checks are expensive
            role = Role.RUN if path == "/crawl/doctor" else Role.READ
            caller = authorizer.authorize(request, role, modifies=False)
        except HttpError as error:
            return render_error_page(path, error)
        arguments = {name: value[: _MAX_ARGUMENT_LENGTH + 1] for name, value in request.query_params.items()}
        if any(len(value) > _MAX_ARGUMENT_LENGTH for value in arguments.values()):
            raise InputError(f"An argument has at most {_MAX_ARGUMENT_LENGTH:,} characters.")
        can_run = caller.role >= Role.RUN
        form_token = authorizer.form_tokens.create(request) if can_run else ""

        def respond() -> Response:
            try:
                return render_page(path, view(arguments), can_run=can_run, form_token=form_token)
            except NotFoundError as error:
                page = TemplatePage("message.html", "Not found", {"message": str(error)})
                return render_page(path, page, HTTPStatus.NOT_FOUND)
            except StoreError:
                try:
                    authorizer.context.existing_crawl_configuration("", "default")
                except StoreError as error:
                    raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), {"Retry-After": "10"}) from error
                except HttpError:
                    page = TemplatePage("none.html", "No crawl yet", {**views.jobs_started_here()})
                    return render_page(path, page, HTTPStatus.NOT_FOUND, can_run, form_token)
                raise

        try:
            return await authorizer.store_thread_limit.run(respond)
        except HttpError as error:
            return render_error_page(path, error)

    return endpoint


async def _serve_asset(text: str, media_type: str, _: Request) -> Response:
    return Response(text, headers={**PAGE_HEADERS, "Content-Type": media_type, "Cache-Control": "max-age=60"})


async def _events(authorizer: Authorizer, poller: SharedPoller[str], shutdown_key: str, request: Request) -> Response:
    render_error = partial(render_error_page, "/crawl/events")
    try:
        authorizer.authorize(request, Role.READ, modifies=False)
    except HttpError as error:
        return render_error(error)
    stopping: asyncio.Event = request.scope["state"][shutdown_key]
    events = event_stream(poller, _FingerprintChanges(), stopping, _RECONNECT)
    return authorizer.event_streams.response(events, PAGE_HEADERS, render_error)


class _FingerprintChanges:
    """Compares the fingerprint of a stream with that of the last call."""

    def __init__(self) -> None:
        self._fingerprint: str | None = None

    def __call__(self, fingerprint: str) -> Iterator[bytes]:
        """Yield an event when the fingerprint has changed since the last call."""
        last, self._fingerprint = self._fingerprint, fingerprint
        if last not in (None, fingerprint):
            yield f"event: change\ndata: {fingerprint}\n\n".encode()
