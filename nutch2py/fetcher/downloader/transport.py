"""Scrapy, run without its reactor inside ``asyncio.run``: the transport that carries the fetcher's requests.

On the short way requests go straight to our handler over libcurl. On the whole way, which any add-on takes
(:class:`~nutch2py.fetcher.downloader.transport_settings.TransportSettings`), they go through Scrapy's engine, downloader and middlewares, with signals,
statistics and extensions. What is asked, when, and what is stored is the same on both.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from email.utils import formatdate
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from nutch2py.errors import ConfigurationError, iter_causes
from nutch2py.fetcher.downloader.scrapy_call import (
    ENCODING_HEADER,
    TRUNCATED_HEADER,
    Politeness,
    ScrapyCall,
    build_headers,
)
from nutch2py.fetcher.downloader.transport_settings import HANDLER_ALIASES, PYCURL_HANDLER, TransportSettings
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError, AddressFilter
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.runtime.fd_budget import describe_socket_error
from nutch2py.fetcher.runtime.gc_tuning import relaxed_gc
from nutch2py.fetcher.runtime.loop_watchdog import LoopWatchdog
from nutch2py.fetcher.runtime.signal_handling import signals_between_steps
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
_excluded_errors: ContextVar[list[AddressExcludedError]] = ContextVar("refusals")
"""What the gate refused of the request in hand: where a name has several addresses, aiohttp makes one OSError of all
that went wrong, of which only words are left."""


class ScrapyTransport:
    """Asks for URLs through Scrapy; :meth:`get` gives an answer for anything that can happen."""

    def __init__(self, http: HttpSettings, crawler: Crawler, transport_settings: TransportSettings) -> None:
        from scrapy import Request

        engine = crawler.engine
        self._http, self._uses_pycurl, self._scrapy_mode = (
            http,
            transport_settings.handler_path == PYCURL_HANDLER,
            transport_settings.is_scrapy_mode,
        )
        self._crawler, self._time_limit = crawler, transport_settings.time_limit
        self._engine_download, self._request_class = engine.download_async, Request
        self._handlers = engine.downloader.handlers
        self._tasks: set[asyncio.Task[Any]] = set()

    def set_politeness(self, politeness: Politeness) -> None:
        """Let add-ons ask for more than the page in hand as ``politeness`` permit."""
        if self._scrapy_mode:
            from nutch2py.fetcher.downloader.scrapy_components import PolitenessMiddleware

            last = self._crawler.get_downloader_middleware(PolitenessMiddleware)
            if last is not None:
                last.politeness = politeness

    async def cancel_pending(self) -> None:
        """End what nobody waits for any more (robots.txt), for which Scrapy would wait."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def get(self, url: str, modified_time: int = 0, limit: int | None = None, etag: str = "") -> FetchResponse:
        """Ask for a URL; never raises. ``modified_time`` (ms) and ``etag``: of the copy at hand, if there is one."""
        http = self._http
        refusals: list[AddressExcludedError] = []
        token = _excluded_errors.set(refusals)
        try:
            parts = parse_url(url)
            refused = self._check_url(url, parts.protocol)
            if refused is not None:
                return FetchResponse(url, failure=refused)
            if parts.protocol == "file":
                return await asyncio.to_thread(http.local_files.read, url, modified_time)
            if limit is None:
                limit = http.ftp.content_limit if parts.protocol == "ftp" else http.content_limit
            host = _host_to_ascii(parts.host)
            target = url if host == parts.host else url.replace(parts.host, host, 1)
            own = self._conditional_headers(modified_time, etag)
            if host.lower() in http.host_cookies:
                own.append(("Cookie", http.host_cookies[host.lower()]))
            if self._scrapy_mode:
                # the exact URL, and a slot each: the queues have done the waiting
                meta = {"verbatim_url": True, "download_slot": host, "limit": limit}
                answer = await self._get_via_engine(target, meta, [*http.build_request_headers(), *own], limit)
            else:
                # its answer, without a request and a response of Scrapy's
                handler = self._handlers._get_handler(parts.protocol)
                if handler is None:  # it did not begin, and this says why
                    await self._handlers.download_request_async(self._request_class(target))
                own_handler = cast("PycurlDownloadHandler", handler)
                answer = await own_handler.fetch(target, limit, tuple(f"{name}: {value}" for name, value in own))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the end of this URL only
            return FetchResponse(url, failure=failure_from_exception(error, refusals))
        finally:
            _excluded_errors.reset(token)
        answer.url = url
        return answer

    def _conditional_headers(self, modified_time: int, etag: str) -> list[tuple[str, str]]:
        """Return the headers that ask for a page only if it has changed."""
        found: list[tuple[str, str]] = []
        if self._http.if_modified_since:
            if 0 < modified_time <= time.time() * 1000:  # ahead: the answer would be 304 until then
                found.append(("If-Modified-Since", formatdate(modified_time / 1000, usegmt=True)))
            if etag:
                found.append(("If-None-Match", etag))
        return found

    async def _get_via_engine(
        self, url: str, meta: dict[str, Any], headers: list[tuple[str, str]], limit: int
    ) -> FetchResponse:
        """Ask through engine and middlewares, and make an answer of what they make of it."""
        asked, started = ScrapyCall(url, limit), time.monotonic()
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = self._request_class(url, meta=meta | asked.to_meta(), dont_filter=True)
            request.headers = build_headers((name.encode("utf-8"), value.encode("utf-8")) for name, value in headers)
            async with asyncio.timeout(self._time_limit) as timer:
                response = await self._engine_download(request)
        except (asyncio.CancelledError, TimeoutError) as error:
            if asked.download_task is not None:
                asked.download_task.cancel()
            if isinstance(error, asyncio.CancelledError) and task.cancelling():
                raise
            if timer.expired():
                text = f"Scrapy's add-ons took more than {self._time_limit:g} s (fetcher.scrapy.time.limit)"
                return FetchResponse(url, failure=FetchFailure(FailureKind.TIMEOUT, text))
            return FetchResponse(url, failure=FetchFailure(FailureKind.OTHER, f"{type(error).__name__}: {error}"))
        except Exception as error:
            if asked.fetch_response is None or asked.handler_result is not error:
                raise
            return asked.fetch_response
        else:
            if (
                asked.fetch_response is not None and asked.handler_result is response and response.url == url
            ):  # nobody has changed it
                return asked.fetch_response
        finally:
            self._tasks.discard(task)
            asked.clear()
        answer = self._convert_response(url, response, limit)
        answer.elapsed_ms = int((time.monotonic() - started) * 1000)
        return answer

    def _check_url(self, url: str, protocol: str) -> FetchFailure | None:
        """Return why a URL is not asked for at all, or None."""
        http = self._http
        if 0 <= http.url_limit < len(url):
            return FetchFailure(FailureKind.LIMIT, f"the URL is longer than http.url.limit ({http.url_limit})")
        if protocol not in http.protocols:
            known = f": enable protocol-{protocol} in plugin.includes" if protocol in ("file", "ftp") else ""
            return FetchFailure(FailureKind.SCHEME, f"no protocol plug-in for {protocol}{known}")
        if protocol == "ftp" and not self._uses_pycurl:
            return FetchFailure(FailureKind.SCHEME, "ftp is spoken by fetcher.download.handler pycurl only")
        return None

    def _convert_response(self, url: str, response: Response, limit: int) -> FetchResponse:
        """Make an answer of the response of one of Scrapy's handlers."""
        from nutch2py.fetcher.downloader.scrapy_components import decode_response

        if limit >= 0 or "Content-Encoding" in response.headers:
            response = decode_response(response, limit)
        lines, truncated = [], ""
        for name, values in response.headers.items():
            if name == _TRUNCATED_HEADER:
                truncated = values[-1].decode("latin-1")
            else:
                shown = b"Content-Encoding" if name == _ENCODING_HEADER else name
                lines += [shown + b": " + value for value in values]
        answer = FetchResponse(url, response.status, lines, response.body, truncated)
        if self._http.store_ip and response.ip_address is not None:
            answer.ip = str(response.ip_address)
        moved = response.url not in (url, "") and answer.status == 200
        if moved:  # an add-on has followed redirects: the row of this URL says where to, as on the short way
            answer.status, answer.content = 302, b""
            answer.header_lines = [b"Location: " + response.url.encode("utf-8")]
        return answer


