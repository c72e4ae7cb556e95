"""Components of ours in Scrapy's whole way; Scrapy loads them by their names."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, IgnoreRequest, StopDownload
from scrapy.http import Headers, Response
from scrapy.logformatter import LogFormatter
from scrapy.responsetypes import responsetypes

from nutch2py.fetcher.asked import CODING, TRUNCATED, Manners, asked_by
from nutch2py.fetcher.body import Body, encoding_of
from nutch2py.fetcher.carrier import GATED, PYCURL_WHOLE
from nutch2py.fetcher.gate import AddressExcludedError, AddressGate
from nutch2py.fetcher.http_settings import MOST_REQUESTS, SETTING
from nutch2py.fetcher.names import Names
from nutch2py.reporting import warn
from nutch2py.url.javaurl import parse_url

_SLACK = 65536  # bytes that a compressed body may be longer than the limit of the unpacked one


class NoScheduler(BaseScheduler):
    """Schedules nothing: the fetcher's queues do. What an add-on gives the engine to crawl is dropped."""

    def has_pending_requests(self) -> bool:
        """Return False."""
        return False

    def enqueue_request(self, request: Request) -> bool:
        """Refuse a request."""
        return False

    def next_request(self) -> None:
        """Return None."""


class FetchDownloader(Downloader):
    """Scrapy's downloader, of which a download can be ended: at the end of the fetch's time nobody waits for it."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.handlers: Any = _Handlers(self.handlers)


class _Handlers:
    def __init__(self, handlers: DownloadHandlers) -> None:
        self._handlers = handlers

    async def download_request_async(self, request: Request) -> Response:
        """Download, in a task that the call knows."""
        asked = asked_by(request)
        if asked is not None:
            asked.task = asyncio.current_task()
        return await self._handlers.download_request_async(request)


class QuietLogFormatter(LogFormatter):
    """Writes no line for each page: the fetcher's own log has it."""

    def crawled(self, request: Request, response: Response, spider: Any) -> None:  # type: ignore[override]
        """Write nothing."""


class ContentMiddleware:
    """Unpacks bodies up to the limit, in the place of HttpCompressionMiddleware, which drops what is longer."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response with its body unpacked, as headers of ours tell."""
        if b"Content-Encoding" not in response.headers:
            return response
        return unpacked(response, request.meta.get("limit", -1))


def unpacked(response: Response, limit: int) -> Response:
    """Return a response with its body unpacked and cut."""
    headers = Headers(response.headers)
    coding = b", ".join(headers.getlist("Content-Encoding")).decode("latin-1")
    body = Body(encoding_of(coding), limit)
    body.feed(response.body)
    content = body.content()
    if "Content-Encoding" in headers:
        headers[CODING] = headers.pop("Content-Encoding")
    if body.truncated:
        headers[TRUNCATED] = b"length"
    kind = responsetypes.from_args(headers=headers, url=response.url, body=content)
    return response.replace(cls=kind, headers=headers, body=content)


class LastMiddleware:
    """The last before the download handler: whatever add-ons ask for is asked politely, and of no excluded address.

    For the page in hand robots.txt and queues have spoken before it came here. What is more (another try, a login, a
    page that an add-on wants) waits for its queue's turn, and robots.txt is asked for it.
    """

    manners: Manners | None = None

    def __init__(self, crawler: Crawler) -> None:
        http = crawler.settings[SETTING]
        self._gate: AddressGate = http.gate
        self._names: Names = http.names
        self._most: int = crawler.settings[MOST_REQUESTS]
        self._cookies: dict[str, str] = http.cookies
        self._proxied = False
        handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        chosen = {str(handlers[name]) for name in ("http", "https")}
        self._foreign, self._blind = chosen - {PYCURL_WHOLE}, chosen - GATED
        crawler.signals.connect(self._on_bytes, signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make one for a crawl."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait, or raise IgnoreRequest or AddressExcludedError."""
        asked = asked_by(request)
        if asked is not None and asked.requests >= self._most:
            raise IgnoreRequest(f"more than {self._most} requests for one page (fetcher.scrapy.requests.max)")
        if asked is None or asked.requests or request.url != asked.url:
            page = "" if asked is None else asked.url
            again = asked is not None and asked.requests > 0
            if self.manners is not None and (why := await self.manners.permit(request.url, page, again)):
                raise IgnoreRequest(f"{request.url}: {why}")
        elif self.manners is not None:
            await self.manners.turn(asked.url)
        if asked is not None:
            asked.requests += 1
            asked.received = 0
        if self._cookies and "Cookie" not in request.headers:
            host = parse_url(request.url).host.lower()
            if host in self._cookies:
                request.headers["Cookie"] = self._cookies[host]
        if request.meta.get("proxy"):
            self._judge_proxied(request)
        elif self._blind and self._gate:
            await self._judge_name(request.url)
        elif self._foreign:
            await self._look_up(request.url)

    def _judge_proxied(self, request: Request) -> None:
        if not self._proxied:
            self._proxied = True
            if self._gate:
                warn("a Scrapy add-on sends requests through a proxy: the address gate sees addresses in URLs only")
        host = parse_url(request.url).host
        if self._gate and not self._gate.accepts_name(host):
            raise _excluded(host)

    async def _judge_name(self, url: str) -> None:
        """Judge what a name resolves to now: the handler resolves it again, which nobody sees."""
        host = parse_url(url).host.strip("[]")
        if not self._gate.accepts_name(host):
            raise _excluded(host)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
        except OSError:
            return  # the handler will say so
        for entry in found:
            if not self._gate.accepts(str(entry[4][0])):
                raise _excluded(str(entry[4][0]))

    async def _look_up(self, url: str) -> None:
        """Ask DNS before the handler's clock runs: it gets what is remembered then."""
        try:
            await self._names.lookup(parse_url(url).host)
        except OSError as error:
            raise CannotResolveHostError(str(error.strerror)) from error

    def _on_bytes(self, data: bytes, request: Request) -> None:
        """End the download of what is longer than the limit, by a handler of Scrapy's."""
        asked = asked_by(request)
        if asked is None:
            return
        asked.received += len(data)
        if 0 <= asked.limit < asked.received - _SLACK:
            raise StopDownload(fail=False)


def _excluded(address: str) -> AddressExcludedError:
    return AddressExcludedError(address)
