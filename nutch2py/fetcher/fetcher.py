"""The fetcher: takes pages from an iterator, requests them politely and hands each back with its row updated."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader.transport import ScrapyTransport, run_with_transport
from nutch2py.fetcher.downloader.transport_settings import TransportSettings
from nutch2py.fetcher.engine.feeder import RowSource
from nutch2py.fetcher.engine.fetch_run import FetchCallbacks, FetchRun, FetchRunSettings
from nutch2py.fetcher.fetch_options import DEFAULT_SLOW_THREADS, FetchOptions
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.page_renderer import RendererFactory
from nutch2py.fetcher.protocols.http_settings import HttpSettings, require_agent_name
from nutch2py.fetcher.queues.fetch_queues import FetchItem, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.runtime.fd_budget import compute_fd_budget
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

__all__ = ["FetchItem", "FetchReport", "Fetcher", "RowSource"]

_ROW_FIELDS: frozenset[RecordField] = frozenset(
    {WebPage.markers, WebPage.repr_url, WebPage.fetch_time, WebPage.modified_time, WebPage.headers, WebPage.status}
)


def log_to_stdout(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


def _ignore_status(_: str) -> None:
    pass


class Fetcher:
    """Fetches pages by the given ``options``, or by the properties.

    Args:
        conf: Properties of the crawl.
        threads: Overrides ``fetcher.threads.fetch``.
        get_host_settings: Returns the settings of a queue in the host table (``fetcher.queue.use.host.settings``).
        log: Receives the lines that Nutch's fetcher logs.
        options: Options of this fetch.
        open_renderer: Creates the browser renderer for pages that need JavaScript.

    Raises:
        ConfigurationError: A property is malformed, or ``http.agent.name`` is missing.
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
    def get_required_fields(conf: Configuration, options: FetchOptions) -> frozenset[RecordField]:
        """Return the fields that rows passed to :meth:`run` must have been read with."""
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
        report: FetchReport | None = None,
    ) -> FetchReport:
        """Fetch every item and pass it to ``sink`` with its page updated; return the report.

        ``items``, ``sink`` and ``lookup_row`` are used in one separate thread, never concurrently. At most
        ``fetcher.queue.depth.multiplier`` × threads items are held. With a :class:`RowSource`, which lists keys before
        rows are read, a host with many pages takes no capacity from others. An exception of ``items`` or ``sink``
        stops the fetch and is raised here.

        Args:
            items: Pages to fetch.
            sink: Receives each finished item.
            on_status: Receives a status line every second, unless the fetch only waits for the table.
            lookup_row: Returns the row of a key, or None. With ``http.redirect.max`` above 0, redirect targets are
                fetched immediately and passed to ``sink`` as items.
            report: An empty report, which is filled while the fetch runs: it is complete up to an exception.
        """
        started = time.monotonic()
        rows = items if isinstance(items, RowSource) else RowSource.from_items(items)
        slow = self.conf.get_int("fetcher.threads.slow", DEFAULT_SLOW_THREADS)
        budget = compute_fd_budget(self.options.threads, max(0, slow), self.http_settings.max_connections)
        self.http_settings.max_connections = budget.connections
        options = replace(self.options, threads=budget.threads)
        settings = FetchRunSettings.from_conf(self.conf, budget)
        callbacks = FetchCallbacks(
            sink, self.log, on_status or _ignore_status, lookup_row, self.get_host_settings, self._open_renderer
        )
        report = FetchReport() if report is None else report
        with ExitStack() as resources:

            async def main(transport: ScrapyTransport) -> None:
                run = FetchRun(self.conf, options, settings, self.queue_ids, rows, callbacks, transport, report)
                resources.callback(run.close)
                await run.run()

            stats = run_with_transport(self.http_settings, self.transport_settings, main)
        if stats:
            self.log("Scrapy: " + ", ".join(f"{name}={stats[name]}" for name in sorted(stats)))
        report.elapsed_seconds = time.monotonic() - started
        if (counts := self.http_settings.dns_cache.stats).lookups:
            self.log(str(counts))
        return report
