"""Base class of fetch schedules, with the constants of Nutch's AbstractFetchSchedule."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.records.cells import decode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.schedule.fetch_intervals import FetchIntervals, multiply_float32, shorten_interval

SECONDS_PER_DAY = 86400
UNKNOWN, MODIFIED, NOTMODIFIED = 0, 1, 2
"""The ``state`` of a fetched page, compared with the fetch before."""
FIXED_INTERVAL_KEY = "nutch.fetchInterval.fixed"
"""Seed metadata: an interval in seconds, in decimal, that no schedule may change."""
_MAX_CLOCK_SKEW_MS = SECONDS_PER_DAY * 1000  # ms that a fetch time may be ahead of the clock


def fixed_interval(page: WebPage) -> int | None:
    """Return the interval (s) set by the seed list for the page, or None."""
    cell = page.metadata.get(FIXED_INTERVAL_KEY)
    if cell is None:
        return None
    try:
        seconds = int(float(decode_text(cell)))
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < 2**31 else None


class AbstractFetchSchedule(FetchSchedule):
    """Base of the schedules; subclasses implement :meth:`set_next_fetch`.

    Attributes:
        default_interval: Interval in seconds of a row without one.
        max_interval: Longest interval in seconds (``db.fetch.interval.max``).
    """

    fields: frozenset[RecordField] = frozenset(
        {WebPage.fetch_time, WebPage.fetch_interval, WebPage.retries_since_fetch, WebPage.metadata}
    )

    due_fields: frozenset[RecordField] = frozenset({WebPage.fetch_time, WebPage.fetch_interval})
    """Fields that :meth:`should_fetch` reads; few, because it runs on every row of the table."""

    def __init__(self, conf: Configuration) -> None:
        self.default_interval, self.max_interval = FetchIntervals.from_conf(conf)

    def initialize(self, url: str, page: WebPage, now: int) -> None:
        """Make a newly found page due at ``now`` (ms), with the default interval and no retries."""
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
        """Reset the retries, call :meth:`set_next_fetch`, and keep the modified time of the fetch before."""
        page.retries_since_fetch = 0
        self.set_next_fetch(url, page, fetch_time, modified_time, state)
        page.prev_modified_time = prev_modified_time

    def set_next_fetch(self, url: str, page: WebPage, fetch_time: int, modified_time: int, state: int) -> None:
        """Set interval, fetch time and modified time after a success; the default changes none of them."""

    def get_interval(self, page: WebPage) -> int:
        """Return the page's interval (s), or the default if the row has none above 0: it would always be due."""
        return page.fetch_interval if page.fetch_interval > 0 else self.default_interval

    def set_page_gone_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Schedule a retry after 1.5 times the interval, at most 0.9 of the longest; keep a fixed interval."""
        interval = fixed_interval(page)
        if interval is None:
            longer = multiply_float32(self.get_interval(page), 1.5)
            interval = int(longer if longer < self.max_interval else multiply_float32(self.max_interval, 0.9))
        page.fetch_interval = interval
        page.fetch_time = fetch_time + interval * 1000

    def set_page_retry_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Schedule a retry in one day and count it."""
        page.fetch_time = fetch_time + SECONDS_PER_DAY * 1000
        page.retries_since_fetch += 1

    def due_times(self, now: int) -> Sequence[tuple[int, int]] | None:
        """Return the ranges of fetch times (ms) whose rows can be due: up to ``now``, and too far in the future.

        Returns None if a subclass overrides :meth:`should_fetch`, whose rule is unknown here.
        """
        if type(self).should_fetch is not AbstractFetchSchedule.should_fetch:
            return None
        return [(-(1 << 63), now), (now + self.max_interval * 1000 + 1, (1 << 63) - 1)]

    def should_fetch(self, url: str, page: WebPage, now: int) -> bool:
        """Return whether the page is due at ``now`` (ms).

        updatedb writes no fetch time later than ``db.fetch.interval.max`` from now. A row can still have one, written
        by Nutch 2 or under a larger limit. Such a page is due when the limit has passed since its last fetch, computed
        as its fetch time minus its interval. If that time is implausible, because Nutch 2 cut the interval and kept
        the fetch time, the page is due now, so that no page is lost. (Nutch 2 also changes such a row, but then
        decides by the old time.)
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
        """Reset the page to unfetched, clear retries and modified time, and limit its interval to the maximum.

        With ``asap`` the page is due at ``now`` (ms; None: the current time), otherwise its fetch time stays.
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
