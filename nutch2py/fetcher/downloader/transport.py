"""Transport of the fetcher's requests: Scrapy without a reactor, on the asyncio event loop.

In direct mode requests go straight to the libcurl handler. In full Scrapy mode, which any add-on enables
(:class:`~nutch2py.fetcher.downloader.transport_settings.TransportSettings`), they pass through Scrapy's engine,
downloader and middlewares, with signals, statistics and extensions. The requests, their timing and the stored pages
are the same in both modes.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.downloader.scrapy_call import (
    ENCODING_HEADER,
    TRUNCATED_HEADER,
    ExtraRequestPolicy,
    ScrapyCall,
    build_headers,
)
from nutch2py.fetcher.downloader.transport_settings import HANDLER_ALIASES, PYCURL_HANDLER, TransportSettings
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError, AddressFilter
from nutch2py.fetcher.protocols.conditional_request import build_conditional_headers
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.protocols.local_failures import (
    DnsUnavailableError,
    describe_proxy_failure,
    find_local_failure,
    find_proxy_refusal,
)
from nutch2py.fetcher.runtime.gc_tuning import relaxed_gc
from nutch2py.fetcher.runtime.loop_watchdog import LoopWatchdog
from nutch2py.fetcher.runtime.signal_handling import signals_between_steps
from nutch2py.support.invariants import not_none
from nutch2py.support.reporting import warn
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.java_url import parse_url

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from nutch2py.fetcher.downloader.download_handler import PycurlDownloadHandler

_FAILURE_KINDS = {
    "CannotResolveHostError": FailureKind.DNS,
    "gaierror": FailureKind.DNS,
    "DownloadConnectionRefusedError": FailureKind.REFUSED,
    "DownloadTimeoutError": FailureKind.TIMEOUT,
    "ResponseDataLossError": FailureKind.CLOSED,
    "UnsupportedURLSchemeError": FailureKind.URL,
    "NotSupported": FailureKind.URL,
}


_CANCEL_ROUNDS = 5
_ENCODING_HEADER, _TRUNCATED_HEADER = ENCODING_HEADER.encode(), TRUNCATED_HEADER.encode()
_excluded_errors: ContextVar[list[AddressExcludedError]] = ContextVar("excluded_errors")
"""Errors of the address filter for the current request.

