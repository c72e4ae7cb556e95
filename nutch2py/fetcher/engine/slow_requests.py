"""Releases fetcher threads held by slow requests, so that slow servers do not block the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.fetch_queues import FetchItem


class SlowRequestTracker:
    """Releases the threads of requests that take longer than ``slow_after`` seconds.

    At most ``max_slow`` requests run without a thread. One timer serves all requests, since few take that long;
    ``on_released`` is called when threads become free.
    """

    def __init__(self, state: FetchState, slow_after: float, max_slow: int, on_released: Callable[[], None]) -> None:
        self._state, self._slow_after, self._max_slow, self._on_released = state, slow_after, max_slow, on_released
        self._loop = asyncio.get_running_loop()
        self._started: dict[FetchItem, float] = {}  # start of each request that is not late, oldest first
        self._slow: dict[
            FetchItem, tuple[float, bool]
        ] = {}  # start of each late request, and whether it has released its thread
        self._timer: asyncio.TimerHandle | None = None

    def start(self, item: FetchItem) -> None:
        """Record the start of a request."""
        self._started[item] = now = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._slow_after, self._release_threads)

    def finish(self, item: FetchItem) -> float:
        """Return the duration of a request in seconds."""
        started = self._started.pop(item, None)
        if started is None:
            started, slow = self._slow.pop(item)
            self._state.slow_requests -= slow
        return self._loop.time() - started

    def _release_threads(self) -> None:
        self._timer = None
        released, now = False, self._loop.time()
        while self._started:
            item, started = next(iter(self._started.items()))
            if started + self._slow_after > now:
                self._timer = self._loop.call_at(started + self._slow_after, self._release_threads)
                break
            del self._started[item]
            slow = self._state.slow_requests < self._max_slow
            self._slow[item] = started, slow
            self._state.slow_requests += slow
            released |= slow
        if released:
            self._on_released()
