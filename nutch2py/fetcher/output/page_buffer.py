"""Buffer of finished pages that wait to be stored; a full one delays new requests (backpressure)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nutch2py.fetcher.fetch_state import FetchedPage

STORE_BATCH = 100
"""Finished pages stored in one call."""
_MAX_PAGES = 2_000
"""Finished pages waiting to be stored, since a write can take a second; 400 if pages are parsed."""
MAX_BYTES = 32 << 20
"""Size of these pages with headers and rendered content."""


class PageBuffer:
    """Finished pages in the order of their responses; for one event loop.

    Args:
        parses: Whether the pages are parsed when they are stored, which is slower.
    """

    def __init__(self, parses: bool) -> None:
        self._pages: list[FetchedPage] = []
        self._bytes = 0
        self._max_pages = 4 * STORE_BATCH if parses else _MAX_PAGES
        self._batch_ready = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of waiting pages."""
        return len(self._pages)

    @property
    def is_full(self) -> bool:
        """Whether no more requests may start before pages are stored."""
        return len(self._pages) >= self._max_pages or self._bytes >= MAX_BYTES

    def add(self, page: FetchedPage) -> None:
        """Append a finished page."""
        self._pages.append(page)
        self._bytes += 0 if page.response is None else page.response.memory_size
        if len(self._pages) >= STORE_BATCH or 4 * self._bytes >= MAX_BYTES:
            self._batch_ready.set()

    async def wait_for_batch(self, seconds: float) -> None:
        """Wait until a batch is complete, at most ``seconds`` seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._batch_ready.wait(), seconds)
        self._batch_ready.clear()

    def end_waiting(self) -> None:
        """Make :meth:`wait_for_batch` return, whatever has been added."""
        self._batch_ready.set()

    def take(self) -> tuple[list[FetchedPage], int]:
        """Remove all pages; return them and their size in bytes."""
        taken = self._pages, self._bytes
        self._pages, self._bytes = [], 0
        return taken

    def put_back(self, pages: list[FetchedPage]) -> None:
        """Make taken pages the first ones again."""
        self._pages[:0] = pages