def failure_from_exception(error: Exception, excluded_errors: Sequence[AddressExcludedError]) -> FetchFailure:
    """Say what an exception of a handler stands for; the gate's refusals may be wrapped, or be left as words only."""
    for cause in iter_causes(error):
        if isinstance(cause, AddressExcludedError):
            return FetchFailure(FailureKind.ADDRESS_FILTER, str(cause))
        if isinstance(cause, OSError) and (lacks := describe_socket_error(cause.errno or 0)):
            return FetchFailure(FailureKind.SOCKET, lacks)
    if excluded_errors:
        return FetchFailure(FailureKind.ADDRESS_FILTER, str(error))
    kind = _FAILURE_KINDS.get(type(error).__name__, FailureKind.OTHER)
    if isinstance(error, ValueError):
        kind = FailureKind.URL
    return FetchFailure(kind, f"{type(error).__name__}: {error}")


def _host_to_ascii(host: str) -> str:
    """Return the ``xn--`` form of an international host name."""
    return host if host.isascii() else host_to_ascii(host)


class FilteringEventLoop(asyncio.SelectorEventLoop):
    """An event loop whose sockets connect to no address that the gate refuses, whatever library asks for them.

    The gate sees the very address that the socket connects to, so a name that resolves anew does not get around it.
    """

    address_filter: AddressFilter | None = None
    dns_cache: DnsCache | None = None

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        """Look a name up as the fetcher does; ``http.dns.resolver`` may leave it to the system's resolver."""
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        known = await self.dns_cache.resolve(text) if self.dns_cache is not None and text else ()
        if not known:
            return await super().getaddrinfo(host, port, **kwargs)
        found: list[Any] = []
        wrong: socket.gaierror | None = None
        kwargs["flags"] = kwargs.get("flags", 0) | socket.AI_NUMERICHOST  # so nobody is asked, and nothing waits
        for address in known:
            try:
                found += socket.getaddrinfo(address, port, **kwargs)
            except socket.gaierror as error:  # of another family than is wanted
                wrong = error
        if wrong is not None and not found:
            raise wrong
        return found

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect, or raise AddressExcludedError."""
        if (
            self.address_filter
            and sock.family in (socket.AF_INET, socket.AF_INET6)
            and not self.address_filter.is_allowed(str(address[0]))
        ):
            refusal = AddressExcludedError(address[0])
            _excluded_errors.get([]).append(refusal)
            raise refusal
        await super().sock_connect(sock, address)


TransportMain = Callable[[ScrapyTransport], Awaitable[None]]


def disable_library_lookups() -> None:
    """Have libraries ask nobody behind our back: aiohttp asks the loop for addresses, as httpx does by itself."""
    from scrapy.utils.misc import load_object

    aiohttp: Any = import_module(HANDLER_ALIASES["aiohttp"].rpartition(".")[0]).aiohttp
    aiohttp.connector.DefaultResolver = aiohttp.ThreadedResolver
    # by which CookiesMiddleware would fetch the newest list of suffixes from the web; there is one in the package
    load_object("scrapy.downloadermiddlewares.cookies._split_domain").suffix_list_urls = ()


async def _run_crawl(http: HttpSettings, carrier: TransportSettings, main: TransportMain) -> dict[str, Any]:
    import scrapy
    from scrapy.crawler import AsyncCrawlerRunner

    from nutch2py.fetcher.downloader.scrapy_settings import build_scrapy_settings, check_download_handlers

    failed: list[BaseException] = []
    began, ended = False, asyncio.Event()

    class FetcherSpider(scrapy.Spider):
        """Runs ``main`` while the engine is open; it yields no request of its own."""

        name = "fetcher"

        async def start(self):  # type: ignore[no-untyped-def]
            nonlocal began
            began = True
            transport = ScrapyTransport(http, self.crawler, carrier)
            try:
                if carrier.is_scrapy_mode:
                    check_download_handlers(http, self.crawler)
                await main(transport)
            except BaseException as error:  # noqa: BLE001 - Scrapy would only log it
                failed.append(error)
            await transport.cancel_pending()
            ended.set()
            if not http:
                yield  # what makes this the generator that Scrapy expects

    if carrier.is_scrapy_mode:
        disable_library_lookups()
    runner = AsyncCrawlerRunner(build_scrapy_settings(http, carrier))
    crawler = runner.create_crawler(FetcherSpider)
    try:
        with LoopWatchdog() if carrier.is_scrapy_mode else nullcontext():
            await _wait_until_closed(asyncio.ensure_future(runner.crawl(crawler)), ended, carrier.time_limit)
    except Exception as error:
        if began or not carrier.is_scrapy_mode:
            raise
        raise ConfigurationError(f"Scrapy does not begin: {type(error).__name__}: {error}") from error
    finally:
        await http.dns_cache.close()
    stats: dict[str, Any] = crawler.stats.get_stats() if carrier.is_scrapy_mode else {}
    if failed and isinstance(failed[0], asyncio.CancelledError):
        raise ConfigurationError(
            f"a Scrapy add-on has ended the fetch: {stats.get('finish_reason', 'no reason given')}"
        )
    if failed:
        raise failed[0]
    if not began:
        raise ConfigurationError(
            f"a Scrapy add-on lets no fetch begin: {stats.get('finish_reason', 'no reason given')}"
        )
    return stats


async def _wait_until_closed(crawl: asyncio.Future[None], ended: asyncio.Event, seconds: float) -> None:
    """Wait for a crawl, but not for ever for what add-ons still do when the fetch has ended."""
    end = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait((crawl, end), return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait((crawl,), timeout=seconds)
    finally:
        end.cancel()
    if not done:
        told = (
            f"Scrapy's add-ons have not ended {seconds:g} s after the fetch (fetcher.scrapy.time.limit): they are left"
        )
        warn(told)
        for _ in range(_CANCEL_ROUNDS):  # the end of one begins others: the spider is closed, handlers are told so
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=1)
            await asyncio.sleep(0.01)
    else:
        crawl.result()


def run_with_transport(
    http: HttpSettings, transport_settings: TransportSettings, main: TransportMain
) -> dict[str, Any]:
    """Run ``main`` with a transport in an event loop of its own; what it raises is raised here.

    Returns Scrapy's statistics, none on the short way.
    """

    def make_loop() -> FilteringEventLoop:
        loop = FilteringEventLoop()
        loop.address_filter, loop.dns_cache = http.address_filter, http.dns_cache
        return loop

    with relaxed_gc(), asyncio.Runner(loop_factory=make_loop) as runner:
        # not runner.run: on SIGINT it would cancel the crawl, which Scrapy takes for its end
        loop = runner.get_loop()
        try:
            with signals_between_steps(loop):
                return loop.run_until_complete(_run_crawl(http, transport_settings, main))
        except SystemExit as error:  # which a loop lets out of any task
            if not transport_settings.is_scrapy_mode:
                raise
            raise ConfigurationError(f"a Scrapy add-on has ended the fetch: SystemExit: {error}") from error
