"""State of a fetch queue, as the job log and the control room show it; a module without imports of the fetcher."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueState:
    """A fetch queue of a running fetch.

    Attributes:
        queue: Its id: a host, domain or address (``fetcher.queue.mode``).
        waiting: Number of waiting pages.
        active: Number of requests in progress.
        delay_ms: Delay between two requests, in milliseconds.
        next_request: Earliest time of the next request, ms since 1970.
        reason: Why it waits.
        last_status: HTTP status or kind of failure of its last response, "" before the first.
        failures: Failures that count against it.
    """

    queue: str
    waiting: int
    active: int
    delay_ms: int
    next_request: int
    reason: str
    last_status: str = ""
    failures: int = 0
