"""Stores finished pages in the table thread: updates the row, parses it if configured, and passes it to the sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchedPage
from nutch2py.fetcher.output.page_updater import PageUpdater
from nutch2py.fetcher.output.warc import WarcFileWriter
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code

if TYPE_CHECKING:
    from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient


class PageStore:
    """Updates rows and passes them to ``sink``; for use in a single thread.

    ``filtered_links`` counts rejected links by rule.
    """

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        sink: Callable[[FetchItem], None],
        log: Callable[[str], None],
        filtered_links: Counter[str] | None = None,
    ) -> None:
        self._filtered_links = Counter[str]() if filtered_links is None else filtered_links
        self._sink, self._log = sink, log
        self.updater = PageUpdater(conf, self._filtered_links)
        self._max_redirects = conf.get_int("http.redirect.max", 0)
        self._skip_exceeded_redirects = conf.get_bool("http.redirect.max.exceeded.skip", False)
        self._keep_content = conf.get_bool("fetcher.store.content", True)
        self._warc = WarcFileWriter(conf, options.warc_dir) if options.warc_dir else None
        self._parse_worker: ParseWorkerClient | None = None
        if options.parse:
            from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient

            self._parse_worker = ParseWorkerClient(conf)

    def store(self, finished: Iterable[FetchedPage]) -> None:
        """Store pages; an error caused by a page becomes its status, an error of the sink is raised."""
        for item, response, status in finished:
            page = item.page
            if self._warc is not None and response is not None:
                self._warc.write(item, response.as_received())
            if status.code == Code.FAILED or (response is not None and response.is_local_failure):
                self._postpone(item, status)
                continue
            try:
                if response is None:
                    self.updater.mark_fetched(page, status)
                else:
                    redirects_exceeded = 0 < self._max_redirects <= len(item.redirect_chain)
                    self.updater.apply_response(
                        item.url, page, response, status, not (redirects_exceeded and self._skip_exceeded_redirects)
                    )
                    if self._parse_worker is not None:
                        self._parse(self._parse_worker, item)
            except PluginError as error:
                item.plugin_error = plugin_error = error.for_page(item.url)
                self._postpone(item, ProtocolStatus(Code.FAILED, (f"{plugin_error.plugin_id}: {plugin_error.reason}",)))
                continue
            except Exception as error:  # noqa: BLE001 - the data of one page must not stop the others
                self._log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                self._postpone(item, ProtocolStatus(Code.FAILED, (f"{type(error).__name__}: {error}",)))
                continue
            if response is not None and not self._keep_content and response.failure is None:
                page.content = b""
            self._sink(item)

    def close(self) -> None:
        """Close the WARC files and the parse worker."""
        if self._warc is not None:
            self._warc.close()
        if self._parse_worker is not None:
            self._parse_worker.close()

    def _postpone(self, item: FetchItem, status: ProtocolStatus) -> None:
        """Store why a page was not fetched, without what was already changed in its row."""
        item.page = self.updater.postponed_row(item.page, status)
        if not item.redirect_chain:  # updatedb creates the row of a target that is not known yet
            self._sink(item)

    def _parse(self, worker: ParseWorkerClient, item: FetchItem) -> None:
        try:
            outcome = worker.parse_row(item.key, item.page)
            item.plugin_error = outcome.plugin_error(item.url)
            self._filtered_links.update(dict(outcome.skipped_links))
        except Exception as error:  # noqa: BLE001 - the page stays fetched; a parse job may retry it
            self._log(f"Error parsing {item.url}: {type(error).__name__}: {error}")
