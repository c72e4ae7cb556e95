"""What add-ons of Scrapy may ask for beyond the page in hand: as the queues and robots.txt have it."""

from __future__ import annotations

import asyncio

from nutch2py.fetcher.queues.fetch_queues import FetchItemQueues
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.robots.robots_cache import RobotsCache, is_allowed


class QueuePoliteness:
    """Holds another try, a login and any page that an add-on wants to what holds for pages of the batch."""

    def __init__(self, queues: FetchItemQueues, robots: RobotsCache, queue_ids: QueueIdResolver) -> None:
        self._queues, self._robots, self._queue_ids = queues, robots, queue_ids

    async def request_permission(self, url: str, page_url: str, is_repeat: bool) -> str:
        """Wait for the turn of a URL's queue; return why it may not be asked for, or "".

        ``page_url``: the page in hand, "" for none; ``is_repeat``: its server has been asked for it already.
        """
        await self._queue_ids.resolve_hosts((url, page_url) if page_url else (url,))
        try:
            queue_id = self._queue_ids.get_queue_id(url)
            in_hand = self._queue_ids.get_queue_id(page_url) if page_url else ""
        except (ValueError, LookupError) as error:
            return str(error)
        if url != page_url and (why := await self._robots_refusal(url)):
            return why
        wait = self._queues.book_turn(queue_id, is_repeat and queue_id == in_hand)
        if wait > 0:
            await asyncio.sleep(wait)
        return ""

    async def _robots_refusal(self, url: str) -> str:
        rules = await self._robots.get_rules(url)
        if rules.is_deferred or rules.fetch_failure:
            return "its robots.txt cannot be had"
        return "" if await is_allowed(rules, url) else "robots.txt forbids it"

    async def is_allowed_by_robots(self, url: str) -> bool:
        """Tell whether robots.txt lets a page that is shown ask for a URL, which waits for no queue."""
        try:
            return not await self._robots_refusal(url)
        except ValueError:
            return False

    async def wait_for_extra_requests(self, page_url: str) -> None:
        """Wait where an add-on has asked the server of a page for something else since the page was taken."""
        if (
            self._queues.has_bookings
            and (wait := self._queues.seconds_until_booked(self._queue_ids.get_queue_id(page_url))) > 0
        ):
            await asyncio.sleep(wait)
