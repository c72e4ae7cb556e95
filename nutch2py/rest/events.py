"""What happens to jobs, as it happens: Server-Sent Events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nutch2py.errors import NutchError
from nutch2py.rest.children import Child
from nutch2py.rest.gatekeeper import Gatekeeper
from nutch2py.rest.operation import refused
from nutch2py.rest.tokens import Role

_EVERY = 0.5  # seconds between two looks
_SILENT = 30  # looks without news, after which a comment shows that the connection lives


class Events:
    """Streams of events. ``stopping``: the name of what is set in the state when the server ends."""

    def __init__(self, gatekeeper: Gatekeeper, stopping: str) -> None:
        self._gatekeeper, self._stopping = gatekeeper, stopping

    async def answer(self, request: Request) -> Response:
        """Answer with a stream."""
        try:
            self._gatekeeper.admitted(request, Role.READ, changes=False)
            return self._gatekeeper.streams.answer(self._stream(request), {"Cache-Control": "no-store"})
        except NutchError as error:
            return refused(error)

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        """Yield all jobs that run, and then each that changes."""
        stopping: asyncio.Event = request.scope["state"][self._stopping]
        known: dict[str, str] | None = None
        silent = 0
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


def _event(child: Child) -> bytes:
    return b"event: job\nid: " + child.id.encode() + b"\ndata: " + msgspec.json.encode(child) + b"\n\n"
