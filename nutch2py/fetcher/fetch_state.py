"""State of a fetch shared by its components: options, report, queues and progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues
from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.fetcher.stats.host_failures import HostFailures
from nutch2py.fetcher.stats.host_times import HostTimes
from nutch2py.fetcher.stats.response_histograms import SIZE_BOUNDS_BYTES, TIME_BOUNDS_MS, response_histogram
from nutch2py.records.cells import ProtocolStatus
from nutch2py.support.histogram import HistogramCounter

LOCAL_FAILURE_COUNTER = "LOCAL_FAILURE"
"""Counter of pages that were not fetched for a reason of this machine; by kind they are in ``exception_…``."""


@dataclass
class FetchReport:
    """Result of a fetch.

    Attributes:
        counters: Pages by protocol status (``SUCCESS``, ``NOTFOUND``, …) under the names of Nutch's counter group
            ``FetcherStatus``; ``ROBOTS_DENIED`` and ``ROBOTS_DENIED_MAXCRAWLDELAY``; ``LOCAL_FAILURE``; items deferred
            to a later batch (``HitByTimeLimit-QueueFeeder``, ``HitByTimeLimit-Queues``, ``hitByThrougputThreshold``,
            ``AboveExceptionThresholdInQueue``, ``AboveMaxRetryAfter``, ``AboveMaxPagesInQueue``,
            ``AboveMaxTroubleInQueue``, ``HostHeld``, ``LastHosts``, ``robots_defer_visits_dropped``); failures by kind
            (``exception_timeout``, …).
        elapsed_seconds: Duration of the fetch.
        bytes: Total size of the content, in bytes.
        response_times: Response times in milliseconds.
        response_sizes: Response sizes in bytes.
        host_failures: Hosts by reason of failure.
        host_times: Response times by host.
        filtered_links: Links and redirects rejected by the URL filters, by deciding rule.
        queues: The queues that will take longest, as of the last status line.
    """

    pages: int = 0
    errors: int = 0
    bytes: int = 0
    elapsed_seconds: float = 0.0
    counters: Counter[str] = field(default_factory=Counter)
    response_times: HistogramCounter = field(default_factory=lambda: response_histogram(TIME_BOUNDS_MS))
    response_sizes: HistogramCounter = field(default_factory=lambda: response_histogram(SIZE_BOUNDS_BYTES))
    host_failures: HostFailures = field(default_factory=HostFailures)
    host_times: HostTimes = field(default_factory=HostTimes)
    filtered_links: Counter[str] = field(default_factory=Counter)
    queues: list[QueueState] = field(default_factory=list)

    @property
    def hit_by_time_limit(self) -> int:
        """Number of items that the time limit deferred to a later batch."""
        return self.counters["HitByTimeLimit-QueueFeeder"] + self.counters["HitByTimeLimit-Queues"]


class FetchedPage(NamedTuple):
    """A finished page; ``response`` is None if no request was sent (robots.txt)."""

    item: FetchItem
    response: FetchResponse | None
    status: ProtocolStatus


@dataclass
class FetchState:
    """Progress of a fetch.

    Attributes:
        active_requests: Requests in progress.
        slow_requests: Those of ``active_requests`` that have released their thread.
        is_feeding: Whether more items may arrive.
        is_stopped: Whether no new requests are started.
        queues: The fetch queues.
    """

    options: FetchOptions
    log: Callable[[str], None]
    queues: FetchItemQueues
    report: FetchReport = field(default_factory=FetchReport)
    active_requests: int = 0
    slow_requests: int = 0
    is_feeding: bool = True
    is_stopped: bool = False

    @property
    def busy_threads(self) -> int:
        """Number of threads in use."""
        return self.active_requests - self.slow_requests

    @property
    def is_past_deadline(self) -> bool:
        """Whether the time limit is reached."""
        return time.time() >= self.options.deadline
