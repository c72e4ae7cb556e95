"""Writes fetched pages to the table, for fetch tasks and for Scrapy spiders."""

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

_FLUSH_SECONDS = 5.0  # at most this much work is lost when a fetcher is killed
_REDIRECT_STATUSES = (CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


class PageSink:
    """Writes pages, and flushes them every few seconds.

    ``check_lock`` raises when another job has taken over the lock. ``on_written`` is called for each page.
    ``is_parsed``: the pages are already parsed. ``lists_all_rows``: every row joins the list of its batch, not only the
    targets of redirects.
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
        # notes of dropped links and list entries go first: once the pages are written, their old links are unknown
        self._batch: WriteBatch = store.batch(before_flush=self._write_lists_first)
        self._flushed_at = time.monotonic()

    @property
    def rejected_rows(self) -> int:
        """Number of rows that the store rejected."""
        return len(self._batch.rejected)

    def __call__(self, item: FetchItem) -> None:
        """Write a page, at the latest with the next flush."""
        page = item.page
        dropped = self._find_dropped_links(item)
        if dropped:
            fetch_mark = page.markers.get(Mark.FETCH) or ""
            self._batch_lists.put_dropped_links(self._list_batch, fetch_mark, item.key, dropped)
        batch_id = page.markers.get(Mark.GENERATE)
        if (item.redirect_chain or self._lists_all_rows) and batch_id is not None:
            put_redirect_target(self._list_batch, batch_id, item.key)  # jobs that read through the list find it, too
        self._batch.put(item.key, page)
        self._on_written(item)
        if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self.flush()

    def _write_lists_first(self) -> None:
        self._check_lock()
        self._list_batch.flush()

    def _find_dropped_links(self, item: FetchItem) -> set[str]:
        """Return the links that the row loses by a parse, or by a redirect, which replaces them unread."""
        page = item.page
        if self._is_parsed:
            before = {decode_text(url) for url in page.cells.get(WebPage.outlinks.family, {})}
        elif page.status in _REDIRECT_STATUSES and page.outlinks.is_cleared:  # a redirect without target clears nothing
            row = self._store.get(item.key, {WebPage.outlinks})
            before = set(row.outlinks) if row is not None else set()
        else:
            return set()
        return before - set(page.outlinks) if before else before

    def flush(self) -> None:
        """Write the buffered pages."""
        self._batch.flush()
        self._flushed_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()  # keep the fetched pages even if the job fails
