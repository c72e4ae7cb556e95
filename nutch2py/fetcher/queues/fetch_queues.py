"""Fetch queues: one for each host, domain or address, and the times at which each may be asked again.

A heap of the times at which queues become ready takes the place of Nutch's walk over all queues, so the cost of an item
does not grow with their number. The delay runs from the **end** of a request (``fetcher.server.delay``); with several
requests at a time in a queue it is ``fetcher.server.min.delay``. A queue that has run empty is forgotten only after its
delay, so pages that come later do not break it; one with failures is remembered for as long as they count.
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

_COMPACT_AFTER = 32
# what is remembered of queues in which nothing waits, so that hosts without number do not take memory without bound
_MAX_IDLE_QUEUES = 50_000  # queues that have failed, or take no more
_MAX_COUNTED_QUEUES = 200_000  # queues whose pages are counted


@dataclass(slots=True, eq=False)
class FetchItem:
    """A page to fetch: its row key, its URL and its row.

    ``redirect_chain``: the URLs that redirected here, the first first. ``host_settings``: what the host table says of its host.
    ``plugin_error``: the plug-in that failed on it, if one did. ``rendering_seconds``: seconds that a browser had it, which
    are no fault of its server.
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
    """What the host table says of a queue (``q_mt``, ``q_cd``, ``q_mcd``); None where it says nothing. In ms."""

    max_threads: int | None = None
    crawl_delay_ms: int | None = None
    min_crawl_delay_ms: int | None = None


@dataclass(slots=True, eq=False)
class FetchItemQueue:
    """The pages of one queue. Times in seconds of the monotonic clock, delays in seconds."""

    id: str
    max_threads: int
    crawl_delay: float
    min_crawl_delay: float
    items: list[FetchItem | None] = field(default_factory=list)  # a deque takes ten times the memory; most are short
    head: int = 0  # place of the next in ``items``; those before it are taken
    in_progress: int = 0
    next_fetch_time: float = 0.0
    exceptions: int = 0
    failures_in_row: int = 0  # of these, since the last good answer
    last_exception_at: float = 0.0
    started_at: float = 0.0  # when it was first asked
    trouble_seconds: float = 0.0  # seconds of waiting for a server that failed, refused or was slow
    deferrals: int = 0
    booked_until: float = 0.0  # when it may be asked after what was booked last
    is_scheduled: bool = False
    is_closed: bool = False

    @property
    def size(self) -> int:
        """How many pages wait."""
        return len(self.items) - self.head

    def take(self) -> FetchItem:
        """Take the next page."""
        item = self.items[self.head]
        assert item is not None
        self.items[self.head] = None
        self.head += 1
        if self.head >= _COMPACT_AFTER and 2 * self.head >= len(
            self.items
        ):  # so that a page costs the same in any queue
            del self.items[: self.head]
            self.head = 0
        return item

    def put_back(self, item: FetchItem) -> None:
        """Make a page that was taken the next one."""
        if self.head:
            self.head -= 1
            self.items[self.head] = item
        else:
            self.items.insert(0, item)


