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

from nutch2py.conf import Configuration
from nutch2py.plugin_guard import PluginError
from nutch2py.webpage import WebPage

_EMPTY_PLACES = 32
# what is remembered of queues in which nothing waits, so that hosts without number do not take memory without bound
_MOST_IDLE = 50_000  # queues that have failed, or take no more
_MOST_COUNTED = 200_000  # queues whose pages are counted


@dataclass(slots=True, eq=False)
class FetchItem:
    """A page to fetch: its row key, its URL and its row.

    ``chain``: the URLs that redirected here, the first first. ``settings``: what the host table says of its host.
    ``plugin_error``: the plug-in that failed on it, if one did. ``rendering``: seconds that a browser had it, which
    are no fault of its server.
    """

    key: str
    url: str
    page: WebPage
    queue_id: str = ""
    chain: tuple[str, ...] = ()
    settings: HostSettings | None = None
    plugin_error: PluginError | None = None
    rendering: float = 0.0


@dataclass(slots=True, frozen=True)
class HostSettings:
    """What the host table says of a queue (``q_mt``, ``q_cd``, ``q_mcd``); None where it says nothing. In ms."""

    threads: int | None = None
    crawl_delay: int | None = None
    min_crawl_delay: int | None = None


@dataclass(slots=True, eq=False)
class FetchItemQueue:
    """The pages of one queue. Times in seconds of the monotonic clock, delays in seconds."""

    id: str
    max_threads: int
    crawl_delay: float
    min_crawl_delay: float
    items: list[FetchItem | None] = field(default_factory=list)  # a deque takes ten times the memory; most are short
    first: int = 0  # place of the next in ``items``; those before it are taken
    in_progress: int = 0
    next_fetch_time: float = 0.0
    exceptions: int = 0
    in_a_row: int = 0  # of these, since the last good answer
    last_exception: float = 0.0
    began: float = 0.0  # when it was first asked
    trouble: float = 0.0  # seconds of waiting for a server that failed, refused or was slow
    deferrals: int = 0
    booked: float = 0.0  # when it may be asked after what was booked last
    scheduled: bool = False
    closed: bool = False

    @property
    def size(self) -> int:
        """How many pages wait."""
        return len(self.items) - self.first

    def take(self) -> FetchItem:
        """Take the next page."""
        item = self.items[self.first]
        assert item is not None
        self.items[self.first] = None
        self.first += 1
        if self.first >= _EMPTY_PLACES and 2 * self.first >= len(
            self.items
        ):  # so that a page costs the same in any queue
            del self.items[: self.first]
            self.first = 0
        return item

    def put_back(self, item: FetchItem) -> None:
        """Make a page that was taken the next one."""
        if self.first:
            self.first -= 1
            self.items[self.first] = item
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
        self._pages: Counter[str] = Counter()  # let in so far
        self._queues: dict[str, FetchItemQueue] = {}
        self._idle: dict[str, None] = {}  # of these the ones that wait for nothing, the longest idle first
        self._ready: list[tuple[float, int, FetchItemQueue]] = []
        self._order = count()
        self.total_size = 0
        self.any_booked = False

    def __len__(self) -> int:
        """Return the number of queues that have pages waiting or in progress."""
        return sum(1 for queue in self._queues.values() if queue.size or queue.in_progress)

    def queue(self, queue_id: str, own: HostSettings | None = None) -> FetchItemQueue:
        """Return the queue of that name, made when it is new, with its ``own`` settings."""
        found = self._queues.get(queue_id)
        if found is None:
            threads = own.threads if own and own.threads is not None else self._threads
            delay = own.crawl_delay / 1000 if own and own.crawl_delay is not None else self._crawl_delay
            least = own.min_crawl_delay / 1000 if own and own.min_crawl_delay is not None else self._min_crawl_delay
            found = self._queues[queue_id] = FetchItemQueue(queue_id, max(1, threads), delay, least)
        return found

    def size(self, queue_id: str) -> int:
        """Return how many pages wait in a queue."""
        queue = self._queues.get(queue_id)
        return 0 if queue is None else queue.size

    def asks(self, queue_id: str) -> bool:
        """Tell whether a request of a queue is under way."""
        queue = self._queues.get(queue_id)
        return queue is not None and queue.in_progress > 0

    def refusal(self, queue_id: str) -> str:
        """Return the name of the counter of what a queue leaves out when it takes no more, else ""."""
        queue = self._queues.get(queue_id)
        if queue is not None and queue.closed:
            return "AboveExceptionThresholdInQueue"
        return "AboveMaxPagesInQueue" if 0 <= self._max_pages <= self._pages[queue_id] else ""

    def add(self, item: FetchItem) -> str:
        """Put an item into its queue; return the name of the counter of those left out when it takes no more."""
        queue = self.queue(item.queue_id, item.settings)
        if left_out := self.refusal(queue.id):
            return left_out
        if self._max_pages >= 0:
            self._count(queue.id)
        self._idle.pop(queue.id, None)
        queue.items.append(item)
        self.total_size += 1
        self._schedule(queue)
        return ""

    def _schedule(self, queue: FetchItemQueue) -> None:
        if not queue.scheduled and queue.in_progress < queue.max_threads:
            queue.scheduled = True
            heapq.heappush(self._ready, (queue.next_fetch_time, next(self._order), queue))

    def get(self) -> FetchItem | None:
        """Return a page whose queue is ready, and count it as in progress; None when no queue is ready now."""
        now = self._clock()
        while self._ready and self._ready[0][0] <= now:
            queue = heapq.heappop(self._ready)[2]
            queue.scheduled = False
            if queue.next_fetch_time > now:  # put off since it was put into the heap
                self._schedule(queue)
            elif not queue.size:
                if not queue.in_progress and not queue.closed and not self._remembered(queue, now):
                    self._queues.pop(queue.id, None)
                    self._idle.pop(queue.id, None)
                else:
                    self._rest(queue)
            else:
                item = queue.take()
                self.total_size -= 1
                queue.in_progress += 1
                queue.began = queue.began or now
                if queue.size:
                    self._schedule(queue)
                return item
        return None

    def _rest(self, queue: FetchItemQueue) -> None:
        """Remember a queue in which nothing waits, and forget the one that has been so for longest."""
        self._idle[queue.id] = None
        if len(self._idle) > _MOST_IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            if not (self._queues[oldest].in_progress or self._queues[oldest].size):
                del self._queues[oldest]

    def _count(self, queue_id: str) -> None:
        self._pages[queue_id] += 1
        if len(self._pages) > _MOST_COUNTED:  # those with few pages are far from any limit
            self._pages = Counter(dict(self._pages.most_common(_MOST_COUNTED // 2)))

    def _remembered(self, queue: FetchItemQueue, now: float) -> bool:
        """Tell whether a queue's failures still count."""
        return queue.exceptions > 0 and now < queue.last_exception + self._clear_after

    @property
    def ready(self) -> bool:
        """Whether a queue may be asked now."""
        return bool(self._ready) and self._ready[0][0] <= self._clock()

    def next_time(self) -> float | None:
        """Return when a queue may become ready, on the clock's scale; None when none waits for a time."""
        return self._ready[0][0] if self._ready else None

    def finish(self, item: FetchItem, asap: bool = False) -> None:
        """End an item's request: the delay of its queue begins. ``asap``: nothing was asked of the server."""
        queue = self.queue(item.queue_id)
        queue.in_progress -= 1
        delay = 0.0 if asap else queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        queue.next_fetch_time = max(queue.next_fetch_time, self._clock() + delay)
        self._schedule(queue)

    def book(self, queue_id: str, again: bool) -> float:
        """Take a turn of a queue for a request that is no page of it; return in how many seconds it comes.

        ``again``: the queue has just been asked, and its delay has not begun yet.
        """
        new = queue_id not in self._queues
        queue = self.queue(queue_id)
        now = self._clock()
        delay = queue.min_crawl_delay if queue.max_threads > 1 else queue.crawl_delay
        at = max(queue.next_fetch_time, now + delay if again or queue.in_progress else now)
        queue.next_fetch_time = queue.booked = at + delay
        self.any_booked = True
        if new:
            self._rest(queue)
        return at - now

    def wait_for_booked(self, queue_id: str) -> float:
        """Return the seconds for which a page that was taken already has to wait for what was booked since."""
        queue = self._queues.get(queue_id)
        return 0.0 if queue is None else max(0.0, queue.booked - self._clock())

    def defer(self, item: FetchItem, delay: float, retries: int) -> int:
        """Put an item back and its queue off by ``delay`` seconds; drop the queue after ``retries`` times.

        Returns the number of items dropped, the given one included; 0 when it was put back.
        """
        queue = self.queue(item.queue_id)
        queue.in_progress -= 1
        now = self._clock()
        if queue.next_fetch_time <= now:  # else another item of the queue has put it off already
            queue.deferrals += 1
            queue.next_fetch_time = now + delay
        if queue.deferrals > retries:
            return self._drop(queue, close=True) + 1
        queue.put_back(item)
        self.total_size += 1
        self._schedule(queue)
        return 0

    def halve(self) -> dict[str, list[FetchItem]]:
        """Take the later half of what waits in each queue out again, and return it; one page stays at least.

        Targets of redirects stay: what is known of them stands in no row yet.
        """
        taken: dict[str, list[FetchItem]] = {}
        for queue in self._queues.values():
            if queue.size > 1:
                keep = queue.first + (queue.size + 1) // 2
                later = [item for item in queue.items[keep:] if item is not None]
                given = [item for item in later if not item.chain]
                if not given:
                    continue
                taken[queue.id] = given
                queue.items[keep:] = [item for item in later if item.chain]
                self.total_size -= len(given)
                if self._max_pages >= 0:
                    self._pages[queue.id] -= len(given)
        return taken

    def count_exception(self, item: FetchItem, server: bool = True) -> int:
        """Count a failure; return how many items were dropped as the queue had too many.

        A failure of the ``server`` puts the queue off: by ``fetcher.exceptions.per.queue.delay``, twice that after two
        in a row, and so on, up to the time after which failures are forgotten.
        """
        queue = self.queue(item.queue_id)
        now = self._clock()
        if now >= queue.last_exception + self._clear_after:
            queue.exceptions = queue.in_a_row = 0
        queue.exceptions += 1
        queue.last_exception = now
        if server:
            queue.in_a_row += 1
            delay = self._exception_delay * 2 ** min(queue.in_a_row - 1, 30)
            queue.next_fetch_time = max(queue.next_fetch_time, now) + max(0.0, min(delay, self._clear_after))
        if self._max_exceptions < 0 or queue.exceptions < self._max_exceptions or queue.closed:
            return 0
        return self._drop(queue, close=True)

    def good(self, item: FetchItem) -> None:
        """Note that the server of an item is well."""
        self.queue(item.queue_id).in_a_row = 0

    def put_off(self, item: FetchItem, delay: float) -> float:
        """Ask nothing of an item's queue for at least ``delay`` seconds; return in how many it is asked again."""
        queue, now = self.queue(item.queue_id), self._clock()
        queue.next_fetch_time = max(queue.next_fetch_time, now + delay)
        return queue.next_fetch_time - now

    def add_trouble(self, item: FetchItem, seconds: float) -> float:
        """Count seconds that a server failed or was slow; return them all, 0 when most of its time was good."""
        queue = self.queue(item.queue_id)
        queue.trouble += seconds
        return queue.trouble if 2 * queue.trouble > self._clock() - queue.began else 0.0

    def drop(self, item: FetchItem) -> int:
        """Leave what waits in an item's queue for a later batch, and all that may come; return how many wait."""
        return self._drop(self.queue(item.queue_id), close=True)

    def _drop(self, queue: FetchItemQueue, close: bool) -> int:
        dropped = queue.size
        queue.items.clear()
        queue.first = 0
        queue.closed = queue.closed or close
        if queue.closed:
            self._rest(queue)
        self.total_size -= dropped
        return dropped

    def empty(self) -> int:
        """Drop all waiting items; return how many."""
        return sum(self._drop(queue, close=False) for queue in self._queues.values())
