"""Scrapy components of the full Scrapy mode; Scrapy loads them by their paths."""

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

from nutch2py.fetcher.downloader.scrapy_call import (
    ENCODING_HEADER,
    TRUNCATED_HEADER,
    ExtraRequestPolicy,
    get_scrapy_call,
)
from nutch2py.fetcher.downloader.transport_settings import FILTERED_HANDLERS, PYCURL_HANDLER
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError, AddressFilter
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_settings import HTTP_SETTINGS_KEY, MAX_REQUESTS_KEY, HttpSettings
from nutch2py.fetcher.protocols.response_body import BodyDecoder, parse_content_encoding
from nutch2py.support.reporting import warn
from nutch2py.url.java_url import parse_url

_SLACK_BYTES = 65536  # allowance in bytes for a compressed body longer than its decoded content


class NullScheduler(BaseScheduler):
    """Schedules nothing, since the fetcher has its own queues; requests that add-ons schedule are dropped."""

    def has_pending_requests(self) -> bool:
        """Return False."""
        return False

    def enqueue_request(self, request: Request) -> bool:
        """Reject a request."""
        return False

    def next_request(self) -> None:
        """Return None."""


class FetchDownloader(Downloader):
    """Scrapy's downloader with cancellable downloads, so that the fetch can stop at its time limit."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.handlers: Any = _CancellableHandlers(self.handlers)


class _CancellableHandlers:
    def __init__(self, handlers: DownloadHandlers) -> None:
        self._handlers = handlers

    async def download_request_async(self, request: Request) -> Response:
        """Download a request and store the task in its call."""
        call = get_scrapy_call(request)
        if call is not None:
            call.download_task = asyncio.current_task()
        return await self._handlers.download_request_async(request)


class QuietLogFormatter(LogFormatter):
    """Suppresses Scrapy's line per page, which the fetcher's own log contains."""

    def crawled(self, request: Request, response: Response, spider: object) -> None:  # type: ignore[override]
        """Write nothing."""


class BodyDecodingMiddleware:
    """Decodes bodies up to the limit; replaces HttpCompressionMiddleware, which drops longer ones."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response with its body decoded and the ``X-Crawler-…`` headers set."""
        if b"Content-Encoding" not in response.headers:
            return response
        return decode_response(response, request.meta.get("limit", -1))


def decode_response(response: Response, limit: int) -> Response:
    """Return a response with its body decoded and truncated."""
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


class ExtraRequestMiddleware:
    """The last middleware before the handler: applies politeness and the address filter to all requests of add-ons.

    robots.txt and the queues have already allowed the page being fetched. Extra requests (retries, logins, other pages)
    wait for the turn of their queue and are checked against robots.txt.
    """

    extra_request_policy: ExtraRequestPolicy | None = None

    def __init__(self, crawler: Crawler) -> None:
        http: HttpSettings = crawler.settings[HTTP_SETTINGS_KEY]
        self._address_filter: AddressFilter = http.address_filter
        self._dns_cache: DnsCache = http.dns_cache
        self._max_requests: int = crawler.settings[MAX_REQUESTS_KEY]
        self._cookies: dict[str, str] = http.host_cookies
        self._proxy_warned = False
        handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        handler_paths = {str(handlers[name]) for name in ("http", "https")}
        self._other_handlers = handler_paths - {PYCURL_HANDLER}
        self._unfiltered_handlers = handler_paths - FILTERED_HANDLERS
        crawler.signals.connect(self._on_bytes_received, signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware for a crawl."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait until the request may be sent, or raise IgnoreRequest or AddressExcludedError."""
        call = get_scrapy_call(request)
        if call is not None and call.request_count >= self._max_requests:
            raise IgnoreRequest(f"more than {self._max_requests} requests for one page (fetcher.scrapy.requests.max)")
        if call is None or call.request_count or request.url != call.url:
            page_url = "" if call is None else call.url
            is_repeat = call is not None and call.request_count > 0
            if self.extra_request_policy is not None and (
                reason := await self.extra_request_policy.request_permission(request.url, page_url, is_repeat)
            ):
                raise IgnoreRequest(f"{request.url}: {reason}")
        elif self.extra_request_policy is not None:
            await self.extra_request_policy.wait_for_extra_requests(call.url)
        if call is not None:
            call.request_count += 1
            call.received_bytes = 0
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
                warn("a Scrapy add-on sends requests through a proxy: the address filter checks only addresses in URLs")
        host = parse_url(request.url).host
        if self._address_filter and not self._address_filter.is_host_allowed(host):
            raise AddressExcludedError(host)

    async def _check_host(self, url: str) -> None:
        """Check the host's current addresses; the handler resolves the name again, without the filter."""
        host = parse_url(url).host.strip("[]")
        if not self._address_filter.is_host_allowed(host):
            raise AddressExcludedError(host)
        try:
            entries = await asyncio.get_running_loop().getaddrinfo(host, None)
        except OSError:
            return  # the handler reports the error
        for entry in entries:
            if not self._address_filter.is_allowed(str(entry[4][0])):
                raise AddressExcludedError(str(entry[4][0]))

    async def _resolve_host(self, url: str) -> None:
        """Resolve the host before the handler's timeout starts; the handler then reads the DNS cache."""
        try:
            await self._dns_cache.resolve(parse_url(url).host)
        except OSError as error:
            raise CannotResolveHostError(str(error.strerror)) from error

    def _on_bytes_received(self, data: bytes, request: Request) -> None:
        """Stop a download by one of Scrapy's handlers once it exceeds the limit."""
        call = get_scrapy_call(request)
        if call is None:
            return
        call.received_bytes += len(data)
        if 0 <= call.limit < call.received_bytes - _SLACK_BYTES:
            raise StopDownload(fail=False)
