"""What one context of the browser asks for: counted, and stopped at the limits of a page."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol


class Closable(Protocol):
    """A connection, as far as a lane ends it."""

    def abort(self) -> None:
        """Close it at once."""


class Lane:
    """The traffic of one context, which shows one page at a time. ``name`` and ``secret``: its login at the proxy.

    ``over``: the limit that the page has reached, "" for none; nothing goes through then. ``ended``: when the page has.
    ``refused``: requests that were not let through, by reason.
    """

    def __init__(self, requests: int, received: int) -> None:
        self.name, self.secret = secrets.token_hex(8), secrets.token_urlsafe(24)
        self._most_requests, self._most_received = requests, received
        self.connections: set[Closable] = set()
        self.on_limit: Callable[[], None] = lambda: None
        self.total = 0
        self.begin()

    def begin(self) -> None:
        """Begin a page."""
        self.requests = self.received = 0
        self.over = ""
        self.refused: Counter[str] = Counter()
        self.ended = asyncio.Event()

    def end(self) -> None:
        """End a page: what still asks for something on its behalf is cut off."""
        self.ended.set()
        self._cut()

    def request(self) -> bool:
        """Count a request; tell whether it may go on."""
        if self.over or self.ended.is_set():
            return False
        self.requests += 1
        if self.requests > self._most_requests:
            self.stop("requests")
            return False
        return True

    def receive(self, size: int) -> bool:
        """Count bytes that came; tell whether more are wanted."""
        self.total += size
        self.received += size
        if self.received > self._most_received:
            self.stop("bytes")
        return not self.over and not self.ended.is_set()

    def stop(self, limit: str) -> None:
        """Let nothing through any more for this page."""
        if not self.over:
            self.over = limit
            self._cut()
            self.on_limit()

    def _cut(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()
        self.touched = time.monotonic()
