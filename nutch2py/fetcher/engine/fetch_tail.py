"""Ends a fetch that only waits for a few hosts, so that the next round continues with all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.fetch_queues import FetchItemQueue

HELD_COUNTER, TAIL_COUNTER = "HostHeld", "LastHosts"
"""Counters of the pages that are left for a later batch; their rows stay due."""
_TAIL_SHARE = 10
"""The last hosts are at most one in this many."""


class FetchTail:
    """Leaves the pages of the last hosts for a later batch, by two rules.

    - Held hosts: no request is in progress, another host of this fetch is complete, and the servers of all waiting
      pages have failed or asked to wait, each for longer than ``fetcher.hold.seconds``.
    - Last hosts: of the hosts of this fetch at most a tenth has pages left, and these have had
      ``fetcher.tail.seconds``, or as long as the fetch had taken until then.

    Args:
        conf: Configuration.
        state: Progress of the fetch.
        has_read_all: Returns whether no key of another host can arrive.
        drop_queue: Drops the waiting pages of a queue, in memory and on disk; returns their number.
        wake: Makes the run check whether it is complete.
    """

    def __init__(
        self,
        conf: Configuration,
        state: FetchState,
        has_read_all: Callable[[], bool],
        drop_queue: Callable[[str], int],
        wake: Callable[[], None],
    ) -> None:
        self._state, self._has_read_all, self._drop_queue, self._wake = state, has_read_all, drop_queue, wake
        self._hold_seconds = conf.get_float("fetcher.hold.seconds", 30)
        self._tail_seconds = conf.get_float("fetcher.tail.seconds", 60)
        self._started = state.queues.clock()
        self._tail_started: float | None = None

    def check(self) -> None:
        """Apply the rules; called every second."""
        queues = self._state.queues
        if not queues.total_size or not self._has_read_all():
            return
        waiting = [queue for queue in queues.queues.values() if queue.size or queue.in_progress]
        self._check_held(waiting)
        self._check_tail(waiting)

    def _check_held(self, waiting: Sequence[FetchItemQueue]) -> None:
        limit = self._state.queues.clock() + self._hold_seconds
        if self._state.active_requests or self._hold_seconds < 0 or len(waiting) >= self._state.queues.host_count:
            return
        if all(queue.held_until > limit for queue in waiting):
            self._drop(waiting, HELD_COUNTER, "fetcher.hold.seconds")

    def _check_tail(self, waiting: Sequence[FetchItemQueue]) -> None:
        now = self._state.queues.clock()
        if self._tail_seconds < 0 or _TAIL_SHARE * len(waiting) > self._state.queues.host_count:
            self._tail_started = None
            return
        if self._tail_started is None:
            self._tail_started = now
        if now - self._tail_started > max(self._tail_seconds, self._tail_started - self._started):
            self._drop(waiting, TAIL_COUNTER, "fetcher.tail.seconds")

    def _drop(self, waiting: Sequence[FetchItemQueue], counter: str, name: str) -> None:
        report = self._state.report
        for queue in waiting:
            url = queue.next_url
            if dropped := self._drop_queue(queue.id):
                report.counters[counter] += dropped
                report.host_failures.add(counter, url, dropped)
                reason = f", {queue.hold_reason}" if queue.hold_reason else ""
                self._state.log(f"{queue.id}: {dropped} URLs deferred to a later round{reason} ({name})")
        self._wake()
