"""Monotonic clock for cell timestamps: a hybrid logical clock (Kulkarni et al. 2014).

Of two versions of a cell the newer one wins, so a write with an older timestamp is silently lost. A write therefore
carries the machine's time or, if that is not later, the millisecond after the newest known time. Known times come from
this process's writes, from the cells it has read, and from earlier jobs, which store their newest time with the crawl's
locks (:mod:`nutch2py.mapreduce.lock_check`).

Due times and ages use the machine's time only.
"""

from __future__ import annotations

import threading

from nutch2py.support.clock import now_ms

_MAX_TIME_MS = (1 << 63) - (1 << 40)  # leaves room after a cell with the largest 64-bit timestamp


class CrawlClock:
    """Thread-safe clock of a crawl; times are in milliseconds since 1970."""

    def __init__(self) -> None:
        self._lock, self._newest = threading.Lock(), 0

    @property
    def newest(self) -> int:
        """The newest time returned or observed so far."""
        return self._newest

    def observe(self, timestamp: int) -> None:
        """Record the timestamp of a cell: later timestamps will be newer."""
        if timestamp > self._newest:
            with self._lock:
                self._newest = max(min(timestamp, _MAX_TIME_MS), self._newest)

    def now(self) -> int:
        """Return the current time, not earlier than any time returned or observed."""
        with self._lock:
            self._newest = max(now_ms(), self._newest)
            return self._newest

    def next(self) -> int:
        """Return the current time, later than every time returned or observed."""
        with self._lock:
            self._newest = max(now_ms(), self._newest + 1)
            return self._newest


_clocks: dict[tuple[str, str], CrawlClock] = {}


def crawl_clock(location: str, crawl_id: str) -> CrawlClock:
    """Return this process's clock of a crawl; all its tables share it."""
    return _clocks.setdefault((location, crawl_id), CrawlClock())
