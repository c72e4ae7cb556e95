"""Work that waits for a disk or another server, in threads: so many at a time, and the others wait for theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")


class ThreadLimit:
    """At most ``limit`` threads at a time."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @cached_property
    def _limiter(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self.limit)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what ``work`` returns. Who hangs up waits for nothing; the thread ends by itself."""
        call = partial(work, *args, **kwargs)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
