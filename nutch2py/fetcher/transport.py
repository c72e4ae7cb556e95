"""Scrapy, run without its reactor inside ``asyncio.run``: the transport that carries the fetcher's requests.

On the short way requests go straight to our handler over libcurl. On the whole way, which any add-on takes
(:class:`~nutch2py.fetcher.carrier.Carrier`), they go through Scrapy's engine, downloader and middlewares, with signals,
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

from nutch2py.errors import ConfigurationError, causes_of
from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.asked import CODING, TRUNCATED, Asked, Manners, headers_of
from nutch2py.fetcher.blocking import LoopWatch
from nutch2py.fetcher.carrier import HANDLERS, PYCURL, Carrier
from nutch2py.fetcher.collector import calm_collector
from nutch2py.fetcher.descriptors import lacking
from nutch2py.fetcher.gate import AddressExcludedError, AddressGate
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.fetcher.names import Names
from nutch2py.fetcher.stopping import between_steps
from nutch2py.reporting import warn
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.javaurl import parse_url

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from nutch2py.fetcher.handler import PycurlDownloadHandler

_FAILURES = {
    "CannotResolveHostError": FailureKind.DNS,
    "gaierror": FailureKind.DNS,
    "DownloadConnectionRefusedError": FailureKind.REFUSED,
    "DownloadTimeoutError": FailureKind.TIMEOUT,
    "ResponseDataLossError": FailureKind.CLOSED,
    "UnsupportedURLSchemeError": FailureKind.URL,
    "NotSupported": FailureKind.URL,
}


_ROUNDS = 5
_CODING, _TRUNCATED = CODING.encode(), TRUNCATED.encode()
_refusals: ContextVar[list[AddressExcludedError]] = ContextVar("refusals")
"""What the gate refused of the request in hand: where a name has several addresses, aiohttp makes one OSError of all
that went wrong, of which only words are left."""


class Transport:
    """Asks for URLs through Scrapy; :meth:`get` gives an answer for anything that can happen."""

    def __init__(self, http: HttpSettings, crawler: Crawler, carrier: Carrier) -> None:
        from scrapy import Request

        engine = crawler.engine
        self._http, self._own, self._whole = http, carrier.path == PYCURL, carrier.whole
        self._crawler, self._time_limit = crawler, carrier.time_limit
        self._download, self._request = engine.download_async, Request
        self._handlers = engine.downloader.handlers
        self._tasks: set[asyncio.Task[Any]] = set()

    def behave(self, manners: Manners) -> None:
        """Let add-ons ask for more than the page in hand as ``manners`` permit."""
        if self._whole:
            from nutch2py.fetcher.scrapy_parts import LastMiddleware

            last = self._crawler.get_downloader_middleware(LastMiddleware)
            if last is not None:
                last.manners = manners

    async def end(self) -> None:
        """End what nobody waits for any more (robots.txt), for which Scrapy would wait."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def get(self, url: str, modified_time: int = 0, limit: int | None = None, etag: str = "") -> Answer:
        """Ask for a URL; never raises. ``modified_time`` (ms) and ``etag``: of the copy at hand, if there is one."""
        http = self._http
        refusals: list[AddressExcludedError] = []
        token = _refusals.set(refusals)
        try:
            parts = parse_url(url)
            refused = self._refused(url, parts.protocol)
            if refused is not None:
                return Answer(url, failure=refused)
            if parts.protocol == "file":
                return await asyncio.to_thread(http.files.get, url, modified_time)
            if limit is None:
                limit = http.ftp.limit if parts.protocol == "ftp" else http.content_limit
            host = _ascii_host(parts.host)
            target = url if host == parts.host else url.replace(parts.host, host, 1)
            own = self._conditions(modified_time, etag)
            if host.lower() in http.cookies:
                own.append(("Cookie", http.cookies[host.lower()]))
            if self._whole:
                # the exact URL, and a slot each: the queues have done the waiting
                meta = {"verbatim_url": True, "download_slot": host, "limit": limit}
                answer = await self._get_whole(target, meta, [*http.request_headers(), *own], limit)
            else:
                # its answer, without a request and a response of Scrapy's
                handler = self._handlers._get_handler(parts.protocol)
                if handler is None:  # it did not begin, and this says why
                    await self._handlers.download_request_async(self._request(target))
                own_handler = cast("PycurlDownloadHandler", handler)
                answer = await own_handler.ask(target, limit, tuple(f"{name}: {value}" for name, value in own))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the end of this URL only
            return Answer(url, failure=failure_of(error, refusals))
        finally:
            _refusals.reset(token)
        answer.url = url
        return answer

    def _conditions(self, modified_time: int, etag: str) -> list[tuple[str, str]]:
        """Return the headers that ask for a page only if it has changed."""
        found: list[tuple[str, str]] = []
        if self._http.if_modified_since:
            if 0 < modified_time <= time.time() * 1000:  # ahead: the answer would be 304 until then
                found.append(("If-Modified-Since", formatdate(modified_time / 1000, usegmt=True)))
            if etag:
                found.append(("If-None-Match", etag))
        return found

    async def _get_whole(self, url: str, meta: dict[str, Any], headers: list[tuple[str, str]], limit: int) -> Answer:
        """Ask through engine and middlewares, and make an answer of what they make of it."""
        asked, started = Asked(url, limit), time.monotonic()
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = self._request(url, meta=meta | asked.meta(), dont_filter=True)
            request.headers = headers_of((name.encode("utf-8"), value.encode("utf-8")) for name, value in headers)
            async with asyncio.timeout(self._time_limit) as timer:
                response = await self._download(request)
        except (asyncio.CancelledError, TimeoutError) as error:
            if asked.task is not None:
                asked.task.cancel()
            if isinstance(error, asyncio.CancelledError) and task.cancelling():
                raise
            if timer.expired():
                text = f"Scrapy's add-ons took more than {self._time_limit:g} s (fetcher.scrapy.time.limit)"
                return Answer(url, failure=Failure(FailureKind.TIMEOUT, text))
            return Answer(url, failure=Failure(FailureKind.OTHER, f"{type(error).__name__}: {error}"))
        except Exception as error:
            if asked.answer is None or asked.outcome is not error:
                raise
            return asked.answer
        else:
            if asked.answer is not None and asked.outcome is response and response.url == url:  # nobody has changed it
                return asked.answer
        finally:
            self._tasks.discard(task)
            asked.forget()
        answer = self._foreign(url, response, limit)
        answer.elapsed = int((time.monotonic() - started) * 1000)
        return answer

    def _refused(self, url: str, protocol: str) -> Failure | None:
        """Return why a URL is not asked for at all, or None."""
        http = self._http
        if 0 <= http.url_limit < len(url):
            return Failure(FailureKind.LIMIT, f"the URL is longer than http.url.limit ({http.url_limit})")
        if protocol not in http.protocols:
            known = f": enable protocol-{protocol} in plugin.includes" if protocol in ("file", "ftp") else ""
            return Failure(FailureKind.SCHEME, f"no protocol plug-in for {protocol}{known}")
        if protocol == "ftp" and not self._own:
            return Failure(FailureKind.SCHEME, "ftp is spoken by fetcher.download.handler pycurl only")
        return None

    def _foreign(self, url: str, response: Response, limit: int) -> Answer:
        """Make an answer of the response of one of Scrapy's handlers."""
        from nutch2py.fetcher.scrapy_parts import unpacked

        if limit >= 0 or "Content-Encoding" in response.headers:
            response = unpacked(response, limit)
        lines, truncated = [], ""
        for name, values in response.headers.items():
            if name == _TRUNCATED:
                truncated = values[-1].decode("latin-1")
            else:
                shown = b"Content-Encoding" if name == _CODING else name
                lines += [shown + b": " + value for value in values]
        answer = Answer(url, response.status, lines, response.body, truncated)
        if self._http.store_ip and response.ip_address is not None:
            answer.ip = str(response.ip_address)
        moved = response.url not in (url, "") and answer.status == 200
        if moved:  # an add-on has followed redirects: the row of this URL says where to, as on the short way
            answer.status, answer.content = 302, b""
            answer.lines = [b"Location: " + response.url.encode("utf-8")]
        return answer


