"""The fetcher: takes pages from an iterator, asks for them politely, hands each back with its row filled in."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.fetcher import transport
from nutch2py.fetcher.carrier import Carrier
from nutch2py.fetcher.descriptors import room
from nutch2py.fetcher.feeder import Rows
from nutch2py.fetcher.fetch_options import MOST_SLOW, FetchOptions
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.http_settings import HttpSettings, check_agent
from nutch2py.fetcher.queue_keys import QueueKeys
from nutch2py.fetcher.queues import FetchItem, HostSettings
from nutch2py.fetcher.rendering import OpenRenderer
from nutch2py.fetcher.run import FetchRun
from nutch2py.record import Field
from nutch2py.webpage import WebPage

__all__ = ["FetchItem", "FetchReport", "Fetcher", "Rows"]

_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.markers, WebPage.repr_url, WebPage.fetch_time, WebPage.modified_time, WebPage.headers, WebPage.status}
)


def log_to_stdout(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


class Fetcher:
    """Fetches pages as ``options`` ask, else as the properties do, ``threads`` standing for ``fetcher.threads.fetch``.

    ``host_settings`` gives what the host table says, for ``fetcher.queue.use.host.settings``; ``log`` takes the lines
    that Nutch's fetcher writes to its log; ``renderer`` opens a browser for pages that scripts make. Raises
    ConfigurationError when a property is malformed or ``http.agent.name`` is missing.
    """

    def __init__(
        self,
        conf: Configuration,
        threads: int | None = None,
        host_settings: Callable[[str], HostSettings | None] | None = None,
        log: Callable[[str], None] = log_to_stdout,
        options: FetchOptions | None = None,
        renderer: OpenRenderer | None = None,
    ) -> None:
        check_agent(conf)
        self.conf = conf
        self.options = options or FetchOptions.of(conf, threads or 0)
        self.http = HttpSettings.from_conf(
            conf, self.options.threads, sitemap=self.options.sitemap, keep_exchange=bool(self.options.warc)
        )
        self.carrier = Carrier.from_conf(conf)
        self.keys = QueueKeys(conf, self.http.names)
        use_hosts = self.keys.mode == "byHost" and conf.get_bool("fetcher.queue.use.host.settings", False)
        self.host_settings = host_settings if use_hosts else None
        self.log = log
        self._renderer = None if renderer is None else partial(renderer, self.http)

    @staticmethod
    def fields(conf: Configuration, options: FetchOptions) -> frozenset[Field[Any]]:
        """Return the fields that the rows given to :meth:`run` must have been read with."""
        if options.parse:
            from nutch2py.parser.parsing import Parsing

            return _FIELDS | Parsing(conf).fields
        return _FIELDS

    def run(
        self,
        items: Rows | Iterator[FetchItem],
        sink: Callable[[FetchItem], None],
        status: Callable[[str], None] | None = None,
        lookup: Callable[[str], WebPage | None] | None = None,
    ) -> FetchReport:
        """Fetch every item and hand it to ``sink`` with its page updated; return the counts.

        ``items`` is advanced and ``sink`` and ``lookup`` are called in one thread of their own, never two at a time; no
        more than ``fetcher.queue.depth.multiplier`` × threads items are held. With :class:`Rows`, which name what is
        not read yet, a host with many pages takes no room from the others. An exception that ``items`` or ``sink``
        raises ends the fetch and is raised here. ``status`` is called every second with a line for a terminal, unless
        nothing moves and the table alone is waited for. ``lookup`` gives the row of a key, None when there is none:
        with ``http.redirect.max`` above 0 the targets of redirects are fetched at once and handed to ``sink`` as items
        of their own.
        """
        started = time.monotonic()
        rows = items if isinstance(items, Rows) else Rows.of(items)
        slow = self.conf.get_int("fetcher.threads.slow", MOST_SLOW)
        found = room(self.options.threads, max(0, slow), self.http.connections)
        self.http.connections = found.connections
        conf = self.conf
        if found.slow < slow:
            conf = conf.copy()
            conf.set("fetcher.threads.slow", str(found.slow))
        fetch = FetchRun(
            conf,
            replace(self.options, threads=found.threads),
            self.keys,
            self.host_settings,
            self.log,
            rows,
            sink,
            status,
            lookup,
            self._renderer,
        )
        try:
            stats = transport.run(self.http, self.carrier, fetch.main)
        finally:
            fetch.close()
        if stats:
            self.log("Scrapy: " + ", ".join(f"{name}={stats[name]}" for name in sorted(stats)))
        fetch.report.elapsed = time.monotonic() - started
        if (counts := self.http.names.counts).names:
            self.log(str(counts))
        return fetch.report
