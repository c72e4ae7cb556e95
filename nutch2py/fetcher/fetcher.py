"""The fetcher: takes pages from an iterator, asks for them politely, hands each back with its row filled in."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.fetcher import transport
from nutch2py.fetcher.http_settings import HttpSettings, check_agent
from nutch2py.fetcher.queues import FetchItem, HostSettings, QueueKeys
from nutch2py.record import Field
from nutch2py.webpage import WebPage

__all__ = ["FetchItem", "FetchReport", "Fetcher"]

_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.markers, WebPage.repr_url, WebPage.fetch_time, WebPage.modified_time, WebPage.headers, WebPage.status}
)


@dataclass
class FetchReport:
    """What a fetch came to.

    ``counters``: pages by protocol status (``SUCCESS``, ``NOTFOUND``, …) under the names of Nutch's counter group
    ``FetcherStatus``, ``ROBOTS_DENIED`` and ``ROBOTS_DENIED_MAXCRAWLDELAY``, items left for a later batch
    (``HitByTimeLimit-QueueFeeder``, ``HitByTimeLimit-Queues``, ``hitByThrougputThreshold``,
    ``AboveExceptionThresholdInQueue``, ``AboveMaxRetryAfter``, ``AboveMaxPagesInQueue``,
    ``robots_defer_visits_dropped``) and failures by kind (``exception_timeout``,
    …). ``elapsed``: seconds. ``bytes``: of content.
    """

    pages: int = 0
    errors: int = 0
    bytes: int = 0
    elapsed: float = 0.0
    counters: Counter[str] = field(default_factory=Counter)

    @property
    def hit_by_time_limit(self) -> int:
        """Items that the time limit left for a later batch."""
        return self.counters["HitByTimeLimit-QueueFeeder"] + self.counters["HitByTimeLimit-Queues"]


def log_to_stdout(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


class Fetcher:
    """Fetches pages with at most ``threads`` requests at a time (``fetcher.threads.fetch`` when not given).

    ``host_settings`` gives what the host table says, for ``fetcher.queue.use.host.settings``; ``log`` takes the lines
    that Nutch's fetcher writes to its log. Raises ConfigurationError when a property is malformed or
    ``http.agent.name`` is missing.
    """

    def __init__(
        self,
        conf: Configuration,
        threads: int | None = None,
        host_settings: Callable[[str], HostSettings | None] | None = None,
        log: Callable[[str], None] = log_to_stdout,
    ) -> None:
        check_agent(conf)
        self.conf = conf
        self.threads = max(1, threads if threads and threads > 0 else conf.get_int("fetcher.threads.fetch", 10))
        self.http = HttpSettings.from_conf(conf, self.threads)
        self.carrier = transport.Carrier.from_conf(conf)
        self.keys = QueueKeys(conf)
        use_hosts = self.keys.mode == "byHost" and conf.get_bool("fetcher.queue.use.host.settings", False)
        self.host_settings = host_settings if use_hosts else None
        self.log = log

    @staticmethod
    def fields(conf: Configuration) -> frozenset[Field[Any]]:
        """Return the fields that the rows given to :meth:`run` must have been read with."""
        if conf.get_bool("fetcher.parse", False):
            from nutch2py.parser.parsing import Parsing

            return _FIELDS | Parsing(conf).fields
        return _FIELDS

    def run(
        self,
        items: Iterator[FetchItem],
        sink: Callable[[FetchItem], None],
        status: Callable[[str], None] | None = None,
        lookup: Callable[[str], WebPage | None] | None = None,
    ) -> FetchReport:
        """Fetch every item and hand it to ``sink`` with its page updated; return the counts.

        ``items`` is advanced and ``sink`` and ``lookup`` are called in one thread of their own, never two at a time; no
        more than ``fetcher.queue.depth.multiplier`` × threads items are held. An exception that ``items`` or ``sink``
        raises ends the fetch and is raised here. ``status`` is called every second with a line for a terminal.
        ``lookup`` gives the row of a key, None when there is none: with ``http.redirect.max`` above 0 the targets of
        redirects are fetched at once and handed to ``sink`` as items of their own.
        """
        from nutch2py.fetcher.run import FetchRun

        started = time.monotonic()
        fetch = FetchRun(self, items, sink, status, lookup)
        try:
            transport.run(self.http, self.carrier, self.threads, fetch.main)
        finally:
            fetch.close()
        fetch.report.elapsed = time.monotonic() - started
        return fetch.report
