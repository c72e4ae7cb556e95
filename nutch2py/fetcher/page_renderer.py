"""What the fetcher knows of a browser beside it: an answer goes in, and comes out as it was or rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import HttpSettings

RobotsCheck = Callable[[str], Awaitable[bool]]
"""Tells whether robots.txt of its host permits to ask for a URL."""


class PageRenderer(Protocol):
    """Renders pages that scripts make. ``counters``: for the summary of the fetch.

    A NutchError of :meth:`render` ends the fetch: there is no browser. What a page does to it is the page's failure.
    """

    counters: Counter[str]

    def is_always_rendered(self, url: str) -> bool:
        """Tell whether a page is rendered whatever it is: that it has not changed then says nothing of it."""

    async def render(self, url: str, response: FetchResponse, robots_check: RobotsCheck) -> FetchResponse:
        """Return the answer with what a browser made of it, or as it is."""

    async def close(self) -> None:
        """Let go of the browser."""


RendererFactory = Callable[[HttpSettings], PageRenderer]
"""Makes the renderer of one run; called in its event loop."""
