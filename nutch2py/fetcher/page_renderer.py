"""Interface of the browser renderer: it takes a response and returns it unchanged or rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import HttpSettings

RobotsCheck = Callable[[str], Awaitable[bool]]
"""Returns whether the robots.txt of a URL's host allows the URL."""


class PageRenderer(Protocol):
    """Renders pages that need JavaScript. ``counters`` are added to the fetch report.

    A NutchError raised by :meth:`render` stops the fetch, since no browser is available. An error caused by the page
    is a failure of that page.
    """

    counters: Counter[str]

    def is_always_rendered(self, url: str) -> bool:
        """Return whether a URL is always rendered; a 304 then says nothing about the page."""

    async def render(self, url: str, response: FetchResponse, robots_check: RobotsCheck) -> FetchResponse:
        """Return the response with the rendered content, or unchanged."""

    async def close(self) -> None:
        """Release the browser."""


RendererFactory = Callable[[HttpSettings], PageRenderer]
"""Creates the renderer of one run; called in its event loop."""
