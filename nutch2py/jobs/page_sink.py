"""Pages that were fetched, into the table: what a fetch task writes, and what a spider of Scrapy's does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from nutch2py.cells import decode_text
from nutch2py.conf import Configuration
from nutch2py.fetcher.queues import FetchItem
from nutch2py.jobs.batchlist import BatchLists, put_redirected
from nutch2py.table import DataStore, WriteBatch
from nutch2py.webpage import CrawlStatus, Mark, WebPage

_FLUSH_SECONDS = 5.0  # what a killed fetcher loses at most
_REDIRECTS = (CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)


class PageSink:
    """Writes pages, a few seconds' worth at once.

    ``check`` raises when another job has taken this one's place; ``done`` is told of each page. ``parsing``: they are
    parsed already. ``all_join``: every row joins the list of its batch, not only the targets of redirects.
    """

    def __init__(
        self,
        store: DataStore[WebPage],
        conf: Configuration,
        check: Callable[[], None],
        done: Callable[[FetchItem], None],
        *,
        parsing: bool,
        all_join: bool = False,
    ) -> None:
        self._store, self._lists, self._check, self._done = store, BatchLists(conf), check, done
        self._parsing, self._all_join = parsing, all_join
        self._side: WriteBatch = self._lists.store.batch()
        # first the notes of links that are dropped, which the pages have lost once they are written, and list entries
        self._batch: WriteBatch = store.batch(before=self._before)
        self._flushed = time.monotonic()

    @property
    def refused(self) -> int:
        """How many rows the store has refused."""
        return len(self._batch.refused)

    def __call__(self, item: FetchItem) -> None:
        """Write a page, now or within seconds."""
        page = item.page
        gone = self._dropped(item)
        if gone:
            self._lists.put_dropped(self._side, page.markers.get(Mark.FETCH) or "", item.key, gone)
        batch_id = page.markers.get(Mark.GENERATE)
        if (item.chain or self._all_join) and batch_id is not None:
            put_redirected(self._side, batch_id, item.key)  # whoever reads through the list finds it, too
        self._batch.put(item.key, page)
        self._done(item)
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def _before(self) -> None:
        self._check()
        self._side.flush()

    def _dropped(self, item: FetchItem) -> set[str]:
        """Return the links that the row loses: to a redirect, which replaces them unread, or to a parse."""
        page = item.page
        if self._parsing:
            before = {decode_text(url) for url in page.cells.get(WebPage.outlinks.family, {})}
        elif page.status in _REDIRECTS and page.outlinks.cleared:  # not by one that leads nowhere
            row = self._store.get(item.key, {WebPage.outlinks})
            before = set(row.outlinks) if row is not None else set()
        else:
            return set()
        return before - set(page.outlinks) if before else before

    def flush(self) -> None:
        """Write what waits."""
        self._batch.flush()
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()  # what was fetched is kept, also when the job fails
