"""Fetch queues: one per host, domain or address, with the time at which each may send its next request.

A heap of ready times replaces Nutch's walk over all queues, so that the cost per item does not grow with their number.
The delay starts at the **end** of a request (``fetcher.server.delay``); with several concurrent requests per queue it
is ``fetcher.server.min.delay``. An empty queue is kept until its delay has passed, so that later pages respect it; a
queue with failures is kept as long as they count.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.webpage import WebPage
from nutch2py.support.invariants import not_none

_COMPACT_AFTER = 32
# bounds of the memory for queues without waiting pages, since the number of hosts is unlimited
MAX_IDLE_QUEUES = 50_000
"""Idle queues that are kept: with failures, or closed."""
MAX_COUNTED_QUEUES = 200_000
"""Queues with a page count that are kept."""


@dataclass(slots=True, eq=False)
class FetchItem:
    """A page to fetch.

    Attributes:
        key: Row key.
        url: URL of the page.
        page: Row of the page.
        queue_id: Queue that the page belongs to.
        redirect_chain: URLs that redirected to the page, first one first.
        host_settings: Settings of its host in the host table.
        plugin_error: Error of the plug-in that failed on the page.
        rendering_seconds: Time spent in the browser, which does not count against the server.
    """

    key: str
    url: str
    page: WebPage
    queue_id: str = ""
    redirect_chain: tuple[str, ...] = ()
    host_settings: HostFetchSettings | None = None
    plugin_error: PluginError | None = None
    rendering_seconds: float = 0.0


@dataclass(slots=True, frozen=True)
class HostFetchSettings:
    """Settings of a queue in the host table (``q_mt``, ``q_cd``, ``q_mcd``), in milliseconds; None if unset."""

    max_threads: int | None = None
    crawl_delay_ms: int | None = None
    min_crawl_delay_ms: int | None = None


@dataclass(slots=True, eq=False)
class FetchItemQueue:
    """The pages of one queue. Times and delays are in seconds, times by the monotonic clock."""

    id: str
    max_threads: int
    crawl_delay: float
    min_crawl_delay: float
    # a deque takes ten times the memory; most queues are short
    items: list[FetchItem | None] = field(default_factory=list)
    head: int = 0  # index of the next item in ``items``; earlier ones are taken
    in_progress: int = 0
    next_fetch_time: float = 0.0
    exceptions: int = 0
    failures_in_row: int = 0  # consecutive failures since the last success
    last_exception_at: float = 0.0
    started_at: float = 0.0  # time of its first request
    trouble_seconds: float = 0.0  # time lost to failures and slow responses
    deferrals: int = 0
    held_until: float = 0.0  # end of the time for which its server failed or asked to wait
    hold_reason: str = ""
    booked_until: float = 0.0  # end of the delay after the last booked request
    last_status: str = ""  # HTTP status or kind of failure of the last response
    is_scheduled: bool = False
    is_closed: bool = False

    @property
    def size(self) -> int:
        """Number of waiting pages."""
        return len(self.items) - self.head

    @property
    def next_url(self) -> str:
        """URL of the next waiting page, "" for none."""
        item = self.items[self.head] if self.size else None
        return "" if item is None else item.url

    def hold(self, until: float, reason: str) -> None:
        """Start no request before ``until``: the server failed, or asked to wait."""
        if until > self.held_until:
            self.held_until, self.hold_reason = until, reason
        self.next_fetch_time = max(self.next_fetch_time, until)

    def take(self) -> FetchItem:
        """Remove and return the next page."""
        item = not_none(self.items[self.head], "next page")
        self.items[self.head] = None
        self.head += 1
        # amortized: the cost of a page does not depend on the length of the queue
        if self.head >= _COMPACT_AFTER and 2 * self.head >= len(self.items):
            del self.items[: self.head]
            self.head = 0
        return item

    def put_back(self, item: FetchItem) -> None:
        """Make a taken page the next one again."""
        if self.head:
            self.head -= 1
            self.items[self.head] = item
        else:
            self.items.insert(0, item)


class FetchItemQueues:
    """All queues of a run.

    Attributes:
        clock: Returns the time in seconds.
        forget_failures_after: Seconds without a failure after which those of a queue no longer count.
        queues: Queues in memory by id: those with pages, and idle ones with a state that must not be lost.
        idle_queue_ids: Ids of queues without waiting pages, the longest idle first.
        page_counts: Pages accepted so far by queue id.
        total_size: Number of waiting pages.
        has_bookings: Whether any extra request was booked.
    """

    def __init__(self, conf: Configuration, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._threads = max(1, conf.get_int("fetcher.threads.per.queue", 1))
        self._crawl_delay = conf.get_float("fetcher.server.delay", 5.0)
        self._min_crawl_delay = conf.get_float("fetcher.server.min.delay", 0.0)
        self.forget_failures_after = conf.get_float("fetcher.exceptions.per.queue.clear.after", 1800)
        self._max_pages = conf.get_int("fetcher.max.pages.per.queue", 100_000)
        self.page_counts: Counter[str] = Counter()
        self.queues: dict[str, FetchItemQueue] = {}
        self.idle_queue_ids: dict[str, None] = {}
        self._ready_heap: list[tuple[float, int, FetchItemQueue]] = []
        self._order = count()
        self.total_size = 0
        self.has_bookings = False

    @property
    def host_count(self) -> int:
        """Number of queues that have had pages, up to :data:`MAX_COUNTED_QUEUES`."""
        return len(self.page_counts)

    def __len__(self) -> int:
        """Return the number of queues that have pages waiting or in progress."""
        return sum(1 for queue in self.queues.values() if queue.size or queue.in_progress)

    def get_queue(self, queue_id: str, host_settings: HostFetchSettings | None = None) -> FetchItemQueue:
        """Return the queue of an id, creating it with ``host_settings`` if it is new."""
        queue = self.queues.get(queue_id)
        if queue is None:
            threads = (
                host_settings.max_threads if host_settings and host_settings.max_threads is not None else self._threads
            )
            delay = (
                host_settings.crawl_delay_ms / 1000
                if host_settings and host_settings.crawl_delay_ms is not None
                else self._crawl_delay
            )
            min_delay = (
                host_settings.min_crawl_delay_ms / 1000
                if host_settings and host_settings.min_crawl_delay_ms is not None
                else self._min_crawl_delay
            )
            queue = self.queues[queue_id] = FetchItemQueue(queue_id, max(1, threads), delay, min_delay)
        return queue

    def queue_size(self, queue_id: str) -> int:
        """Return the number of waiting pages of a queue."""
        queue = self.queues.get(queue_id)
        return 0 if queue is None else queue.size

    def has_request_in_progress(self, queue_id: str) -> bool:
        """Return whether a queue has an active request."""
        queue = self.queues.get(queue_id)
        return queue is not None and queue.in_progress > 0

    def skip_counter(self, queue_id: str) -> str:
        """Return the counter of pages skipped by a closed or full queue, or "" if it accepts pages."""
        queue = self.queues.get(queue_id)
        if queue is not None and queue.is_closed:
            return "AboveExceptionThresholdInQueue"
        return "AboveMaxPagesInQueue" if 0 <= self._max_pages <= self.page_counts[queue_id] else ""

    def add(self, item: FetchItem) -> str:
        """Add an item to its queue; return the counter of skipped pages if the queue accepts none."""
        queue = self.get_queue(item.queue_id, item.host_settings)
        if skip_counter := self.skip_counter(queue.id):
            return skip_counter
        self._count_page(queue.id)
        self.idle_queue_ids.pop(queue.id, None)
        queue.items.append(item)
        self.total_size += 1
        self._schedule(queue)
        return ""

    def _schedule(self, queue: FetchItemQueue) -> None:
        if not queue.is_scheduled and queue.in_progress < queue.max_threads:
            queue.is_scheduled = True
            heapq.heappush(self._ready_heap, (queue.next_fetch_time, next(self._order), queue))

    def get(self) -> FetchItem | None:
        """Return a page of a ready queue and count it as in progress; None if no queue is ready."""
        now = self.clock()
        while self._ready_heap and self._ready_heap[0][0] <= now:
            queue = heapq.heappop(self._ready_heap)[2]
            queue.is_scheduled = False
            if queue.next_fetch_time > now:  # delayed since it was pushed
                self._schedule(queue)
            elif not queue.size:
                if not queue.in_progress and not queue.is_closed and not self._has_recent_failures(queue, now):
                    self.queues.pop(queue.id, None)
                    self.idle_queue_ids.pop(queue.id, None)
                else:
                    self._mark_idle(queue)
            else:
                item = queue.take()
                self.total_size -= 1
                queue.in_progress += 1
                queue.started_at = queue.started_at or now
                if queue.size:
                    self._schedule(queue)
                return item
        return None

    def _mark_idle(self, queue: FetchItemQueue) -> None:
        """Keep a queue without waiting pages, and drop the longest idle one above the limit."""
        self.idle_queue_ids[queue.id] = None
        if len(self.idle_queue_ids) > MAX_IDLE_QUEUES:
            oldest = next(iter(self.idle_queue_ids))
            del self.idle_queue_ids[oldest]
            if not (self.queues[oldest].in_progress or self.queues[oldest].size):
                del self.queues[oldest]

    def _count_page(self, queue_id: str) -> None:
        self.page_counts[queue_id] += 1
        if len(self.page_counts) > MAX_COUNTED_QUEUES:  # queues with few pages are far from the limit
            self.page_counts = Counter(dict(self.page_counts.most_common(MAX_COUNTED_QUEUES // 2)))

    def _has_recent_failures(self, queue: FetchItemQueue, now: float) -> bool:
        """Return whether the failures of a queue still count."""
        return queue.exceptions > 0 and now < queue.last_exception_at + self.forget_failures_after

    @property
    def scheduled_count(self) -> int:
        """Number of entries in the schedule: one for each queue that waits for its turn."""
        return len(self._ready_heap)

    @property
    def is_ready(self) -> bool:
        """Whether any queue is ready."""
        return bool(self._ready_heap) and self._ready_heap[0][0] <= self.clock()

    def next_queue(self) -> FetchItemQueue | None:
        """Return the queue that becomes ready next, or None."""
        return self._ready_heap[0][2] if self._ready_heap else None

    def next_ready_time(self) -> float | None:
        """Return the clock time at which the next queue becomes ready, or None."""
        return self._ready_heap[0][0] if self._ready_heap else None

    def finish(self, item: FetchItem, asap: bool = False) -> None:
        """Finish an item's request and start the delay of its queue, unless ``asap`` (no request was sent)."""
        queue = self.get_queue(item.queue_id)
        queue.in_progress -= 1
        delay = 0.0 if asap else queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        queue.next_fetch_time = max(queue.next_fetch_time, self.clock() + delay)
        self._schedule(queue)

    def book_turn(self, queue_id: str, is_repeat: bool) -> float:
        """Reserve a turn of a queue for an extra request; return the delay until then, in seconds.

        ``is_repeat``: the queue has just sent a request, whose delay has not started yet.
        """
        is_new = queue_id not in self.queues
        queue = self.get_queue(queue_id)
        now = self.clock()
        delay = queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        start = max(queue.next_fetch_time, now + delay if is_repeat or queue.in_progress else now)
        queue.next_fetch_time = queue.booked_until = start + delay
        self.has_bookings = True
        if is_new:
            self._mark_idle(queue)
        return start - now

    def seconds_until_booked(self, queue_id: str) -> float:
        """Return the seconds that an already taken page must wait for extra requests booked since."""
        queue = self.queues.get(queue_id)
        return 0.0 if queue is None else max(0.0, queue.booked_until - self.clock())

    def defer(self, item: FetchItem, delay: float, retries: int) -> int:
        """Put an item back and delay its queue by ``delay`` seconds; drop the queue after ``retries`` deferrals.

        Returns:
            The number of dropped items including this one, or 0 if it was put back.
        """
        queue = self.get_queue(item.queue_id)
        queue.in_progress -= 1
        now = self.clock()
        if queue.next_fetch_time <= now:  # else another item has already delayed the queue
            queue.deferrals += 1
            queue.hold(now + delay, "robots.txt unavailable (5xx)")
        if queue.deferrals > retries:
            return self._clear_queue(queue, close=True) + 1
        queue.put_back(item)
        self.total_size += 1
        self._schedule(queue)
        return 0

    def take_later_half(self) -> dict[str, list[FetchItem]]:
        """Remove and return the later half of the waiting pages of each queue, keeping at least one.

        Redirect targets stay, since their state is in no row yet.
        """
        taken: dict[str, list[FetchItem]] = {}
        for queue in self.queues.values():
            if queue.size > 1:
                keep = queue.head + (queue.size + 1) // 2
                later = [item for item in queue.items[keep:] if item is not None]
                removed = [item for item in later if not item.redirect_chain]
                if not removed:
                    continue
                taken[queue.id] = removed
                queue.items[keep:] = [item for item in later if item.redirect_chain]
                self.total_size -= len(removed)
                self.page_counts[queue.id] -= len(removed)
        return taken

    def delay_queue(self, item: FetchItem, delay: float) -> float:
        """Delay an item's queue by at least ``delay`` seconds; return the resulting delay."""
        queue, now = self.get_queue(item.queue_id), self.clock()
        if delay > 0:
            queue.hold(now + delay, "Retry-After of the server")
        return max(queue.next_fetch_time, now) - now

    def close_queue(self, item: FetchItem) -> int:
        """Close an item's queue for this batch; return the number of dropped items."""
        return self.close_queue_by_id(item.queue_id)

    def close_queue_by_id(self, queue_id: str) -> int:
        """Close a queue for this batch; return the number of dropped items."""
        return self._clear_queue(self.get_queue(queue_id), close=True)

    def _clear_queue(self, queue: FetchItemQueue, close: bool) -> int:
        dropped = queue.size
        queue.items.clear()
        queue.head = 0
        queue.is_closed = queue.is_closed or close
        if queue.is_closed:
            self._mark_idle(queue)
        self.total_size -= dropped
        return dropped

    def drop_all(self) -> int:
        """Drop all waiting items; return their number."""
        return sum(self._clear_queue(queue, close=False) for queue in self.queues.values())
