"""Fetch schedule that fetches changing pages more often and unchanged pages less often."""

from __future__ import annotations

import math

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.cells import float32
from nutch2py.records.webpage import WebPage
from nutch2py.schedule.abstract_fetch_schedule import (
    MODIFIED,
    NOTMODIFIED,
    SECONDS_PER_DAY,
    AbstractFetchSchedule,
    fixed_interval,
)
from nutch2py.schedule.fetch_intervals import multiply_float32
from nutch2py.schedule.host_intervals import HostIntervals


class AdaptiveFetchSchedule(AbstractFetchSchedule):
    """Shortens the interval by ``dec_rate`` after a change and lengthens it by ``inc_rate`` without one.

    Properties ``db.fetch.schedule.adaptive.*``; intervals in s, bounds by host in
    ``adaptive-host-specific-intervals.txt``. ``db.fetch.interval.max`` limits ``max_interval``, so that no page has to
    be forced to a refetch. Contradictory properties raise ConfigurationError.

    With ``sync_delta`` the next fetch moves towards the time of change: by ``sync_delta_rate`` of the time since the
    change, limited to the interval, and never to less than the shortest interval from now. (NUTCH-1564: Nutch 2 uses
    the whole time since the change, so that long unchanged pages are always due; 1.22 limits it.) A changed page gets
    the fetch time as its modified time, as in 1.x: its own older date would make it look unchanged.
    """

    java_class = "org.apache.nutch.crawl.AdaptiveFetchSchedule"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        name = "db.fetch.schedule.adaptive."
        self.inc_rate = conf.get_float(f"{name}inc_rate", 0.4)
        self.dec_rate = conf.get_float(f"{name}dec_rate", 0.2)
        self.min_interval = int(conf.get_float(f"{name}min_interval", 60))
        self.max_adaptive_interval = int(conf.get_float(f"{name}max_interval", 365 * SECONDS_PER_DAY))
        self.sync_delta = conf.get_bool(f"{name}sync_delta", True)
        self.sync_delta_rate = conf.get_float(f"{name}sync_delta_rate", 0.3)
        if self.min_interval > self.max_adaptive_interval:
            raise ConfigurationError(
                f"{name}min_interval {self.min_interval} is above max_interval {self.max_adaptive_interval}: "
                "correct one"
            )
        self.host_intervals = HostIntervals.load(conf, self.min_interval, self.max_adaptive_interval)
        least = max([self.min_interval, *(shortest for shortest, _ in self.host_intervals.intervals.values())])
        if least > self.max_interval:
            raise ConfigurationError(
                f"the adaptive schedule's min_interval {least} is above db.fetch.interval.max {self.max_interval}: "
                "correct one"
            )

    def set_next_fetch(self, url: str, page: WebPage, fetch_time: int, modified_time: int, state: int) -> None:
        """Set interval, next fetch and modified time; keep a fixed interval without shift."""
        if modified_time <= 0 or state == MODIFIED:
            modified_time = fetch_time
        fixed = fixed_interval(page)
        page.fetch_interval, shift = (
            (fixed, 0) if fixed else self._adapt_interval(url, page, fetch_time - modified_time, state)
        )
        page.fetch_time = fetch_time + page.fetch_interval * 1000 - shift
        page.modified_time = modified_time

    def _adapt_interval(self, url: str, page: WebPage, delta: int, state: int) -> tuple[int, int]:
        """Return the new interval (s) and the shift (ms) to an earlier fetch; ``delta``: ms since the last change."""
        interval = self.get_interval(page)
        if state == MODIFIED:
            interval = int(multiply_float32(interval, float32(1.0 - float32(self.dec_rate))))
        elif state == NOTMODIFIED:
            interval = int(multiply_float32(interval, float32(1.0 + float32(self.inc_rate))))
        shortest, longest = self.host_intervals.get_bounds(url)
        longest = min(longest, self.max_interval)
        if self.sync_delta:
            interval = max(interval, delta // 1000)
        interval = min(max(interval, shortest), longest)
        if not self.sync_delta or delta <= 0:
            return interval, 0
        shift = math.floor(min(delta, interval * 1000) * self.sync_delta_rate + 0.5)
        return interval, max(0, min(shift, (interval - shortest) * 1000))