def failure_of(error: Exception, refusals: Sequence[AddressExcludedError]) -> Failure:
    """Say what an exception of a handler stands for; the gate's refusals may be wrapped, or be left as words only."""
    for cause in causes_of(error):
        if isinstance(cause, AddressExcludedError):
            return Failure(FailureKind.GATE, str(cause))
        if isinstance(cause, OSError) and (lacks := lacking(cause.errno or 0)):
            return Failure(FailureKind.SOCKET, lacks)
    if refusals:
        return Failure(FailureKind.GATE, str(error))
    kind = _FAILURES.get(type(error).__name__, FailureKind.OTHER)
    if isinstance(error, ValueError):
        kind = FailureKind.URL
    return Failure(kind, f"{type(error).__name__}: {error}")


def _ascii_host(host: str) -> str:
    """Return the ``xn--`` form of an international host name."""
    return host if host.isascii() else host_to_ascii(host)


class GatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose sockets connect to no address that the gate refuses, whatever library asks for them.

    The gate sees the very address that the socket connects to, so a name that resolves anew does not get around it.
    """

    gate: AddressGate | None = None
    names: Names | None = None

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        """Look a name up as the fetcher does; ``http.dns.resolver`` may leave it to the system's resolver."""
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        known = await self.names.lookup(text) if self.names is not None and text else ()
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
        if self.gate and sock.family in (socket.AF_INET, socket.AF_INET6) and not self.gate.accepts(str(address[0])):
            refusal = AddressExcludedError(address[0])
            _refusals.get([]).append(refusal)
            raise refusal
        await super().sock_connect(sock, address)


