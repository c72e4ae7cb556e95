"""Pages that were fetched, into the table: what a fetch task writes, and what a spider of Scrapy's does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.jobs.batches.batch_lists import BatchListStore, put_redirect_target
from nutch2py.records.cells import decode_text
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.table import DataStore, WriteBatch

_FLUSH_SECONDS = 5.0  # what a killed fetcher loses at most
_REDIRECT_STATUSES = (CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


class PageSink:
    """Writes pages, a few seconds' worth at once.

    ``check`` raises when another job has taken this one's place; ``done`` is told of each page. ``parsing``: they are
    parsed already. ``all_join``: every row joins the list of its batch, not only the targets of redirects.
    """

    def __init__(
        self,
        store: DataStore[WebPage],
        conf: Configuration,
        check_lock: Callable[[], None],
        on_written: Callable[[FetchItem], None],
        *,
        is_parsed: bool,
        lists_all_rows: bool = False,
    ) -> None:
        self._store, self._batch_lists, self._check_lock, self._on_written = (
            store,
            BatchListStore(conf),
            check_lock,
            on_written,
        )
        self._is_parsed, self._lists_all_rows = is_parsed, lists_all_rows
        self._list_batch: WriteBatch = self._batch_lists.store.batch()
        # first the notes of links that are dropped, which the pages have lost once they are written, and list entries
        self._batch: WriteBatch = store.batch(before_flush=self._write_lists_first)
        self._flushed_at = time.monotonic()

    @property
    def rejected_rows(self) -> int:
        """How many rows the store has refused."""
        return len(self._batch.rejected)

    def __call__(self, item: FetchItem) -> None:
        """Write a page, now or within seconds."""
        page = item.page
        gone = self._find_dropped_links(item)
        if gone:
            self._batch_lists.put_dropped_links(self._list_batch, page.markers.get(Mark.FETCH) or "", item.key, gone)
        batch_id = page.markers.get(Mark.GENERATE)
        if (item.redirect_chain or self._lists_all_rows) and batch_id is not None:
            put_redirect_target(self._list_batch, batch_id, item.key)  # whoever reads through the list finds it, too
        self._batch.put(item.key, page)
        self._on_written(item)
        if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self.flush()

    def _write_lists_first(self) -> None:
        self._check_lock()
        self._list_batch.flush()

    def _find_dropped_links(self, item: FetchItem) -> set[str]:
        """Return the links that the row loses: to a redirect, which replaces them unread, or to a parse."""
        page = item.page
        if self._is_parsed:
            before = {decode_text(url) for url in page.cells.get(WebPage.outlinks.family, {})}
        elif page.status in _REDIRECT_STATUSES and page.outlinks.is_cleared:  # not by one that leads nowhere
            row = self._store.get(item.key, {WebPage.outlinks})
            before = set(row.outlinks) if row is not None else set()
        else:
            return set()
        return before - set(page.outlinks) if before else before

    def flush(self) -> None:
        """Write what waits."""
        self._batch.flush()
        self._flushed_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()  # what was fetched is kept, also when the job fails
