"""What becomes of a finished page, off the event loop: its row is filled in, parsed if wanted, given to the sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchedPage
from nutch2py.fetcher.output.page_updater import PageUpdater
from nutch2py.fetcher.output.warc import WarcFileWriter
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.keys import reverse_url, unreverse_url


class PageStore:
    """Fills rows in and gives them to ``sink``; used in one thread only. ``links``: counts what no rule lets in."""

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        sink: Callable[[FetchItem], None],
        lookup_row: Callable[[str], WebPage | None] | None,
        log: Callable[[str], None],
        filtered_links: Counter[str] | None = None,
    ) -> None:
        self._filtered_links = Counter[str]() if filtered_links is None else filtered_links
        self._sink, self._lookup_row, self._log = sink, lookup_row, log
        self._updater = PageUpdater(conf, self._filtered_links)
        self._fetch_interval = conf.get_int("db.fetch.interval.default", 2592000)
        self._max_redirects = conf.get_int("http.redirect.max", 0)
        self._skip_exceeded_redirects = conf.get_bool("http.redirect.max.exceeded.skip", False)
        self._keep_content = conf.get_bool("fetcher.store.content", True)
        self._warc = WarcFileWriter(conf, options.warc_dir) if options.warc_dir else None
        self._parsing: Any = None
        if options.parse:
            from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient

            self._parsing = ParseWorkerClient(conf)

    def store(self, finished: Iterable[FetchedPage]) -> None:
        """Store pages; what a page's own data raise is its status, what the sink raises is raised."""
        for item, answer, status in finished:
            page = item.page
            if self._warc is not None and answer is not None:
                self._warc.write(item, answer.as_received())
            try:
                if answer is None:
                    self._updater.mark_fetched(page, status)
                else:
                    used_up = 0 < self._max_redirects <= len(item.redirect_chain)
                    self._updater.apply_response(
                        item.url, page, answer, status, not (used_up and self._skip_exceeded_redirects)
                    )
                    if self._parsing is not None:
                        self._parse(item)
            except PluginError as error:
                item.plugin_error = failed = error.for_page(item.url)
                self._updater.mark_fetched(page, ProtocolStatus(Code.FAILED, (f"{failed.plugin_id}: {failed.reason}",)))
            except Exception as error:  # noqa: BLE001 - the data of one page must not end the others
                self._log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                self._updater.mark_fetched(page, ProtocolStatus(Code.FAILED, (f"{type(error).__name__}: {error}",)))
            if answer is not None and not self._keep_content and answer.failure is None:
                page.content = b""
            self._sink(item)

    def close(self) -> None:
        """End what is written beside the rows."""
        if self._warc is not None:
            self._warc.close()
        if self._parsing is not None:
            self._parsing.close()

    def _parse(self, item: FetchItem) -> None:
        try:
            outcome = self._parsing.process(item.key, item.page)
            item.plugin_error = outcome.plugin_error(item.url)
            self._filtered_links.update(dict(outcome.left_out))
        except Exception as error:  # noqa: BLE001 - the page stays fetched, and parse may try again
            self._log(f"Error parsing {item.url}: {type(error).__name__}: {error}")

    def make_redirect_item(self, item: FetchItem, status: ProtocolStatus) -> FetchItem | None:
        """Return the target of a redirect as an item of the same batch.

        None when it is filtered out, was met on the way here, or has been fetched in this batch already; and when it is
        of another batch, in which it stays.
        """
        moved = self._updater.get_redirect(item.url, status)
        if moved is None or moved.url is None or moved.url in (item.url, *item.redirect_chain):
            return None
        key = reverse_url(moved.url)
        batch = item.page.markers.get(Mark.GENERATE)
        page = self._lookup_row(key) if self._lookup_row is not None else None
        if page is None:
            page = WebPage()
            if self._lookup_row is not None:  # surely a new row, for which no other job has set it
                page.fetch_interval = self._fetch_interval
        elif batch is not None and (page.markers.get(Mark.GENERATE) or batch == page.markers.get(Mark.FETCH)):
            return None
        if batch is not None:
            page.markers[Mark.GENERATE] = batch
            page.batch_id = batch
        return FetchItem(key, unreverse_url(key), page, redirect_chain=(*item.redirect_chain, item.url))