class FetchItemQueues:
    """All queues. ``clock`` gives seconds."""

    def __init__(self, conf: Configuration, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._threads = max(1, conf.get_int("fetcher.threads.per.queue", 1))
        self._crawl_delay = conf.get_float("fetcher.server.delay", 5.0)
        self._min_crawl_delay = conf.get_float("fetcher.server.min.delay", 0.0)
        self._max_exceptions = conf.get_int("fetcher.max.exceptions.per.queue", -1)
        self._exception_delay = conf.get_float("fetcher.exceptions.per.queue.delay", self._crawl_delay)
        self._clear_after = conf.get_float("fetcher.exceptions.per.queue.clear.after", 1800)
        self._max_pages = conf.get_int("fetcher.max.pages.per.queue", 100_000)
        self._page_counts: Counter[str] = Counter()  # let in so far
        self._queues: dict[str, FetchItemQueue] = {}
        self._idle_queues: dict[str, None] = {}  # of these the ones that wait for nothing, the longest idle first
        self._ready_heap: list[tuple[float, int, FetchItemQueue]] = []
        self._order = count()
        self.total_size = 0
        self.has_bookings = False

    def __len__(self) -> int:
        """Return the number of queues that have pages waiting or in progress."""
        return sum(1 for queue in self._queues.values() if queue.size or queue.in_progress)

    def get_queue(self, queue_id: str, host_settings: HostFetchSettings | None = None) -> FetchItemQueue:
        """Return the queue of that name, made when it is new, with its ``host_settings`` settings."""
        found = self._queues.get(queue_id)
        if found is None:
            threads = (
                host_settings.max_threads if host_settings and host_settings.max_threads is not None else self._threads
            )
            delay = (
                host_settings.crawl_delay_ms / 1000
                if host_settings and host_settings.crawl_delay_ms is not None
                else self._crawl_delay
            )
            least = (
                host_settings.min_crawl_delay_ms / 1000
                if host_settings and host_settings.min_crawl_delay_ms is not None
                else self._min_crawl_delay
            )
            found = self._queues[queue_id] = FetchItemQueue(queue_id, max(1, threads), delay, least)
        return found

    def queue_size(self, queue_id: str) -> int:
        """Return how many pages wait in a queue."""
        queue = self._queues.get(queue_id)
        return 0 if queue is None else queue.size

    def has_request_in_progress(self, queue_id: str) -> bool:
        """Tell whether a request of a queue is under way."""
        queue = self._queues.get(queue_id)
        return queue is not None and queue.in_progress > 0

    def skip_counter(self, queue_id: str) -> str:
        """Return the name of the counter of what a queue leaves out when it takes no more, else ""."""
        queue = self._queues.get(queue_id)
        if queue is not None and queue.is_closed:
            return "AboveExceptionThresholdInQueue"
        return "AboveMaxPagesInQueue" if 0 <= self._max_pages <= self._page_counts[queue_id] else ""

    def add(self, item: FetchItem) -> str:
        """Put an item into its queue; return the name of the counter of those left out when it takes no more."""
        queue = self.get_queue(item.queue_id, item.host_settings)
        if left_out := self.skip_counter(queue.id):
            return left_out
        if self._max_pages >= 0:
            self._count_page(queue.id)
        self._idle_queues.pop(queue.id, None)
        queue.items.append(item)
        self.total_size += 1
        self._schedule(queue)
        return ""

    def _schedule(self, queue: FetchItemQueue) -> None:
        if not queue.is_scheduled and queue.in_progress < queue.max_threads:
            queue.is_scheduled = True
            heapq.heappush(self._ready_heap, (queue.next_fetch_time, next(self._order), queue))

    def get(self) -> FetchItem | None:
        """Return a page whose queue is ready, and count it as in progress; None when no queue is ready now."""
        now = self._clock()
        while self._ready_heap and self._ready_heap[0][0] <= now:
            queue = heapq.heappop(self._ready_heap)[2]
            queue.is_scheduled = False
            if queue.next_fetch_time > now:  # put off since it was put into the heap
                self._schedule(queue)
            elif not queue.size:
                if not queue.in_progress and not queue.is_closed and not self._has_recent_failures(queue, now):
                    self._queues.pop(queue.id, None)
                    self._idle_queues.pop(queue.id, None)
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
        """Remember a queue in which nothing waits, and forget the one that has been so for longest."""
        self._idle_queues[queue.id] = None
        if len(self._idle_queues) > _MAX_IDLE_QUEUES:
            oldest = next(iter(self._idle_queues))
            del self._idle_queues[oldest]
            if not (self._queues[oldest].in_progress or self._queues[oldest].size):
                del self._queues[oldest]

    def _count_page(self, queue_id: str) -> None:
        self._page_counts[queue_id] += 1
        if len(self._page_counts) > _MAX_COUNTED_QUEUES:  # those with few pages are far from any limit
            self._page_counts = Counter(dict(self._page_counts.most_common(_MAX_COUNTED_QUEUES // 2)))

    def _has_recent_failures(self, queue: FetchItemQueue, now: float) -> bool:
        """Tell whether a queue's failures still count."""
        return queue.exceptions > 0 and now < queue.last_exception_at + self._clear_after

    @property
    def is_ready(self) -> bool:
        """Whether a queue may be asked now."""
        return bool(self._ready_heap) and self._ready_heap[0][0] <= self._clock()

    def next_ready_time(self) -> float | None:
        """Return when a queue may become ready, on the clock's scale; None when none waits for a time."""
        return self._ready_heap[0][0] if self._ready_heap else None

    def finish(self, item: FetchItem, asap: bool = False) -> None:
        """End an item's request: the delay of its queue begins. ``asap``: nothing was asked of the server."""
        queue = self.get_queue(item.queue_id)
        queue.in_progress -= 1
        delay = 0.0 if asap else queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        queue.next_fetch_time = max(queue.next_fetch_time, self._clock() + delay)
        self._schedule(queue)

    def book_turn(self, queue_id: str, is_repeat: bool) -> float:
        """Take a turn of a queue for a request that is no page of it; return in how many seconds it comes.

        ``is_repeat``: the queue has just been asked, and its delay has not begun yet.
        """
        new = queue_id not in self._queues
        queue = self.get_queue(queue_id)
        now = self._clock()
        delay = queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        at = max(queue.next_fetch_time, now + delay if is_repeat or queue.in_progress else now)
        queue.next_fetch_time = queue.booked_until = at + delay
        self.has_bookings = True
        if new:
            self._mark_idle(queue)
        return at - now

    def seconds_until_booked(self, queue_id: str) -> float:
        """Return the seconds for which a page that was taken already has to wait for what was booked since."""
        queue = self._queues.get(queue_id)
        return 0.0 if queue is None else max(0.0, queue.booked_until - self._clock())

    def defer(self, item: FetchItem, delay: float, retries: int) -> int:
        """Put an item back and its queue off by ``delay`` seconds; drop the queue after ``retries`` times.

        Returns the number of items dropped, the given one included; 0 when it was put back.
        """
        queue = self.get_queue(item.queue_id)
        queue.in_progress -= 1
        now = self._clock()
        if queue.next_fetch_time <= now:  # else another item of the queue has put it off already
            queue.deferrals += 1
            queue.next_fetch_time = now + delay
        if queue.deferrals > retries:
            return self._clear_queue(queue, close=True) + 1
        queue.put_back(item)
        self.total_size += 1
        self._schedule(queue)
        return 0

    def take_later_half(self) -> dict[str, list[FetchItem]]:
        """Take the later half of what waits in each queue out again, and return it; one page stays at least.

        Targets of redirects stay: what is known of them stands in no row yet.
        """
        taken: dict[str, list[FetchItem]] = {}
        for queue in self._queues.values():
            if queue.size > 1:
                keep = queue.head + (queue.size + 1) // 2
                later = [item for item in queue.items[keep:] if item is not None]
                given = [item for item in later if not item.redirect_chain]
                if not given:
                    continue
                taken[queue.id] = given
                queue.items[keep:] = [item for item in later if item.redirect_chain]
                self.total_size -= len(given)
                if self._max_pages >= 0:
                    self._page_counts[queue.id] -= len(given)
        return taken

    def count_exception(self, item: FetchItem, is_server_failure: bool = True) -> int:
        """Count a failure; return how many items were dropped as the queue had too many.

        A failure of the ``is_server_failure`` puts the queue off: by ``fetcher.exceptions.per.queue.delay``, twice that after two
        in a row, and so on, up to the time after which failures are forgotten.
        """
        queue = self.get_queue(item.queue_id)
        now = self._clock()
        if now >= queue.last_exception_at + self._clear_after:
            queue.exceptions = queue.failures_in_row = 0
        queue.exceptions += 1
        queue.last_exception_at = now
        if is_server_failure:
            queue.failures_in_row += 1
            delay = self._exception_delay * 2 ** min(queue.failures_in_row - 1, 30)
            queue.next_fetch_time = max(queue.next_fetch_time, now) + max(0.0, min(delay, self._clear_after))
        if self._max_exceptions < 0 or queue.exceptions < self._max_exceptions or queue.is_closed:
            return 0
        return self._clear_queue(queue, close=True)

    def record_success(self, item: FetchItem) -> None:
        """Note that the server of an item is well."""
        self.get_queue(item.queue_id).failures_in_row = 0

    def delay_queue(self, item: FetchItem, delay: float) -> float:
        """Ask nothing of an item's queue for at least ``delay`` seconds; return in how many it is asked again."""
        queue, now = self.get_queue(item.queue_id), self._clock()
        queue.next_fetch_time = max(queue.next_fetch_time, now + delay)
        return queue.next_fetch_time - now

    def add_trouble_seconds(self, item: FetchItem, seconds: float) -> float:
        """Count seconds that a server failed or was slow; return them all, 0 when most of its time was good."""
        queue = self.get_queue(item.queue_id)
        queue.trouble_seconds += seconds
        return queue.trouble_seconds if 2 * queue.trouble_seconds > self._clock() - queue.started_at else 0.0

    def close_queue(self, item: FetchItem) -> int:
        """Leave what waits in an item's queue for a later batch, and all that may come; return how many wait."""
        return self._clear_queue(self.get_queue(item.queue_id), close=True)

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
        """Drop all waiting items; return how many."""
        return sum(self._clear_queue(queue, close=False) for queue in self._queues.values())
