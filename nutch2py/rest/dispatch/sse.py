"""Server-sent events: a limited number of streams, which share one poller for each source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Generic, TypeVar

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from nutch2py.errors import NutchError
from nutch2py.rest.http_error import HttpError
from nutch2py.support.thread_limit import ThreadLimit

T = TypeVar("T")
MAX_STREAMS = 16
KEEPALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment keeps proxies from closing the connection."""
_KEEPALIVE = b": keep-alive\n\n"


class SharedPoller(Generic[T]):
    """Reads a value at most once per interval, however many streams wait for it."""

    def __init__(self, read: Callable[[], T], interval: float, thread_limit: ThreadLimit) -> None:
        """``interval``: seconds."""
        self._read, self.interval, self._thread_limit = read, interval, thread_limit
        self._lock = asyncio.Lock()
        self._latest: tuple[float, T] | None = None

    async def latest(self) -> T:
        """Return the value, at most ``interval`` seconds old. Concurrent callers share one read."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._latest is None or now >= self._latest[0]:
                self._latest = now + self.interval, await self._thread_limit.run(self._read)
            return self._latest[1]


async def event_stream(
    poller: SharedPoller[T], changes: Callable[[T], Iterable[bytes]], stopping: asyncio.Event, preamble: bytes = b""
) -> AsyncIterator[bytes]:
    """Yield the events of a stream until the server stops or the source fails; clients reconnect by themselves.

    Args:
        poller: the source.
        changes: returns the events of a value; called with each value in turn, for this stream alone.
        stopping: set when the server stops.
        preamble: sent first, for instance the reconnection time.
    """
    if preamble:
        yield preamble
    silent_seconds = KEEPALIVE_SECONDS  # the first comment shows at once that the stream is open
    while not stopping.is_set():
        try:
            value = await poller.latest()
        except (NutchError, OSError):
            return
        for event in changes(value):
            yield event
            silent_seconds = 0.0
        if silent_seconds >= KEEPALIVE_SECONDS:
            yield _KEEPALIVE
            silent_seconds = 0.0
        try:
            await asyncio.wait_for(stopping.wait(), poller.interval)
        except TimeoutError:
            silent_seconds += poller.interval


class EventStreams:
    """Counts the open streams of a server."""

    def __init__(self) -> None:
        self.open_count = 0

    def response(
        self,
        events: AsyncIterator[bytes],
        headers: Mapping[str, str],
        render_error: Callable[[HttpError], Response],
    ) -> Response:
        """Return a stream as a response. It takes its place when it starts to send, and always releases it."""
        return _LimitedStreamingResponse(self, events, headers, render_error)


class _LimitedStreamingResponse(StreamingResponse):
    def __init__(
        self,
        streams: EventStreams,
        events: AsyncIterator[bytes],
        headers: Mapping[str, str],
        render_error: Callable[[HttpError], Response],
    ) -> None:
        super().__init__(events, headers={"X-Accel-Buffering": "no", **headers}, media_type="text/event-stream")
        self._streams, self._render_error = streams, render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, or status 429 when too many streams are open."""
        if self._streams.open_count >= MAX_STREAMS:
            message = f"too many event streams: {MAX_STREAMS} are open"
            error = HttpError(HTTPStatus.TOO_MANY_REQUESTS, message, {"Retry-After": "10"})
            await self._render_error(error)(scope, receive, send)
            return
        self._streams.open_count += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open_count -= 1
