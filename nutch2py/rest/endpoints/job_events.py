"""What happens to jobs, as it happens: Server-Sent Events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nutch2py.errors import NutchError
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import error_response
from nutch2py.rest.job_control.job_processes import JobProcess

_POLL_SECONDS = 0.5  # seconds between two looks
_KEEPALIVE_POLLS = 30  # looks without news, after which a comment shows that the connection lives


class JobEventStream:
    """Streams of events. ``stopping``: the name of what is set in the state when the server ends."""

    def __init__(self, authorizer: Authorizer, shutdown_key: str) -> None:
        self._authorizer, self._shutdown_key = authorizer, shutdown_key

    async def respond(self, request: Request) -> Response:
        """Answer with a stream."""
        try:
            self._authorizer.authorize(request, Role.READ, modifies=False)
            return self._authorizer.event_streams.open_response(
                self._event_stream(request), {"Cache-Control": "no-store"}
            )
        except NutchError as error:
            return error_response(error)

    async def _event_stream(self, request: Request) -> AsyncIterator[bytes]:
        """Yield all jobs that run, and then each that changes."""
        stopping: asyncio.Event = request.scope["state"][self._shutdown_key]
        known: dict[str, str] | None = None
        silent = 0
        while not stopping.is_set():
            jobs = await self._authorizer.thread_limit.run(self._authorizer.context.jobs.all)
            for child in reversed(jobs):
                news = child.state.is_alive if known is None else known.get(child.id) != child.state
                if news:
                    yield _format_event(child)
                    silent = 0
            known = {child.id: child.state for child in jobs}
            if silent % _KEEPALIVE_POLLS == 0:
                yield b": still here\n\n"
            silent += 1
            try:
                await asyncio.wait_for(stopping.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue


def _format_event(child: JobProcess) -> bytes:
    return b"event: job\nid: " + child.id.encode() + b"\ndata: " + msgspec.json.encode(child) + b"\n\n"
