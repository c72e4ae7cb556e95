"""Scrapy's robots.txt middleware with a distinct exception type, and without a race between waiting requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser


class RobotsDeniedError(IgnoreRequest):
    """robots.txt forbids a page."""


class RobotsMiddleware(RobotsTxtMiddleware):
    """Raises :class:`RobotsDeniedError` instead of a plain IgnoreRequest.

    Of several requests that wait for one robots.txt, Scrapy (2.19) applies the rules only to the first; here all wait
    for the same result.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pending: dict[str, asyncio.Task[RobotParser | None]] = {}

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise RobotsDeniedError for a page that robots.txt disallows."""
        try:
            await super().process_request(request)
        except IgnoreRequest as error:
            raise RobotsDeniedError(*error.args) from None

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the rules of the request's host, or None if they are unavailable."""
        netloc = urlparse_cached(request).netloc
        task = self._pending.get(netloc)
        if task is None:
            task = self._pending[netloc] = asyncio.ensure_future(super().robot_parser(request))
            task.add_done_callback(lambda _: self._pending.pop(netloc, None))
        return await asyncio.shield(task)  # a cancelled caller must not cancel the others
