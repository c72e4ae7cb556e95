"""The clock of a crawl: the time that its writes carry, which never goes back, whatever the machine's clock does.

Of two cells in one place the newer one counts, and a write that comes with an older time is lost in silence. So a write
gets the machine's time, or, where that is not later, the millisecond after the newest time that is known: of this
process's own writes, of the cells that it has read, and of the jobs before it, for which the newest time stands beside
the list of who is at work (:mod:`nutch2py.mapreduce.lock_check`). It is a hybrid logical clock (Kulkarni et al. 2014).

What is due, and how old anything is, goes by the machine's time alone.
"""

from __future__ import annotations

import threading

from nutch2py.support.clock import now_ms

_MAX_TIME_MS = (1 << 63) - (1 << 40)  # times are 64 bits; a cell at their very end must leave room for those after it


class CrawlClock:
    """Times in ms since 1970; threads may share it."""

    def __init__(self) -> None:
        self._lock, self._newest = threading.Lock(), 0

    @property
    def newest(self) -> int:
        """The newest time that was given or seen."""
        return self._newest

    def observe(self, timestamp: int) -> None:
        """Note a time that a write carries: what comes after it will be later."""
        if timestamp > self._newest:
            with self._lock:
                self._newest = max(min(timestamp, _MAX_TIME_MS), self._newest)

    def now(self) -> int:
        """Return the time, not earlier than any that was given or seen."""
        with self._lock:
            self._newest = max(now_ms(), self._newest)
            return self._newest

    def next(self) -> int:
        """Return the time, later than every one that was given or seen."""
        with self._lock:
            self._newest = max(now_ms(), self._newest + 1)
            return self._newest


_clocks: dict[tuple[str, str], CrawlClock] = {}


def crawl_clock(location: str, crawl_id: str) -> CrawlClock:
    """Return this process's clock of a crawl; all its tables share it."""
    return _clocks.setdefault((location, crawl_id), CrawlClock())
