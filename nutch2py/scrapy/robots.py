"""Scrapy's robots.txt middleware, whose refusals can be told from others."""

from __future__ import annotations

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest


class RobotsDeniedError(IgnoreRequest):
    """robots.txt forbids a page."""


class RobotsMiddleware(RobotsTxtMiddleware):
    """Says by type what Scrapy's says in words."""

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise RobotsDeniedError for what robots.txt forbids."""
        try:
            await super().process_request(request)
        except IgnoreRequest as error:
            raise RobotsDeniedError(*error.args) from None
