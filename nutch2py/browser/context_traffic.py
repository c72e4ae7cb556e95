"""Traffic of one browser context: counters and limits of the current page."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Protocol


class AbortableConnection(Protocol):
    """A connection that can be aborted."""

    def abort(self) -> None:
        """Close it immediately."""


class ContextTraffic:
    """Traffic of one context, which renders one page at a time.

    Attributes:
        username: Login name at the proxy.
        password: Password at the proxy.
        limit_hit: Limit that the page has reached, "" for none; all further traffic is blocked then.
        page_finished: Set when the page is finished.
        blocked_requests: Blocked requests by reason.
    """

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self.username, self.password = secrets.token_hex(8), secrets.token_urlsafe(24)
        self._max_requests, self._max_bytes = max_requests, max_bytes
        self.connections: set[AbortableConnection] = set()
        self.on_limit: Callable[[], None] = lambda: None
        self.total_bytes = 0
        self.start_page()

    def start_page(self) -> None:
        """Start a page."""
        self.request_count = self.received_bytes = 0
        self.limit_hit = ""
        self.blocked_requests: Counter[str] = Counter()
        self.page_finished = asyncio.Event()

    def finish_page(self) -> None:
        """Finish a page and abort its remaining connections."""
        self.page_finished.set()
        self._abort_connections()

    def count_request(self) -> bool:
        """Count a request; return whether it is allowed."""
        if self.limit_hit or self.page_finished.is_set():
            return False
        self.request_count += 1
        if self.request_count > self._max_requests:
            self.stop("requests")
            return False
        return True

    def count_received(self, size: int) -> bool:
        """Count received bytes; return whether more are accepted."""
        self.total_bytes += size
        self.received_bytes += size
        if self.received_bytes > self._max_bytes:
            self.stop("bytes")
        return not self.limit_hit and not self.page_finished.is_set()

    def stop(self, limit: str) -> None:
        """Block all further traffic of this page."""
        if not self.limit_hit:
            self.limit_hit = limit
            self._abort_connections()
            self.on_limit()

    def _abort_connections(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()
