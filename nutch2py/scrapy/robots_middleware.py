"""Scrapy's robots.txt middleware, whose refusals can be told from others, and which lets nobody pass who waits."""

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
    """Says by type what Scrapy's says in words.

    Of several requests that wait for one robots.txt Scrapy's (2.19) gives the rules to the first, and lets the others
    pass without; here all wait for the same answer.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pending: dict[str, asyncio.Task[RobotParser | None]] = {}

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise RobotsDeniedError for what robots.txt forbids."""
        try:
            await super().process_request(request)
        except IgnoreRequest as error:
            raise RobotsDeniedError(*error.args) from None

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the rules of the request's host, None when they cannot be had."""
        netloc = urlparse_cached(request).netloc
        task = self._pending.get(netloc)
        if task is None:
            task = self._pending[netloc] = asyncio.ensure_future(super().robot_parser(request))
            task.add_done_callback(lambda _: self._pending.pop(netloc, None))
        return await asyncio.shield(task)  # who is cancelled does not take it from the others
