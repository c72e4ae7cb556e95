"""HTTP/1.1 connections: uvicorn's protocol with time limits and a connection limit, and the security headers.

A request must arrive within a time, however slowly it is sent; so must the next one on a connection. The client must
read a response within another time. Over the connection limit, the connection that sends nothing or slowly for the
longest time is closed; when all wait for their responses, the new one is. A client whose request is not answered gets
status 503 or 408, and time to read it: closed with unread data, TCP would reset the connection and could discard the
response. A half-closed client still gets its response.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from nutch2py.server.strict_http import StrictConnection

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response that does not set its own. There is one script, of this server, and no cookie."""


READ_TIMEOUT = 10.0
"""Seconds for a request to arrive completely, or for the next one on a connection."""
WRITE_TIMEOUT = 30.0
"""Seconds for the client to read a response, or the next part of a stream."""
MAX_CONNECTIONS = 128
"""Concurrent connections; further ones get status 503."""
MAX_HEAD_BYTES = 65_536
"""Bytes of a request's line and headers."""
SHUTDOWN_KEY = "stopping"
"""An asyncio.Event in the state of the application: set when the server ends, so that answers without end do."""

LINGER_SECONDS = 2.0
"""Seconds for the client of a closed connection to read the last response."""
_IDLE_SECONDS = 1.0
"""Seconds after which an idle connection is closed before one that sends a request."""
_MAX_LINGERING = 512
_BUSY_RESPONSE = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ConnectionLimitingProtocol(H11Protocol):
    """One connection with time limits."""

    _lingering: ClassVar[set[ConnectionLimitingProtocol]] = set()
    _timer: asyncio.TimerHandle | None = None
    _is_accepted = False
    _is_closed = False  # received data is discarded
    _has_eof = False  # the client has closed its side
    _idle_since = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictConnection(h11.SERVER, MAX_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or reject it with status 503."""
        self._idle_since = self.loop.time()
        if len(self.connections) >= MAX_CONNECTIONS and not self._close_slowest():
            self.transport = transport
            self._close(_BUSY_RESPONSE)
            return
        self._is_accepted = True
        super().connection_made(transport)
        self._set_timeout(READ_TIMEOUT, self._close_after_timeout)

    def _close_slowest(self) -> bool:
        """Close the connection that sends nothing, or a request slowly, for the longest time; return whether one does.

        A connection that is idle between requests loses nothing, so it is closed first.
        """
        now = self.loop.time()
        waiting = [
            each for each in self.connections if isinstance(each, ConnectionLimitingProtocol) and each.is_waiting
        ]
        if not waiting:
            return False
        idle = [each for each in waiting if not each._is_receiving() and now - each._idle_since >= _IDLE_SECONDS]
        slowest = min(idle or waiting, key=lambda each: each._idle_since)
        slowest._close(_BUSY_RESPONSE)  # its request may be on the way
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether the client must send something: no complete request is pending, and the last response is sent."""
        return (not self._is_responding() or self._is_receiving()) and not self.transport.get_write_buffer_size()

    def _is_receiving(self) -> bool:
        """Return whether a request has arrived in part."""
        if self.conn.their_state is h11.SEND_BODY:
            return self.cycle is not None and not self.cycle.response_started
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _close_after_timeout(self) -> None:
        self._close(_TIMEOUT_RESPONSE if self._is_receiving() else b"")

    def _close(self, response: bytes = b"") -> None:
        """Send a last response, discard what arrives, and close the connection when the client has, or after a time."""
        if self._is_closed or self.transport.is_closing():
            return
        self._is_closed = True
        self.connections.discard(self)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application must not write after the last response
            self.cycle.message_event.set()
        if self.flow is not None:
            self.flow.resume_writing()
        if len(self._lingering) >= _MAX_LINGERING:
            self.transport.abort()
            return
        self._lingering.add(self)
        self.transport.write(response)
        self.transport.write_eof()
        self.transport.resume_reading()
        self._set_timeout(LINGER_SECONDS, self.transport.abort)

    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._set_timeout(None)
        self._lingering.discard(self)
        if self._is_accepted:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data, unless the connection is closed."""
        if not self._is_closed:
            super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # the signature of asyncio
        """Finish the response to a half-closed client, unless it is a stream or its request is incomplete."""
        is_complete = self.conn.their_state is not h11.SEND_BODY
        is_started = self.cycle is not None and self.cycle.response_started
        if not self._is_closed and self._is_responding() and is_complete and not is_started:
            self._has_eof = True
            return True
        return None

    def handle_events(self) -> None:
        """Process events; stop the timer when a request has arrived completely."""
        super().handle_events()
        arrived = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and self.conn.our_state is h11.SEND_RESPONSE
        if arrived and not self.flow.write_paused:  # else the client must read the earlier responses first
            self._set_timeout(None)

    def on_response_complete(self) -> None:
        """Start the timer for the rest of the response or for the next request."""
        self._limit_response_or_next_request()
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self._has_eof and not self._is_responding():
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless it is closed already."""
        if not self._is_closed:
            super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        """Start the timer for the client to read."""
        super().pause_writing()
        if not self._is_closed:
            self._set_timeout(WRITE_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        """Restart the timer: the client has read."""
        super().resume_writing()
        if self._is_closed:
            return
        if self._is_responding():
            self._set_timeout(None)
        else:
            self._set_timeout(READ_TIMEOUT, self._close_after_timeout)

    def _limit_response_or_next_request(self) -> None:
        if self.transport.get_write_buffer_size():
            self._set_timeout(WRITE_TIMEOUT, self.transport.abort)
        else:
            self._set_timeout(READ_TIMEOUT, self._close_after_timeout)

    def shutdown(self) -> None:
        """End event streams; let other responses finish."""
        stopping: Any = self.app_state.get(SHUTDOWN_KEY)
        if stopping is not None:
            stopping.set()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid or too long HTTP, with the security headers."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        error = sys.exc_info()[1]
        status = HTTPStatus(error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400)
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE and b"\n" not in self.conn.trailing_data[0]:
            status = HTTPStatus.REQUEST_URI_TOO_LONG  # the request line is too long
        body = f"{status.phrase}\n".encode()
        headers = {
            **SECURITY_HEADERS,
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        for event in (
            h11.Response(status_code=status, headers=[*headers.items()], reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self._close()

    def _set_timeout(self, seconds: float | None, action: Callable[[], None] | None = None) -> None:
        """Call ``action`` after some seconds unless called again; None cancels the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None or action is None else self.loop.call_later(seconds, action)


def uvicorn_config(app: Any) -> Config:
    """Return the configuration of uvicorn: our protocol, no access log, no trust in proxy headers."""
    return Config(
        app,
        http=ConnectionLimitingProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("Server", "nutch2py")],
        timeout_keep_alive=int(READ_TIMEOUT),
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
