"""How long a request may keep a fetcher's thread: some slow servers must not keep all others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues import FetchItem


class Patience:
    """Has requests that take longer than ``after`` seconds give their threads back, ``most`` of them at a time.

    One timer is for all, since next to no request takes that long; ``given_back`` is called when a thread has become
    free.
    """

    def __init__(self, state: FetchState, after: float, most: int, given_back: Callable[[], None]) -> None:
        self._state, self._after, self._most, self._given_back = state, after, most, given_back
        self._loop = asyncio.get_running_loop()
        self._begun: dict[FetchItem, float] = {}  # when each request began, the oldest first; not the late ones
        self._late: dict[FetchItem, tuple[float, bool]] = {}  # the same, and whether it has given its thread back
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, item: FetchItem) -> None:
        """Note that a request begins."""
        self._begun[item] = now = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._after, self._look)

    def end(self, item: FetchItem) -> float:
        """Return how many seconds a request has taken."""
        began = self._begun.pop(item, None)
        if began is None:
            began, slow = self._late.pop(item)
            self._state.slow -= slow
        return self._loop.time() - began

    def _look(self) -> None:
        self._timer = None
        freed, now = False, self._loop.time()
        while self._begun:
            item, began = next(iter(self._begun.items()))
            if began + self._after > now:
                self._timer = self._loop.call_at(began + self._after, self._look)
                break
            del self._begun[item]
            slow = self._state.slow < self._most
            self._late[item] = began, slow
            self._state.slow += slow
            freed |= slow
        if freed:
            self._given_back()
