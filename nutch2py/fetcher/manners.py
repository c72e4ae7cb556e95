"""What add-ons of Scrapy may ask for beyond the page in hand: as the queues and robots.txt have it."""

from __future__ import annotations

import asyncio

from nutch2py.fetcher.queue_keys import QueueKeys
from nutch2py.fetcher.queues import FetchItemQueues
from nutch2py.fetcher.robots import RobotsCache, is_allowed


class QueueManners:
    """Holds another try, a login and any page that an add-on wants to what holds for pages of the batch."""

    def __init__(self, queues: FetchItemQueues, robots: RobotsCache, keys: QueueKeys) -> None:
        self._queues, self._robots, self._keys = queues, robots, keys

    async def permit(self, url: str, page: str, again: bool) -> str:
        """Wait for the turn of a URL's queue; return why it may not be asked for, or "".

        ``page``: the page in hand, "" for none; ``again``: its server has been asked for it already.
        """
        await self._keys.prepare((url, page) if page else (url,))
        try:
            queue_id = self._keys.queue_id(url)
            in_hand = self._keys.queue_id(page) if page else ""
        except (ValueError, LookupError) as error:
            return str(error)
        if url != page and (why := await self._forbidden(url)):
            return why
        wait = self._queues.book(queue_id, again and queue_id == in_hand)
        if wait > 0:
            await asyncio.sleep(wait)
        return ""

    async def _forbidden(self, url: str) -> str:
        rules = await self._robots.rules(url)
        if rules.deferred or rules.unreachable:
            return "its robots.txt cannot be had"
        return "" if await is_allowed(rules, url) else "robots.txt forbids it"

    async def permitted(self, url: str) -> bool:
        """Tell whether robots.txt lets a page that is shown ask for a URL, which waits for no queue."""
        try:
            return not await self._forbidden(url)
        except ValueError:
            return False

    async def turn(self, page: str) -> None:
        """Wait where an add-on has asked the server of a page for something else since the page was taken."""
        if self._queues.any_booked and (wait := self._queues.wait_for_booked(self._keys.queue_id(page))) > 0:
            await asyncio.sleep(wait)
