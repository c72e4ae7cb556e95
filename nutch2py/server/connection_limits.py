"""HTTP/1.1 connections: uvicorn's protocol with time limits and a connection limit, and the security headers.

A request must arrive within a time, however slowly it is sent; so must the next one on a connection. The client must
read a response within another time. A connection over a limit is closed. Over the connection limit, the longest idle
connection is closed; when none is idle, the new one gets status 503. A half-closed client still gets its response.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

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

_BUSY_RESPONSE = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ConnectionLimitingProtocol(H11Protocol):
    """One connection with time limits."""

    _timer: asyncio.TimerHandle | None = None
    _is_rejected = False
    _has_eof = False  # the client has closed its side
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or reject it with status 503."""
        self._idle_since = self.loop.time()
        if len(self.connections) >= MAX_CONNECTIONS and not self._close_oldest_idle():
            self._is_rejected, self.transport = True, transport
            transport.write(_BUSY_RESPONSE)
            transport.close()
            self._set_timeout(1.0)
            return
        super().connection_made(transport)
        self._set_timeout(READ_TIMEOUT)

    def _close_oldest_idle(self) -> bool:
        """Close the connection that is idle the longest; return whether one was idle."""
        idle = [each for each in self.connections if isinstance(each, ConnectionLimitingProtocol) and each.is_idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda each: each._idle_since)
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    @property
    def is_idle(self) -> bool:
        """Whether no request is pending and the last response is sent."""
        return not self._is_responding() and not self.transport.get_write_buffer_size()

    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._set_timeout(None)
        if not self._is_rejected:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data, unless the connection is rejected."""
        if not self._is_rejected:
            super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # the signature of asyncio
        """Finish the response to a half-closed client, unless its response has started: then it is a stream."""
        if (
            not self._is_rejected
            and self._is_responding()
            and self.cycle is not None
            and not self.cycle.response_started
        ):
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
        self._set_timeout(WRITE_TIMEOUT if self.transport.get_write_buffer_size() else READ_TIMEOUT)
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self._has_eof and not self._is_responding():
            self.transport.close()

    def pause_writing(self) -> None:
        """Start the timer for the client to read."""
        super().pause_writing()
        self._set_timeout(WRITE_TIMEOUT)

    def resume_writing(self) -> None:
        """Restart the timer: the client has read."""
        super().resume_writing()
        self._set_timeout(READ_TIMEOUT if self.cycle is None or self.cycle.response_complete else None)

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
        self.transport.close()

    def _set_timeout(self, seconds: float | None) -> None:
        """Abort the connection after some seconds unless called again; None cancels the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


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
