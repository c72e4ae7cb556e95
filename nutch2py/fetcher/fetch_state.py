"""The state of a fetch that its parts share: what it came to so far, what waits, and whether it goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from nutch2py.cells import ProtocolStatus
from nutch2py.fetcher.answer import Answer
from nutch2py.fetcher.distribution import SIZES, TIMES, Distribution
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.queues import FetchItem, FetchItemQueues
from nutch2py.fetcher.troubles import Troubles


@dataclass
class FetchReport:
    """What a fetch came to.

    ``counters``: pages by protocol status (``SUCCESS``, ``NOTFOUND``, …) under the names of Nutch's counter group
    ``FetcherStatus``, ``ROBOTS_DENIED`` and ``ROBOTS_DENIED_MAXCRAWLDELAY``, items left for a later batch
    (``HitByTimeLimit-QueueFeeder``, ``HitByTimeLimit-Queues``, ``hitByThrougputThreshold``,
    ``AboveExceptionThresholdInQueue``, ``AboveMaxRetryAfter``, ``AboveMaxPagesInQueue``, ``AboveMaxTroubleInQueue``,
    ``robots_defer_visits_dropped``) and failures by kind (``exception_timeout``,
    …). ``elapsed``: seconds. ``bytes``: of content. ``times``, ``sizes``: of the answers, in ms and bytes.
    ``troubles``: hosts by what was the matter. ``links``: links and redirects that no rule lets in, by what decided.
    """

    pages: int = 0
    errors: int = 0
    bytes: int = 0
    elapsed: float = 0.0
    counters: Counter[str] = field(default_factory=Counter)
    times: Distribution = field(default_factory=lambda: Distribution(TIMES))
    sizes: Distribution = field(default_factory=lambda: Distribution(SIZES))
    troubles: Troubles = field(default_factory=Troubles)
    links: Counter[str] = field(default_factory=Counter)

    @property
    def hit_by_time_limit(self) -> int:
        """Items that the time limit left for a later batch."""
        return self.counters["HitByTimeLimit-QueueFeeder"] + self.counters["HitByTimeLimit-Queues"]


class Finished(NamedTuple):
    """A page that is done: ``answer`` is None when nothing was asked (robots)."""

    item: FetchItem
    answer: Answer | None
    status: ProtocolStatus


@dataclass
class FetchState:
    """Where a fetch stands.

    ``active``: requests under way; ``slow``: those of them that have given their thread back. ``feeding``: more items
    may come; ``stopped``: no new requests. The queues are there once the event loop runs.
    """

    options: FetchOptions
    log: Callable[[str], None]
    report: FetchReport = field(default_factory=FetchReport)
    active: int = 0
    slow: int = 0
    feeding: bool = True
    stopped: bool = False
    queues: FetchItemQueues = field(init=False)

    @property
    def busy(self) -> int:
        """Threads that are taken."""
        return self.active - self.slow

    @property
    def late(self) -> bool:
        """Whether the time limit is over."""
        return time.time() >= self.options.deadline
