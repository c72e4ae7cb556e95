"""What becomes of a finished page, off the event loop: its row is filled in, parsed if wanted, given to the sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from nutch2py.cells import ProtocolStatus
from nutch2py.conf import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import Finished
from nutch2py.fetcher.outcome import Outcome
from nutch2py.fetcher.queues import FetchItem
from nutch2py.fetcher.warc import WarcFiles
from nutch2py.plugin_guard import PluginError
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.webpage import Mark, WebPage
from nutch2py.webpage import ProtocolStatusCode as Code


class PageStore:
    """Fills rows in and gives them to ``sink``; used in one thread only. ``links``: counts what no rule lets in."""

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        sink: Callable[[FetchItem], None],
        lookup: Callable[[str], WebPage | None] | None,
        log: Callable[[str], None],
        links: Counter[str] | None = None,
    ) -> None:
        self._links = Counter[str]() if links is None else links
        self._sink, self._lookup, self._log = sink, lookup, log
        self._outcome = Outcome(conf, self._links)
        self._interval = conf.get_int("db.fetch.interval.default", 2592000)
        self._max_redirects = conf.get_int("http.redirect.max", 0)
        self._skip_exceeded = conf.get_bool("http.redirect.max.exceeded.skip", False)
        self._keep_content = conf.get_bool("fetcher.store.content", True)
        self._warc = WarcFiles(conf, options.warc) if options.warc else None
        self._parsing: Any = None
        if options.parse:
            from nutch2py.parser.bounded_parsing import BoundedParsing

            self._parsing = BoundedParsing(conf)

    def put(self, finished: Iterable[Finished]) -> None:
        """Store pages; what a page's own data raise is its status, what the sink raises is raised."""
        for item, answer, status in finished:
            page = item.page
            if self._warc is not None and answer is not None:
                self._warc.write(item, answer.as_received())
            try:
                if answer is None:
                    self._outcome.mark(page, status)
                else:
                    used_up = 0 < self._max_redirects <= len(item.chain)
                    self._outcome.apply(item.url, page, answer, status, not (used_up and self._skip_exceeded))
                    if self._parsing is not None:
                        self._parse(item)
            except PluginError as error:
                item.plugin_error = failed = error.of_page(item.url)
                self._outcome.mark(page, ProtocolStatus(Code.FAILED, (f"{failed.plugin}: {failed.reason}",)))
            except Exception as error:  # noqa: BLE001 - the data of one page must not end the others
                self._log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                self._outcome.mark(page, ProtocolStatus(Code.FAILED, (f"{type(error).__name__}: {error}",)))
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
            self._links.update(dict(outcome.left_out))
        except Exception as error:  # noqa: BLE001 - the page stays fetched, and parse may try again
            self._log(f"Error parsing {item.url}: {type(error).__name__}: {error}")

    def target_of(self, item: FetchItem, status: ProtocolStatus) -> FetchItem | None:
        """Return the target of a redirect as an item of the same batch.

        None when it is filtered out, was met on the way here, or has been fetched in this batch already; and when it is
        of another batch, in which it stays.
        """
        moved = self._outcome.redirect(item.url, status)
        if moved is None or moved.target is None or moved.target in (item.url, *item.chain):
            return None
        key = reverse_url(moved.target)
        batch = item.page.markers.get(Mark.GENERATE)
        page = self._lookup(key) if self._lookup is not None else None
        if page is None:
            page = WebPage()
            if self._lookup is not None:  # surely a new row, for which no other job has set it
                page.fetch_interval = self._interval
        elif batch is not None and (page.markers.get(Mark.GENERATE) or batch == page.markers.get(Mark.FETCH)):
            return None
        if batch is not None:
            page.markers[Mark.GENERATE] = batch
            page.batch_id = batch
        return FetchItem(key, unreverse_url(key), page, chain=(*item.chain, item.url))