Main = Callable[[Transport], Awaitable[None]]


def stay_at_home() -> None:
    """Have libraries ask nobody behind our back: aiohttp asks the loop for addresses, as httpx does by itself."""
    from scrapy.utils.misc import load_object

    aiohttp: Any = import_module(HANDLERS["aiohttp"].rpartition(".")[0]).aiohttp
    aiohttp.connector.DefaultResolver = aiohttp.ThreadedResolver
    # by which CookiesMiddleware would fetch the newest list of suffixes from the web; there is one in the package
    load_object("scrapy.downloadermiddlewares.cookies._split_domain").suffix_list_urls = ()


async def _crawl(http: HttpSettings, carrier: Carrier, main: Main) -> dict[str, Any]:
    import scrapy
    from scrapy.crawler import AsyncCrawlerRunner

    from nutch2py.fetcher.scrapy_settings import scrapy_settings, tell_of_gaps

    failed: list[BaseException] = []
    began, ended = False, asyncio.Event()

    class FetcherSpider(scrapy.Spider):
        """Runs ``main`` while the engine is open; it yields no request of its own."""

        name = "fetcher"

        async def start(self):  # type: ignore[no-untyped-def]
            nonlocal began
            began = True
            transport = Transport(http, self.crawler, carrier)
            try:
                if carrier.whole:
                    tell_of_gaps(http, self.crawler)
                await main(transport)
            except BaseException as error:  # noqa: BLE001 - Scrapy would only log it
                failed.append(error)
            await transport.end()
            ended.set()
            if not http:
                yield  # what makes this the generator that Scrapy expects

    if carrier.whole:
        stay_at_home()
    runner = AsyncCrawlerRunner(scrapy_settings(http, carrier))
    crawler = runner.create_crawler(FetcherSpider)
    try:
        with LoopWatch() if carrier.whole else nullcontext():
            await _until_closed(asyncio.ensure_future(runner.crawl(crawler)), ended, carrier.time_limit)
    except Exception as error:
        if began or not carrier.whole:
            raise
        raise ConfigurationError(f"Scrapy does not begin: {type(error).__name__}: {error}") from error
    finally:
        await http.names.close()
    stats: dict[str, Any] = crawler.stats.get_stats() if carrier.whole else {}
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


async def _until_closed(crawl: asyncio.Future[None], ended: asyncio.Event, seconds: float) -> None:
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
        for _ in range(_ROUNDS):  # the end of one begins others: the spider is closed, handlers are told so
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=1)
            await asyncio.sleep(0.01)
    else:
        crawl.result()


def run(http: HttpSettings, carrier: Carrier, main: Main) -> dict[str, Any]:
    """Run ``main`` with a transport in an event loop of its own; what it raises is raised here.

    Returns Scrapy's statistics, none on the short way.
    """

    def make_loop() -> GatedLoop:
        loop = GatedLoop()
        loop.gate, loop.names = http.gate, http.names
        return loop

    with calm_collector(), asyncio.Runner(loop_factory=make_loop) as runner:
        # not runner.run: on SIGINT it would cancel the crawl, which Scrapy takes for its end
        loop = runner.get_loop()
        try:
            with between_steps(loop):
                return loop.run_until_complete(_crawl(http, carrier, main))
        except SystemExit as error:  # which a loop lets out of any task
            if not carrier.whole:
                raise
            raise ConfigurationError(f"a Scrapy add-on has ended the fetch: SystemExit: {error}") from error
