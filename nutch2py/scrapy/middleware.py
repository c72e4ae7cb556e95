"""Spider middleware that writes the pages, links and items of a spider to the crawl table."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available

from nutch2py.crawl import Crawl
from nutch2py.errors import NutchError
from nutch2py.fetcher.downloader.transport import failure_from_exception
from nutch2py.fetcher.output.page_updater import ROBOTS_DENIED
from nutch2py.fetcher.protocols.fetch_response import FetchFailure, FetchResponse
from nutch2py.scrapy.addon import configuration_from_settings
from nutch2py.scrapy.robots_middleware import RobotsDeniedError
from nutch2py.scrapy.spider_rows import ScrapedPage, SpiderRowWriter, item_fields

BATCH_SETTING = "NUTCH2PY_BATCH"
"""Setting: generated batch that the spider fetches; "" to create one from its pages."""
ROW_KEY = "nutch2py_key"
"""Entry of a request's ``meta``: key of its row."""
_MAX_PENDING_WRITES = 200  # pages waiting for the table
_FOUND = 302
_logger = logging.getLogger("nutch2py.scrapy")


class TableMiddleware:
    """Writes a row for each response that reaches a spider, once the spider and the pipelines have processed it.

    The row is what a fetch and a parse make of the response. Requests of the spider are added to the page's outlinks,
    and fields of items to its metadata. Redirects followed by Scrapy are rows as well.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._conf = configuration_from_settings(crawler.settings)
        self._rows: SpiderRowWriter | None = None
        self._scraped: dict[int, tuple[Response, ScrapedPage]] = {}
        self._pending_writes: set[Future[None]] = set()
        connect = crawler.signals.connect
        connect(self._open, signals.spider_opened)
        connect(self._close, signals.spider_closed)
        connect(self._on_item, signals.item_scraped)
        connect(self._on_item_dropped, signals.item_dropped)
        connect(self._on_item_dropped, signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware for a crawl."""
        return cls(crawler)

    @property
    def rows(self) -> SpiderRowWriter:
        """Row writer of this run, available once the spider is open."""
        if self._rows is None:
            raise RuntimeError("the spider is not open")
        return self._rows

    def _open(self, spider: Spider) -> None:
        if not is_asyncio_available():
            raise CloseSpider("nutch2py.scrapy needs asyncio: leave TWISTED_REACTOR at its default")
        batch = self._crawler.settings.get(BATCH_SETTING) or ""
        try:
            seeds = [] if batch else list(spider.start_urls)
            if seeds:
                Crawl(self._conf).inject(seeds)
            self._rows = SpiderRowWriter(self._conf, batch)
        except NutchError as error:
            _logger.error("%s", error)
            raise CloseSpider(f"nutch2py: {error}") from error
        self._crawler.stats.set_value("nutch2py/batch", self._rows.batch_id)
        _logger.info("rows are written as batch %s", self._rows.batch_id)

    async def _close(self) -> None:
        if self._rows is None:
            return
        try:
            for _, page in self._scraped.values():
                self._write(page)
            self._scraped.clear()
            await asyncio.gather(*map(asyncio.wrap_future, list(self._pending_writes)), return_exceptions=True)
        finally:
            await asyncio.to_thread(self._rows.close)
        for name, amount in self._rows.counters.items():
            self._crawler.stats.set_value(f"nutch2py/{name}", amount)

    async def process_spider_output(self, response: Response, result: AsyncIterator[object]) -> AsyncIterator[object]:
        """Record links and items of a response, and write it when the spider has processed it."""
        page = self._scraped_page(response)
        try:
            async for output in result:
                if isinstance(output, Request):
                    page.links.setdefault(output.url, str(output.meta.get("link_text") or "").strip())
                elif output is not None:
                    page.open_parts += 1
                yield output
        finally:
            self._finish_part(response, page)
        while len(self._pending_writes) > _MAX_PENDING_WRITES:
            await asyncio.wait(
                [asyncio.wrap_future(future) for future in self._pending_writes], return_when="FIRST_COMPLETED"
            )

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """Write a response on which the spider failed, since it was fetched."""
        if id(response) not in self._scraped:
            self._finish_part(response, self._scraped_page(response))

    def record_failure(self, request: Request, error: Exception) -> None:
        """Write a failed request; its row is unchanged if a component ignored the request."""
        key = self._record_redirects(request, request.url)
        if isinstance(error, RobotsDeniedError):
            self._write(ScrapedPage(FetchResponse(request.url), key, status=ROBOTS_DENIED))
        elif isinstance(error, IgnoreRequest):
            self._crawler.stats.inc_value("nutch2py/left")
        else:
            failure: FetchFailure = failure_from_exception(error, ())
            self._write(ScrapedPage(FetchResponse(request.url, failure=failure), key))

    def _scraped_page(self, response: Response) -> ScrapedPage:
        entry = self._scraped.get(id(response))
        if entry is None:
            key = self._record_redirects(response.request, response.url)
            entry = self._scraped[id(response)] = response, ScrapedPage(to_fetch_response(response), key)
        return entry[1]

    def _record_redirects(self, request: Request | None, url: str) -> str:
        """Write the redirects that led to a URL; return the key of its own row, if known."""
        meta = {} if request is None else request.meta
        chain = [*meta.get("redirect_urls", ()), url]
        reasons = meta.get("redirect_reasons", ())
        key = str(meta.get(ROW_KEY, ""))
        for number, url in enumerate(chain[:-1]):
            reason = reasons[number] if number < len(reasons) else _FOUND
            status = reason if isinstance(reason, int) else _FOUND
            lines = [b"Location: " + chain[number + 1].encode("utf-8")]
            self._write(ScrapedPage(FetchResponse(url, status, lines), key if number == 0 else ""))
        return key if len(chain) == 1 else ""

    def _on_item(self, item: object, response: Response | None) -> None:
        entry = self._scraped.get(id(response))
        if entry is None or response is None:
            self._crawler.stats.inc_value("nutch2py/items_without_page")
            return
        try:
            for name, values in item_fields(item):
                entry[1].item_values.setdefault(name, []).extend(values)
        except Exception as error:  # noqa: BLE001 - an item can be of any class and raise anything when read
            _logger.error("an item of %s cannot be stored: %s: %s", response.url, type(error).__name__, error)
            self._crawler.stats.inc_value("nutch2py/items_failed")
        self._finish_part(response, entry[1])

    def _on_item_dropped(self, response: Response | None) -> None:
        entry = self._scraped.get(id(response))
        if entry is not None and response is not None:
            self._finish_part(response, entry[1])

    def _finish_part(self, response: Response, page: ScrapedPage) -> None:
        page.open_parts -= 1
        if page.open_parts == 0:
            self._scraped.pop(id(response), None)
            self._write(page)

    def _write(self, page: ScrapedPage) -> None:
        future = self.rows.write(page)
        self._pending_writes.add(future)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(self._on_written, done))

    def _on_written(self, done: Future[None]) -> None:
        self._pending_writes.discard(done)
        error = done.exception()
        if error is None:
            return
        _logger.error("the table cannot be written: %s", error)
        self._crawler.stats.inc_value("nutch2py/errors")
        if self._crawler.crawling:
            task = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason="nutch2py: table"))
            self._close_task = task


def to_fetch_response(response: Response) -> FetchResponse:
    """Convert a response as seen by a spider, with a decoded body."""
    lines = [name + b": " + value for name, values in response.headers.items() for value in values]
    converted = FetchResponse(response.url, response.status, lines, response.body)
    if response.ip_address is not None:
        converted.ip = str(response.ip_address)
    if response.request is not None:
        converted.elapsed_ms = int(1000 * response.request.meta.get("download_latency", 0))
    return converted
