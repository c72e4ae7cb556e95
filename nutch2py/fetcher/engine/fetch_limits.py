"""Limits of a fetch: the time limit (``fetcher.timelimit.mins``) and ``fetcher.throughput.threshold.*``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchState

GRACE_SECONDS = 5.0
"""Seconds that active requests may continue after the time limit."""


class ThroughputThreshold(NamedTuple):
    """Threshold below which a fetch stops.

    Attributes:
        pages_per_second: Minimum throughput, -1 to disable.
        max_below: Number of successive log lines below it that is accepted.
        check_after: Time before the first check, in seconds.
    """

    pages_per_second: int
    max_below: int
    check_after: float

    @classmethod
    def from_conf(cls, conf: Configuration) -> ThroughputThreshold:
        """Read ``fetcher.throughput.threshold.*``."""
        return cls(
            conf.get_int("fetcher.throughput.threshold.pages", -1),
            conf.get_int("fetcher.throughput.threshold.sequence", 5),
            60 * conf.get_float("fetcher.throughput.threshold.check.after", 5),
        )


class FetchLimits:
    """Drops the waiting pages of a run, which stay due, after the time limit or while the throughput is too low.

    Args:
        state: Progress of the fetch.
        throughput: Minimum throughput.
        wake: Makes the run check for work.
        cancel_requests: Cancels the active requests and returns their number.
    """

    def __init__(
        self,
        state: FetchState,
        throughput: ThroughputThreshold,
        wake: Callable[[], None],
        cancel_requests: Callable[[], int],
    ) -> None:
        self.throughput = throughput
        self._state, self._wake, self._cancel_requests = state, wake, cancel_requests
        self._deadline_passed_at = 0.0
        self._threshold = throughput.pages_per_second
        self._check_after = time.monotonic() + throughput.check_after
        self._below_count = 0

    def check_deadline(self) -> None:
        """Drop the waiting pages once the time limit is reached; cancel active requests after a grace period."""
        if self._state.is_past_deadline:
            self._drop_waiting("HitByTimeLimit-Queues")
            now = time.monotonic()
            self._deadline_passed_at = self._deadline_passed_at or now
            # without this, a slow server would delay the end by up to http.time.limit
            if now >= self._deadline_passed_at + GRACE_SECONDS:
                self._state.report.counters["HitByTimeLimit-Queues"] += self._cancel_requests()

    def check_throughput(self, rate: float) -> None:
        """Stop the run after too many successive intervals below the threshold."""
        if self._threshold < 0 or time.monotonic() < self._check_after:
            return
        if rate >= self._threshold:
            self._below_count = 0
            return
        self._below_count += 1
        log = self._state.log
        log(f"{self._below_count}: dropping below configured threshold of {self._threshold} pages per second")
        if self._below_count > self.throughput.max_below:
            log("Dropped below threshold too many times in a row, killing!")
            self._threshold = -1
            self._state.is_stopped = True
            self._drop_waiting("hitByThrougputThreshold")

    def _drop_waiting(self, counter: str) -> None:
        dropped = self._state.queues.drop_all()
        if dropped:
            self._state.report.counters[counter] += dropped
        self._wake()
