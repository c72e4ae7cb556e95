"""The state of a fetch that its parts share: what it came to so far, what waits, and whether it goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues
from nutch2py.fetcher.stats.fetch_histogram import SIZE_BOUNDS_BYTES, TIME_BOUNDS_MS, FetchHistogram
from nutch2py.fetcher.stats.host_failures import HostFailures
from nutch2py.records.cells import ProtocolStatus


@dataclass
class FetchReport:
    """What a fetch came to.

    ``counters``: pages by protocol status (``SUCCESS``, ``NOTFOUND``, …) under the names of Nutch's counter group
    ``FetcherStatus``, ``ROBOTS_DENIED`` and ``ROBOTS_DENIED_MAXCRAWLDELAY``, items left for a later batch
    (``HitByTimeLimit-QueueFeeder``, ``HitByTimeLimit-Queues``, ``hitByThrougputThreshold``,
    ``AboveExceptionThresholdInQueue``, ``AboveMaxRetryAfter``, ``AboveMaxPagesInQueue``, ``AboveMaxTroubleInQueue``,
    ``robots_defer_visits_dropped``) and failures by kind (``exception_timeout``,
    …). ``elapsed_seconds``: seconds. ``bytes``: of content. ``response_times``, ``response_sizes``: of the answers, in ms and bytes.
    ``host_failures``: hosts by what was the matter. ``filtered_links``: links and redirects that no rule lets in, by what decided.
    """

    pages: int = 0
    errors: int = 0
    bytes: int = 0
    elapsed_seconds: float = 0.0
    counters: Counter[str] = field(default_factory=Counter)
    response_times: FetchHistogram = field(default_factory=lambda: FetchHistogram(TIME_BOUNDS_MS))
    response_sizes: FetchHistogram = field(default_factory=lambda: FetchHistogram(SIZE_BOUNDS_BYTES))
    host_failures: HostFailures = field(default_factory=HostFailures)
    filtered_links: Counter[str] = field(default_factory=Counter)

    @property
    def hit_by_time_limit(self) -> int:
        """Items that the time limit left for a later batch."""
        return self.counters["HitByTimeLimit-QueueFeeder"] + self.counters["HitByTimeLimit-Queues"]


class FetchedPage(NamedTuple):
    """A page that is done: ``response`` is None when nothing was asked (robots)."""

    item: FetchItem
    response: FetchResponse | None
    status: ProtocolStatus


@dataclass
class FetchState:
    """Where a fetch stands.

    ``active_requests``: requests under way; ``slow_requests``: those of them that have given their thread back. ``is_feeding``: more items
    may come; ``is_stopped``: no new requests. The queues are there once the event loop runs.
    """

    options: FetchOptions
    log: Callable[[str], None]
    report: FetchReport = field(default_factory=FetchReport)
    active_requests: int = 0
    slow_requests: int = 0
    is_feeding: bool = True
    is_stopped: bool = False
    queues: FetchItemQueues = field(init=False)

    @property
    def busy_threads(self) -> int:
        """Threads that are taken."""
        return self.active_requests - self.slow_requests

    @property
    def is_past_deadline(self) -> bool:
        """Whether the time limit is over."""
        return time.time() >= self.options.deadline
