"""Bounded thread pool for blocking work of async handlers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")


class ThreadLimit:
    """Runs blocking calls in at most ``limit`` threads; further calls wait."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @cached_property
    def _limiter(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self.limit)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of ``work``. A cancelled caller does not wait; its thread runs to the end."""
        call = partial(work, *args, **kwargs)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
