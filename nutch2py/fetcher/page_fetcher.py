"""The fetcher: takes pages from an iterator, asks for them politely, hands each back with its row filled in."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader import transport
from nutch2py.fetcher.downloader.transport_settings import TransportSettings
from nutch2py.fetcher.engine.feeder import RowSource
from nutch2py.fetcher.engine.fetch_run import FetchRun
from nutch2py.fetcher.fetch_options import DEFAULT_SLOW_THREADS, FetchOptions
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.page_renderer import RendererFactory
from nutch2py.fetcher.protocols.http_settings import HttpSettings, require_agent_name
from nutch2py.fetcher.queues.fetch_queues import FetchItem, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.runtime.fd_budget import compute_fd_budget
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage

__all__ = ["FetchItem", "FetchReport", "Fetcher", "RowSource"]

_ROW_FIELDS: frozenset[Field[Any]] = frozenset(
    {WebPage.markers, WebPage.repr_url, WebPage.fetch_time, WebPage.modified_time, WebPage.headers, WebPage.status}
)


def log_to_stdout(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


class Fetcher:
    """Fetches pages as ``options`` ask, else as the properties do, ``threads`` standing for ``fetcher.threads.fetch``.

    ``get_host_settings`` gives what the host table says, for ``fetcher.queue.use.host.settings``; ``log`` takes the lines
    that Nutch's fetcher writes to its log; ``renderer`` opens a browser for pages that scripts make. Raises
    ConfigurationError when a property is malformed or ``http.agent.name`` is missing.
    """

    def __init__(
        self,
        conf: Configuration,
        threads: int | None = None,
        get_host_settings: Callable[[str], HostFetchSettings | None] | None = None,
        log: Callable[[str], None] = log_to_stdout,
        options: FetchOptions | None = None,
        open_renderer: RendererFactory | None = None,
    ) -> None:
        require_agent_name(conf)
        self.conf = conf
        self.options = options or FetchOptions.from_conf(conf, threads or 0)
        self.http_settings = HttpSettings.from_conf(
            conf, self.options.threads, sitemap=self.options.is_sitemap, keep_exchange=bool(self.options.warc_dir)
        )
        self.transport_settings = TransportSettings.from_conf(conf)
        self.queue_ids = QueueIdResolver(conf, self.http_settings.dns_cache)
        use_hosts = self.queue_ids.mode == "byHost" and conf.get_bool("fetcher.queue.use.host.settings", False)
        self.get_host_settings = get_host_settings if use_hosts else None
        self.log = log
        self._open_renderer = None if open_renderer is None else partial(open_renderer, self.http_settings)

    @staticmethod
    def get_required_fields(conf: Configuration, options: FetchOptions) -> frozenset[Field[Any]]:
        """Return the fields that the rows given to :meth:`run` must have been read with."""
        if options.parse:
            from nutch2py.parser.row_parser import RowParser

            return _ROW_FIELDS | RowParser(conf).fields
        return _ROW_FIELDS

    def run(
        self,
        items: RowSource | Iterator[FetchItem],
        sink: Callable[[FetchItem], None],
        on_status: Callable[[str], None] | None = None,
        lookup_row: Callable[[str], WebPage | None] | None = None,
    ) -> FetchReport:
        """Fetch every item and hand it to ``sink`` with its page updated; return the counts.

        ``items`` is advanced and ``sink`` and ``lookup_row`` are called in one thread of their own, never two at a time; no
        more than ``fetcher.queue.depth.multiplier`` × threads items are held. With :class:`RowSource`, which name what is
        not read yet, a host with many pages takes no room from the others. An exception that ``items`` or ``sink``
        raises ends the fetch and is raised here. ``on_status`` is called every second with a line for a terminal, unless
        nothing moves and the table alone is waited for. ``lookup_row`` gives the row of a key, None when there is none:
        with ``http.redirect.max`` above 0 the targets of redirects are fetched at once and handed to ``sink`` as items
        of their own.
        """
        started = time.monotonic()
        rows = items if isinstance(items, RowSource) else RowSource.from_items(items)
        slow = self.conf.get_int("fetcher.threads.slow", DEFAULT_SLOW_THREADS)
        found = compute_fd_budget(self.options.threads, max(0, slow), self.http_settings.max_connections)
        self.http_settings.max_connections = found.connections
        conf = self.conf
        if found.slow_threads < slow:
            conf = conf.copy()
            conf.set("fetcher.threads.slow", str(found.slow_threads))
        fetch = FetchRun(
            conf,
            replace(self.options, threads=found.threads),
            self.queue_ids,
            self.get_host_settings,
            self.log,
            rows,
            sink,
            on_status,
            lookup_row,
            self._open_renderer,
        )
        try:
            stats = transport.run_with_transport(self.http_settings, self.transport_settings, fetch.main)
        finally:
            fetch.close()
        if stats:
            self.log("Scrapy: " + ", ".join(f"{name}={stats[name]}" for name in sorted(stats)))
        fetch.report.elapsed_seconds = time.monotonic() - started
        if (counts := self.http_settings.dns_cache.stats).lookups:
            self.log(str(counts))
        return fetch.report