aiohttp merges the errors of a name with several addresses into one OSError, of which only the text remains.
"""


class ScrapyTransport:
    """Requests URLs through Scrapy; :meth:`get` returns a response for every outcome."""

    def __init__(self, http: HttpSettings, crawler: Crawler, transport_settings: TransportSettings) -> None:
        from scrapy import Request

        engine = crawler.engine
        self._http, self._uses_pycurl, self._scrapy_mode = (
            http,
            transport_settings.handler_path == PYCURL_HANDLER,
            transport_settings.is_scrapy_mode,
        )
        if http.signer is not None and not self._uses_pycurl:
            warn(
                "requests are not signed: http.signature.key.file needs fetcher.download.handler = pycurl; "
                f"{transport_settings.handler_path} sends them"
            )
        self._crawler, self._time_limit = crawler, transport_settings.time_limit
        self._engine_download, self._request_class = engine.download_async, Request
        self._handlers = engine.downloader.handlers
        self._tasks: set[asyncio.Task[object]] = set()

    def set_extra_request_policy(self, policy: ExtraRequestPolicy) -> None:
        """Apply ``policy`` to the extra requests of add-ons."""
        if self._scrapy_mode:
            from nutch2py.fetcher.downloader.scrapy_components import ExtraRequestMiddleware

            middleware = self._crawler.get_downloader_middleware(ExtraRequestMiddleware)
            if middleware is not None:
                middleware.extra_request_policy = policy

    async def cancel_pending(self) -> None:
        """Cancel requests without a waiting caller (robots.txt), for which Scrapy would wait."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def get(self, url: str, modified_time: int = 0, limit: int | None = None, etag: str = "") -> FetchResponse:
        """Request a URL; never raises.

        Args:
            url: URL to request.
            modified_time: Time of the stored copy, in milliseconds since 1970; 0 if there is none.
            limit: Content limit in bytes; None for the protocol's default.
            etag: ETag of the stored copy.
        """
        http = self._http
        excluded_errors: list[AddressExcludedError] = []
        token = _excluded_errors.set(excluded_errors)
        try:
            parts = parse_url(url)
            failure = self._check_url(url, parts.protocol)
            if failure is not None:
                return FetchResponse(url, failure=failure)
            if parts.protocol == "file":
                return await asyncio.to_thread(http.local_files.read, url, modified_time)
            if limit is None:
                limit = http.ftp.content_limit if parts.protocol == "ftp" else http.content_limit
            host = _host_to_ascii(parts.host)
            target = url if host == parts.host else url.replace(parts.host, host, 1)
            conditional_headers = build_conditional_headers(modified_time, etag) if http.if_modified_since else []
            if host.lower() in http.host_cookies:
                conditional_headers.append(("Cookie", http.host_cookies[host.lower()]))
            if self._scrapy_mode:
                # keep the URL unchanged and use a slot per host: the fetch queues have already waited
                meta = {"verbatim_url": True, "download_slot": host, "limit": limit}
                response = await self._get_via_engine(
                    target, meta, [*http.build_request_headers(), *conditional_headers], limit
                )
            else:
                # bypass Scrapy's request and response objects
                handler = self._handlers._get_handler(parts.protocol)
                if handler is None:  # the handler failed to start, and this call raises the reason
                    await self._handlers.download_request_async(self._request_class(target))
                curl_handler = cast("PycurlDownloadHandler", handler)
                response = await curl_handler.fetch(
                    target, limit, tuple(f"{name}: {value}" for name, value in conditional_headers)
                )
        except Exception as error:  # noqa: BLE001 - an error of a handler must fail this URL only
            return FetchResponse(url, failure=failure_from_exception(error, excluded_errors))
        finally:
            _excluded_errors.reset(token)
        response.url = url
        return response

    async def _get_via_engine(
        self, url: str, meta: dict[str, object], headers: list[tuple[str, str]], limit: int
    ) -> FetchResponse:
        """Request a URL through engine and middlewares and convert the result."""
        call, started = ScrapyCall(url, limit), time.monotonic()
        task = not_none(asyncio.current_task(), "current task")
        self._tasks.add(task)
        timer = asyncio.timeout(self._time_limit)
        try:
            request = self._request_class(url, meta=meta | call.to_meta(), dont_filter=True)
            request.headers = build_headers((name.encode("utf-8"), value.encode("utf-8")) for name, value in headers)
            async with timer:
                response = await self._engine_download(request)
        except (asyncio.CancelledError, TimeoutError) as error:
            if call.download_task is not None:
                call.download_task.cancel()
            if isinstance(error, asyncio.CancelledError) and task.cancelling():
                raise
            if timer.expired():
                message = f"Scrapy's add-ons took more than {self._time_limit:g} s (fetcher.scrapy.time.limit)"
                return FetchResponse(url, failure=FetchFailure(FailureKind.TIMEOUT, message))
            return FetchResponse(url, failure=FetchFailure(FailureKind.OTHER, f"{type(error).__name__}: {error}"))
        except Exception as error:
            if call.fetch_response is None or call.handler_result is not error:
                raise
            return call.fetch_response
        else:
            if (
                call.fetch_response is not None and call.handler_result is response and response.url == url
            ):  # no add-on has replaced it
                return call.fetch_response
        finally:
            self._tasks.discard(task)
            call.clear()
        converted = self._convert_response(url, response, limit)
        converted.elapsed_ms = int((time.monotonic() - started) * 1000)
        return converted

    def _check_url(self, url: str, protocol: str) -> FetchFailure | None:
        """Return the reason why a URL is not requested at all, or None."""
        http = self._http
        if 0 <= http.url_limit < len(url):
            return FetchFailure(FailureKind.LIMIT, f"the URL is longer than http.url.limit ({http.url_limit})")
        if protocol not in http.protocols:
            known = f": enable protocol-{protocol} in plugin.includes" if protocol in ("file", "ftp") else ""
            kind = FailureKind.PROTOCOL_DISABLED if known else FailureKind.SCHEME
            return FetchFailure(kind, f"no protocol plug-in for {protocol}{known}")
        if protocol == "ftp" and not self._uses_pycurl:
            return FetchFailure(FailureKind.PROTOCOL_DISABLED, "ftp requires fetcher.download.handler = pycurl")
        return None

    def _convert_response(self, url: str, response: Response, limit: int) -> FetchResponse:
        """Convert the response of one of Scrapy's handlers."""
        from nutch2py.fetcher.downloader.scrapy_components import decode_response

        if limit >= 0 or "Content-Encoding" in response.headers:
            response = decode_response(response, limit)
        lines, truncated = [], ""
        for name, values in response.headers.items():
            if name == _TRUNCATED_HEADER:
                truncated = values[-1].decode("latin-1")
            else:
                header_name = b"Content-Encoding" if name == _ENCODING_HEADER else name
                lines += [header_name + b": " + value for value in values]
        converted = FetchResponse(url, response.status, lines, response.body, truncated)
        proxy = self._http.proxy
        if (
            proxy is not None
            and not proxy.is_bypassed(parse_url(url).host)
            and (refusal := find_proxy_refusal(converted))
        ):
            converted.failure = FetchFailure(FailureKind.PROXY, describe_proxy_failure(refusal))
        if self._http.store_ip and response.ip_address is not None:
            converted.ip = str(response.ip_address)
        is_redirected = response.url not in (url, "") and converted.status == 200
        if is_redirected:  # an add-on followed redirects: store the redirect, as direct mode does
            converted.status, converted.content = 302, b""
            converted.header_lines = [b"Location: " + response.url.encode("utf-8")]
        return converted


