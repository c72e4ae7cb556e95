"""How long a request may keep a fetcher's thread: some slow servers must not keep all others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.fetch_queues import FetchItem


class SlowRequestTracker:
    """Has requests that take longer than ``after`` seconds give their threads back, ``most`` of them at a time.

    One timer is for all, since next to no request takes that long; ``given_back`` is called when a thread has become
    free.
    """

    def __init__(self, state: FetchState, slow_after: float, max_slow: int, on_released: Callable[[], None]) -> None:
        self._state, self._slow_after, self._max_slow, self._on_released = state, slow_after, max_slow, on_released
        self._loop = asyncio.get_running_loop()
        self._started: dict[FetchItem, float] = {}  # when each request began, the oldest first; not the late ones
        self._slow: dict[FetchItem, tuple[float, bool]] = {}  # the same, and whether it has given its thread back
        self._timer: asyncio.TimerHandle | None = None

    def start(self, item: FetchItem) -> None:
        """Note that a request begins."""
        self._started[item] = now = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._slow_after, self._release_threads)

    def finish(self, item: FetchItem) -> float:
        """Return how many seconds a request has taken."""
        began = self._started.pop(item, None)
        if began is None:
            began, slow = self._slow.pop(item)
            self._state.slow_requests -= slow
        return self._loop.time() - began

    def _release_threads(self) -> None:
        self._timer = None
        freed, now = False, self._loop.time()
        while self._started:
            item, began = next(iter(self._started.items()))
            if began + self._slow_after > now:
                self._timer = self._loop.call_at(began + self._slow_after, self._release_threads)
                break
            del self._started[item]
            slow = self._state.slow_requests < self._max_slow
            self._slow[item] = began, slow
            self._state.slow_requests += slow
            freed |= slow
        if freed:
            self._on_released()
