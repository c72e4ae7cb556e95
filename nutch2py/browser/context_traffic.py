"""What one context of the browser asks for: counted, and stopped at the limits of a page."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol


class AbortableConnection(Protocol):
    """A connection, as far as a lane ends it."""

    def abort(self) -> None:
        """Close it at once."""


class ContextTraffic:
    """The traffic of one context, which shows one page at a time. ``username`` and ``password``: its login at the proxy.

    ``limit_hit``: the limit that the page has reached, "" for none; nothing goes through then. ``page_finished``: when the page has.
    ``blocked_requests``: requests that were not let through, by reason.
    """

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self.username, self.password = secrets.token_hex(8), secrets.token_urlsafe(24)
        self._max_requests, self._max_bytes = max_requests, max_bytes
        self.connections: set[AbortableConnection] = set()
        self.on_limit: Callable[[], None] = lambda: None
        self.total_bytes = 0
        self.start_page()

    def start_page(self) -> None:
        """Begin a page."""
        self.request_count = self.received_bytes = 0
        self.limit_hit = ""
        self.blocked_requests: Counter[str] = Counter()
        self.page_finished = asyncio.Event()

    def finish_page(self) -> None:
        """End a page: what still asks for something on its behalf is cut off."""
        self.page_finished.set()
        self._abort_connections()

    def count_request(self) -> bool:
        """Count a request; tell whether it may go on."""
        if self.limit_hit or self.page_finished.is_set():
            return False
        self.request_count += 1
        if self.request_count > self._max_requests:
            self.stop("requests")
            return False
        return True

    def count_received(self, size: int) -> bool:
        """Count bytes that came; tell whether more are wanted."""
        self.total_bytes += size
        self.received_bytes += size
        if self.received_bytes > self._max_bytes:
            self.stop("bytes")
        return not self.limit_hit and not self.page_finished.is_set()

    def stop(self, limit: str) -> None:
        """Let nothing through any more for this page."""
        if not self.limit_hit:
            self.limit_hit = limit
            self._abort_connections()
            self.on_limit()

    def _abort_connections(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()
        self.last_cut_at = time.monotonic()