def failure_from_exception(error: Exception, excluded_errors: Sequence[AddressExcludedError]) -> FetchFailure:
    """Classify an exception of a handler; an error of the address filter may be wrapped, or remain only as text."""
    if (failure := find_local_failure(error, excluded_errors)) is not None:
        return failure
    kind = _FAILURE_KINDS.get(type(error).__name__, FailureKind.OTHER)
    if isinstance(error, ValueError):
        kind = FailureKind.URL
    return FetchFailure(kind, f"{type(error).__name__}: {error}")


def _host_to_ascii(host: str) -> str:
    """Return the ``xn--`` form of an international host name."""
    return host if host.isascii() else host_to_ascii(host)


class FilteringEventLoop(asyncio.SelectorEventLoop):
    """An event loop that connects only to addresses allowed by the address filter, for every library.

    The filter checks the very address that the socket connects to, so that DNS rebinding cannot bypass it.
    """

    address_filter: AddressFilter | None = None
    dns_cache: DnsCache | None = None

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        """Resolve a name with the fetcher's DNS cache; ``http.dns.resolver`` may select the system resolver."""
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        addresses = await self.dns_cache.resolve(text) if self.dns_cache is not None and text else ()
        if not addresses:
            try:
                return await super().getaddrinfo(host, port, **kwargs)
            except socket.gaierror as error:
                if error.errno == socket.EAI_AGAIN:
                    raise DnsUnavailableError(*error.args) from error
                raise
        entries: list[Any] = []
        lookup_error: socket.gaierror | None = None
        kwargs["flags"] = kwargs.get("flags", 0) | socket.AI_NUMERICHOST  # converts the address without a DNS query
        for address in addresses:
            try:
                entries += socket.getaddrinfo(address, port, **kwargs)
            except socket.gaierror as error:  # an address of another family than requested
                lookup_error = error
        if lookup_error is not None and not entries:
            raise lookup_error
        return entries

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect, or raise AddressExcludedError."""
        if (
            self.address_filter
            and sock.family in (socket.AF_INET, socket.AF_INET6)
            and not self.address_filter.is_allowed(str(address[0]))
        ):
            error = self.address_filter.exclusion_error(str(address[0]))
            _excluded_errors.get([]).append(error)
            raise error
        await super().sock_connect(sock, address)


TransportMain = Callable[[ScrapyTransport], Awaitable[None]]


def disable_library_lookups() -> None:
    """Prevent libraries from resolving names or downloading data on their own."""
    from scrapy.utils.misc import load_object

    aiohttp: Any = import_module(HANDLER_ALIASES["aiohttp"].rpartition(".")[0]).aiohttp
    aiohttp.connector.DefaultResolver = aiohttp.ThreadedResolver
    # CookiesMiddleware would download the current public suffix list; the package contains one
    load_object("scrapy.downloadermiddlewares.cookies._split_domain").suffix_list_urls = ()


async def _run_crawl(
    http: HttpSettings, transport_settings: TransportSettings, main: TransportMain
) -> dict[str, object]:
    import scrapy
    from scrapy.crawler import AsyncCrawlerRunner

    from nutch2py.fetcher.downloader.scrapy_settings import build_scrapy_settings, check_download_handlers

    errors: list[BaseException] = []
    started, finished = False, asyncio.Event()

    class FetcherSpider(scrapy.Spider):
        """Runs ``main`` while the engine is open; it yields no request of its own."""

        name = "fetcher"

        async def start(self):  # type: ignore[no-untyped-def]
            nonlocal started
            started = True
            transport = ScrapyTransport(http, self.crawler, transport_settings)
            try:
                if transport_settings.is_scrapy_mode:
                    check_download_handlers(http, self.crawler)
                await main(transport)
            except BaseException as error:  # noqa: BLE001 - Scrapy would only log it
                errors.append(error)
            await transport.cancel_pending()
            finished.set()
            if not http:
                yield  # makes this the generator that Scrapy expects

    if transport_settings.is_scrapy_mode:
        disable_library_lookups()
    runner = AsyncCrawlerRunner(build_scrapy_settings(http, transport_settings))
    crawler = runner.create_crawler(FetcherSpider)
    try:
        with LoopWatchdog() if transport_settings.is_scrapy_mode else nullcontext():
            await _wait_until_closed(
                asyncio.ensure_future(runner.crawl(crawler)), finished, transport_settings.time_limit
            )
    except Exception as error:
        if started or not transport_settings.is_scrapy_mode:
            raise
        raise ConfigurationError(f"Scrapy cannot start: {type(error).__name__}: {error}") from error
    finally:
        await http.dns_cache.close()
    stats: dict[str, object] = crawler.stats.get_stats() if transport_settings.is_scrapy_mode else {}
    if errors and isinstance(errors[0], asyncio.CancelledError):
        raise ConfigurationError(f"a Scrapy add-on stopped the fetch: {stats.get('finish_reason', 'no reason given')}")
    if errors:
        raise errors[0]
    if not started:
        raise ConfigurationError(
            f"a Scrapy add-on prevented the start of the fetch: {stats.get('finish_reason', 'no reason given')}"
        )
    return stats


async def _wait_until_closed(crawl: asyncio.Future[None], finished: asyncio.Event, seconds: float) -> None:
    """Wait for a crawl, at most ``seconds`` after the fetch has finished."""
    finish_task = asyncio.ensure_future(finished.wait())
    try:
        await asyncio.wait((crawl, finish_task), return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait((crawl,), timeout=seconds)
    finally:
        finish_task.cancel()
    if not done:
        warn(f"Scrapy's add-ons still run {seconds:g} s after the fetch (fetcher.scrapy.time.limit): cancelling them")
        for _ in range(_CANCEL_ROUNDS):  # cancelling a task starts others: the spider is closed, handlers are notified
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=1)
            await asyncio.sleep(0.01)
    else:
        crawl.result()


def run_with_transport(
    http: HttpSettings, transport_settings: TransportSettings, main: TransportMain
) -> dict[str, object]:
    """Run ``main`` with a transport in its own event loop, and return Scrapy's statistics (none in direct mode)."""

    def make_loop() -> FilteringEventLoop:
        loop = FilteringEventLoop()
        loop.address_filter, loop.dns_cache = http.address_filter, http.dns_cache
        return loop

    with relaxed_gc(), asyncio.Runner(loop_factory=make_loop) as runner:
        # not runner.run: on SIGINT it would cancel the crawl, which Scrapy takes for its normal end
        loop = runner.get_loop()
        try:
            with signals_between_steps(loop):
                return loop.run_until_complete(_run_crawl(http, transport_settings, main))
        except SystemExit as error:  # an event loop re-raises it from any task
            if not transport_settings.is_scrapy_mode:
                raise
            raise ConfigurationError(f"a Scrapy add-on stopped the fetch: SystemExit: {error}") from error
