"""Applies crawl delays and robots.txt to extra requests made by Scrapy add-ons."""

from __future__ import annotations

import asyncio

from nutch2py.fetcher.queues.fetch_queues import FetchItemQueues
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.robots.robots_cache import RobotsCache, is_allowed


class ExtraRequestGate:
    """Applies the batch's crawl delays and robots.txt rules to retries, logins and other requests of add-ons."""

    def __init__(self, queues: FetchItemQueues, robots: RobotsCache, queue_ids: QueueIdResolver) -> None:
        self._queues, self._robots, self._queue_ids = queues, robots, queue_ids

    async def request_permission(self, url: str, page_url: str, is_repeat: bool) -> str:
        """Wait for the turn of a URL's queue; return the reason if it may not be requested, else "".

        Args:
            url: URL to request.
            page_url: URL of the page being fetched, "" for none.
            is_repeat: Whether the page's server has already received a request for it.
        """
        await self._queue_ids.resolve_hosts((url, page_url) if page_url else (url,))
        try:
            queue_id = self._queue_ids.get_queue_id(url)
            page_queue_id = self._queue_ids.get_queue_id(page_url) if page_url else ""
        except (ValueError, LookupError) as error:
            return str(error)
        if url != page_url and (reason := await self._robots_refusal(url)):
            return reason
        wait = self._queues.book_turn(queue_id, is_repeat and queue_id == page_queue_id)
        if wait > 0:
            await asyncio.sleep(wait)
        return ""

    async def _robots_refusal(self, url: str) -> str:
        rules = await self._robots.get_rules(url)
        if rules.is_deferred or rules.fetch_failure:
            return "its robots.txt is unavailable"
        return "" if await is_allowed(rules, url) else "robots.txt forbids it"

    async def is_allowed_by_robots(self, url: str) -> bool:
        """Return whether robots.txt allows a rendered page to request a URL; no queue delay applies."""
        try:
            return not await self._robots_refusal(url)
        except ValueError:
            return False

    async def wait_for_extra_requests(self, page_url: str) -> None:
        """Wait if an add-on has sent other requests to a page's server since the page was taken."""
        if (
            self._queues.has_bookings
            and (wait := self._queues.seconds_until_booked(self._queue_ids.get_queue_id(page_url))) > 0
        ):
            await asyncio.sleep(wait)
