"""What happens to jobs, as it happens: Server-Sent Events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nutch2py.errors import NutchError
from nutch2py.rest.children import Child
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.operation import refused
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.tokens import Role

_EVERY = 0.5  # seconds between two looks
_SILENT = 30  # looks without news, after which a comment shows that the connection lives
_STREAMS = 16


class Events:
    """Streams of events, so many at a time. ``stopping``: the name of what is set in the state when the server ends."""

    def __init__(self, gatekeeper: Gatekeeper, stopping: str) -> None:
        self._gatekeeper, self._stopping = gatekeeper, stopping
        self._open = 0

    async def answer(self, request: Request) -> Response:
        """Answer with a stream."""
        try:
            self._gatekeeper.admitted(request, Role.READ, changes=False)
            if self._open >= _STREAMS:
                raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, f"{_STREAMS} streams are open", {"Retry-After": "10"})
        except NutchError as error:
            return refused(error)
        self._open += 1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(request), media_type="text/event-stream", headers=headers)

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        """Yield all jobs that run, and then each that changes."""
        stopping: asyncio.Event = request.scope["state"][self._stopping]
        known: dict[str, str] | None = None
        silent = 0
        try:
            while not stopping.is_set():
                jobs = await self._gatekeeper.threads.run(self._gatekeeper.office.children.all)
                for child in reversed(jobs):
                    news = child.state.alive if known is None else known.get(child.id) != child.state
                    if news:
                        yield _event(child)
                        silent = 0
                known = {child.id: child.state for child in jobs}
                if silent % _SILENT == 0:
                    yield b": still here\n\n"
                silent += 1
                try:
                    await asyncio.wait_for(stopping.wait(), _EVERY)
                except TimeoutError:
                    continue
        finally:
            self._open -= 1


def _event(child: Child) -> bytes:
    return b"event: job\nid: " + child.id.encode() + b"\ndata: " + msgspec.json.encode(child) + b"\n\n"
