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

from nutch2py.fetcher.downloader.scrapy_call import ENCODING_HEADER, TRUNCATED_HEADER, Politeness, get_scrapy_call
from nutch2py.fetcher.downloader.transport_settings import FILTERED_HANDLERS, PYCURL_SCRAPY_HANDLER
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError, AddressFilter
from nutch2py.fetcher.protocols.body_decoder import BodyDecoder, parse_content_encoding
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_settings import HTTP_SETTINGS_KEY, MAX_REQUESTS_KEY
from nutch2py.support.reporting import warn
from nutch2py.url.java_url import parse_url

_SLACK_BYTES = 65536  # bytes that a compressed body may be longer than the limit of the unpacked one


class NullScheduler(BaseScheduler):
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
        self.handlers: Any = _CancellableHandlers(self.handlers)


class _CancellableHandlers:
    def __init__(self, handlers: DownloadHandlers) -> None:
        self._handlers = handlers

    async def download_request_async(self, request: Request) -> Response:
        """Download, in a task that the call knows."""
        asked = get_scrapy_call(request)
        if asked is not None:
            asked.download_task = asyncio.current_task()
        return await self._handlers.download_request_async(request)


class QuietLogFormatter(LogFormatter):
    """Writes no line for each page: the fetcher's own log has it."""

    def crawled(self, request: Request, response: Response, spider: Any) -> None:  # type: ignore[override]
        """Write nothing."""


class BodyDecodingMiddleware:
    """Unpacks bodies up to the limit, in the place of HttpCompressionMiddleware, which drops what is longer."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response with its body unpacked, as headers of ours tell."""
        if b"Content-Encoding" not in response.headers:
            return response
        return decode_response(response, request.meta.get("limit", -1))


def decode_response(response: Response, limit: int) -> Response:
    """Return a response with its body unpacked and cut."""
    headers = Headers(response.headers)
    coding = b", ".join(headers.getlist("Content-Encoding")).decode("latin-1")
    body = BodyDecoder(parse_content_encoding(coding), limit)
    body.feed(response.body)
    content = body.content()
    if "Content-Encoding" in headers:
        headers[ENCODING_HEADER] = headers.pop("Content-Encoding")
    if body.truncated:
        headers[TRUNCATED_HEADER] = b"length"
    kind = responsetypes.from_args(headers=headers, url=response.url, body=content)
    return response.replace(cls=kind, headers=headers, body=content)


class PolitenessMiddleware:
    """The last before the download handler: whatever add-ons ask for is asked politely, and of no excluded address.

    For the page in hand robots.txt and queues have spoken before it came here. What is more (another try, a login, a
    page that an add-on wants) waits for its queue's turn, and robots.txt is asked for it.
    """

    politeness: Politeness | None = None

    def __init__(self, crawler: Crawler) -> None:
        http = crawler.settings[HTTP_SETTINGS_KEY]
        self._address_filter: AddressFilter = http.address_filter
        self._dns_cache: DnsCache = http.names
        self._max_requests: int = crawler.settings[MAX_REQUESTS_KEY]
        self._cookies: dict[str, str] = http.cookies
        self._proxy_warned = False
        handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        chosen = {str(handlers[name]) for name in ("http", "https")}
        self._other_handlers, self._unfiltered_handlers = chosen - {PYCURL_SCRAPY_HANDLER}, chosen - FILTERED_HANDLERS
        crawler.signals.connect(self._on_bytes_received, signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make one for a crawl."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait, or raise IgnoreRequest or AddressExcludedError."""
        asked = get_scrapy_call(request)
        if asked is not None and asked.request_count >= self._max_requests:
            raise IgnoreRequest(f"more than {self._max_requests} requests for one page (fetcher.scrapy.requests.max)")
        if asked is None or asked.request_count or request.url != asked.url:
            page = "" if asked is None else asked.url
            again = asked is not None and asked.request_count > 0
            if self.politeness is not None and (
                why := await self.politeness.request_permission(request.url, page, again)
            ):
                raise IgnoreRequest(f"{request.url}: {why}")
        elif self.politeness is not None:
            await self.politeness.wait_for_extra_requests(asked.url)
        if asked is not None:
            asked.request_count += 1
            asked.received_bytes = 0
        if self._cookies and "Cookie" not in request.headers:
            host = parse_url(request.url).host.lower()
            if host in self._cookies:
                request.headers["Cookie"] = self._cookies[host]
        if request.meta.get("proxy"):
            self._check_proxied_host(request)
        elif self._unfiltered_handlers and self._address_filter:
            await self._check_host(request.url)
        elif self._other_handlers:
            await self._resolve_host(request.url)

    def _check_proxied_host(self, request: Request) -> None:
        if not self._proxy_warned:
            self._proxy_warned = True
            if self._address_filter:
                warn("a Scrapy add-on sends requests through a proxy: the address gate sees addresses in URLs only")
        host = parse_url(request.url).host
        if self._address_filter and not self._address_filter.is_host_allowed(host):
            raise _excluded_error(host)

    async def _check_host(self, url: str) -> None:
        """Judge what a name resolves to now: the handler resolves it again, which nobody sees."""
        host = parse_url(url).host.strip("[]")
        if not self._address_filter.is_host_allowed(host):
            raise _excluded_error(host)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
        except OSError:
            return  # the handler will say so
        for entry in found:
            if not self._address_filter.is_allowed(str(entry[4][0])):
                raise _excluded_error(str(entry[4][0]))

    async def _resolve_host(self, url: str) -> None:
        """Ask DNS before the handler's clock runs: it gets what is remembered then."""
        try:
            await self._dns_cache.resolve(parse_url(url).host)
        except OSError as error:
            raise CannotResolveHostError(str(error.strerror)) from error

    def _on_bytes_received(self, data: bytes, request: Request) -> None:
        """End the download of what is longer than the limit, by a handler of Scrapy's."""
        asked = get_scrapy_call(request)
        if asked is None:
            return
        asked.received_bytes += len(data)
        if 0 <= asked.limit < asked.received_bytes - _SLACK_BYTES:
            raise StopDownload(fail=False)


def _excluded_error(address: str) -> AddressExcludedError:
    return AddressExcludedError(address)
