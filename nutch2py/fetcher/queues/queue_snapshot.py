"""Snapshot of the fetch queues that will take longest: how many pages wait, for what, and until when."""

from __future__ import annotations

import heapq
import time

from nutch2py.fetcher.queues.fetch_queues import FetchItemQueue, FetchItemQueues
from nutch2py.fetcher.queues.queue_state import QueueState

MAX_QUEUES = 20
"""Queues of a snapshot."""
_MAX_ID_LENGTH = 200  # characters


def snapshot_queues(queues: FetchItemQueues, limit: int = MAX_QUEUES) -> list[QueueState]:
    """Return the queues with pages that will take longest by their delays, the longest first."""
    clock, now = queues.clock(), time.time()
    used = [queue for queue in queues.queues.values() if queue.size or queue.in_progress]
    longest = heapq.nlargest(limit, used, key=lambda queue: (_remaining_seconds(queue, clock), queue.size))
    return [_snapshot(queue, clock, now) for queue in longest]


def _delay(queue: FetchItemQueue) -> float:
    return queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay


def _remaining_seconds(queue: FetchItemQueue, clock: float) -> float:
    """Return the least time that the delays of a queue take, in seconds."""
    return max(queue.next_fetch_time - clock, 0.0) + max(queue.size - 1, 0) * _delay(queue)


def _snapshot(queue: FetchItemQueue, clock: float, now: float) -> QueueState:
    seconds = max(queue.next_fetch_time - clock, 0.0)
    return QueueState(
        queue=queue.id[:_MAX_ID_LENGTH],
        waiting=queue.size,
        active=queue.in_progress,
        delay_ms=round(1000 * _delay(queue)),
        next_request=round(1000 * (now + seconds)),
        reason=_reason(queue, seconds),
        last_status=queue.last_status,
        failures=queue.exceptions,
    )


def _reason(queue: FetchItemQueue, seconds: float) -> str:
    if queue.in_progress >= queue.max_threads:
        return "request in progress"
    if not queue.size:
        return "last requests in progress"
    if seconds > 0:
        return queue.hold_reason if queue.held_until >= queue.next_fetch_time else "crawl delay"
    return "next free thread"
