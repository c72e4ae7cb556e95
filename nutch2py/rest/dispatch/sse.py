"""Answers without an end, so many at a time: each holds a connection, and looks for news again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from nutch2py.rest.http_error import HttpError

MAX_STREAMS = 16


class EventStreams:
    """The streams of events of a server."""

    def __init__(self) -> None:
        self.open_count = 0

    def open_response(self, events: AsyncIterator[str | bytes], headers: Mapping[str, str]) -> StreamingResponse:
        """Return a stream as an answer; Refusal when too many are open."""
        if self.open_count >= MAX_STREAMS:
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS, f"{MAX_STREAMS} streams of events are open", {"Retry-After": "10"}
            )
        self.open_count += 1
        return _CountedStream(self, events, headers)


class _CountedStream(StreamingResponse):
    """Gives its place back however it ends, also when who asked is gone before it began."""

    def __init__(self, streams: EventStreams, events: AsyncIterator[str | bytes], headers: Mapping[str, str]) -> None:
        super().__init__(events, headers={"X-Accel-Buffering": "no", **headers}, media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open_count -= 1
