"""Base class for spiders that fetch a generated batch."""

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
    """Requests the pages of a batch: ``scrapy crawl NAME -s NUTCH2PY_BATCH=ID``, or ``-a batch=ID``.

    Rows that are already fetched are skipped, so that the same command resumes a killed run. Results of ``parse`` are
    processed as for any spider; links need not be yielded, since the parse of the page finds them.
    """

    name = "batch"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: object, **kwargs: object) -> Self:
        """Create a spider for a crawl."""
        batch = kwargs.get("batch")
        if batch:
            crawler.settings.set(BATCH_SETTING, batch, "cmdline")
        return super().from_crawler(crawler, *args, **kwargs)

    async def start(self) -> AsyncIterator[object]:
        """Yield a request for each pending row."""
        middleware = self._middleware()
        while rows := await asyncio.wrap_future(middleware.rows.next_rows()):
            for key, url in rows:
                yield self.make_request(key, url)

    def make_request(self, key: str, url: str) -> Request:
        """Return the request for a row; subclasses may extend it."""
        meta = {ROW_KEY: key, "verbatim_url": True}
        return Request(url, self.parse, errback=self.on_error, meta=meta, dont_filter=True)

    def parse(self, response: Response, **kwargs: object) -> object:
        """Yield nothing: the page becomes a row without further processing."""
        return ()

    def on_error(self, failure: Any) -> None:
        """Record a request without a response."""
        if isinstance(failure.value, Exception) and not isinstance(
            failure.value, HttpError
        ):  # HttpError has a response
            self._middleware().record_failure(failure.request, failure.value)

    def _middleware(self) -> TableMiddleware:
        middleware = self.crawler.get_spider_middleware(TableMiddleware)
        if middleware is None:
            raise RuntimeError("the setting ADDONS lacks nutch2py.scrapy.TableAddon")
        return middleware
