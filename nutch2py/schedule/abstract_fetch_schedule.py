"""AbstractFetchSchedule: what every schedule shares, with the numbers of Nutch's class of that name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.records.cells import decode_text
from nutch2py.records.record import Field
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.schedule.fetch_intervals import FetchIntervals, multiply_float32, shorten_interval

SECONDS_PER_DAY = 86400
UNKNOWN, MODIFIED, NOTMODIFIED = 0, 1, 2
"""The ``state`` of a fetched page, compared with the fetch before."""
FIXED_INTERVAL_KEY = "nutch.fetchInterval.fixed"
"""Seed metadata: an interval in seconds, in decimal, that no schedule may change."""
_MAX_CLOCK_SKEW_MS = SECONDS_PER_DAY * 1000  # ms by which a fetch may seem to lie ahead


def fixed_interval(page: WebPage) -> int | None:
    """Return the interval (s) that the seed list fixed for the page, or None."""
    cell = page.metadata.get(FIXED_INTERVAL_KEY)
    if cell is None:
        return None
    try:
        seconds = int(float(decode_text(cell)))
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < 2**31 else None


class AbstractFetchSchedule(FetchSchedule):
    """Base of the schedules; :meth:`set_fetch_schedule` is theirs. ``default_interval``, ``max_interval`` in s."""

    fields: frozenset[Field[Any]] = frozenset(
        {WebPage.fetch_time, WebPage.fetch_interval, WebPage.retries_since_fetch, WebPage.metadata}
    )

    due_fields: frozenset[Field[Any]] = frozenset({WebPage.fetch_time, WebPage.fetch_interval})
    """What :meth:`should_fetch` alone reads: it runs on every row of the table."""

    def __init__(self, conf: Configuration) -> None:
        self.default_interval, self.max_interval = FetchIntervals.from_conf(conf)

    def initialize(self, url: str, page: WebPage, now: int) -> None:
        """Make a page that was found by a link due at ``now`` (ms), with the default interval and no retries."""
        page.fetch_time = now
        page.fetch_interval = self.default_interval
        page.retries_since_fetch = 0

    def set_fetch_schedule(
        self,
        url: str,
        page: WebPage,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
        modified_time: int,
        state: int,
    ) -> None:
        """Reset the retries; subclasses set the time and interval."""
        page.retries_since_fetch = 0

    def get_interval(self, page: WebPage) -> int:
        """Return the page's interval (s), the default for a row that has none (0 would make it due for ever)."""
        return page.fetch_interval or self.default_interval

    def set_page_gone_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Try again after an interval longer by half, at most 0.9 of the greatest; a fixed interval stays."""
        interval = fixed_interval(page)
        if interval is None:
            longer = multiply_float32(self.get_interval(page), 1.5)
            interval = int(longer if longer < self.max_interval else multiply_float32(self.max_interval, 0.9))
        page.fetch_interval = interval
        page.fetch_time = fetch_time + interval * 1000

    def set_page_retry_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Try again a day later, and count the retry."""
        page.fetch_time = fetch_time + SECONDS_PER_DAY * 1000
        page.retries_since_fetch += 1

    def due_times(self, now: int) -> Sequence[tuple[int, int]] | None:
        """Return the times up to ``now``, and those that lie too far ahead; None for another :meth:`should_fetch`."""
        if type(self).should_fetch is not AbstractFetchSchedule.should_fetch:
            return None
        return [(-(1 << 63), now), (now + self.max_interval * 1000 + 1, (1 << 63) - 1)]

    def should_fetch(self, url: str, page: WebPage, now: int) -> bool:
        """Tell whether the page is due at ``now``.

        updatedb writes no time that lies further ahead than ``db.fetch.interval.max``; a row can have one all the same,
        of Nutch 2 or of a time when the property was greater. It waits until so long after its last fetch, which is its
        interval before its time. Where that cannot be, since Nutch 2 had cut the interval and left the time, the page
        is due at once, so that none is forgotten. (Nutch 2 changes such a row too, but then answers by the old time.)
        """
        longest = self.max_interval * 1000
        if page.fetch_time - now > longest:
            since_fetch = now - (page.fetch_time - page.fetch_interval * 1000)
            if -_MAX_CLOCK_SKEW_MS <= since_fetch < longest:
                return False
            self._cut_interval(page)
            page.fetch_time = now
        return page.fetch_time <= now

    def force_refetch(self, url: str, page: WebPage, asap: bool, now: int | None = None) -> None:
        """Make the page unfetched, without retries and modified time, and cut its interval to the greatest allowed.

        ``asap`` makes it due at ``now`` (ms; the clock when None), else it stays due when it was.
        """
        self._cut_interval(page)
        page.status = CrawlStatus.UNFETCHED
        page.retries_since_fetch = 0
        page.modified_time = 0
        if asap:
            page.fetch_time = int(time.time() * 1000) if now is None else now

    def _cut_interval(self, page: WebPage) -> None:
        if page.fetch_interval > self.max_interval:
            page.fetch_interval = shorten_interval(self.max_interval)
