"""A spider that takes a generated batch and gives statuses back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

from nutch2py.scrapy.middleware import BATCH_SETTING, ROW_KEY, TableMiddleware


class BatchSpider(Spider):
    """Asks for the pages of a batch: ``scrapy crawl NAME -s NUTCH2PY_BATCH=ID``, or ``-a batch=ID``.

    Rows that were fetched already are left out, so that a killed run is taken up by the same command. What ``parse``
    yields goes the way of any spider; links that are only to be found need not be yielded, for the page has them.
    """

    name = "batch"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Make a spider for a crawl."""
        batch = kwargs.get("batch")
        if batch:
            crawler.settings.set(BATCH_SETTING, batch, "cmdline")
        return super().from_crawler(crawler, *args, **kwargs)

    async def start(self) -> AsyncIterator[Any]:
        """Yield a request for each row that waits."""
        middleware = self._middleware()
        while rows := await asyncio.wrap_future(middleware.rows.next_rows()):
            for key, url in rows:
                yield self.make_request(key, url)

    def make_request(self, key: str, url: str) -> Request:
        """Return the request for a row; a spider may add to it."""
        meta = {ROW_KEY: key, "verbatim_url": True}
        return Request(url, self.parse, errback=self.on_error, meta=meta, dont_filter=True)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Make nothing more of a page than its row."""
        return ()

    def on_error(self, failure: Any) -> None:
        """Note that there is no answer."""
        if isinstance(failure.value, Exception) and not isinstance(failure.value, HttpError):  # that is an answer
            self._middleware().record_failure(failure.request, failure.value)

    def _middleware(self) -> TableMiddleware:
        found = self.crawler.get_spider_middleware(TableMiddleware)
        if found is None:
            raise RuntimeError("the setting ADDONS lacks nutch2py.scrapy.TableAddon")
        return found
