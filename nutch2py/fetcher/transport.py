"""Scrapy, run without its reactor inside ``asyncio.run``: the transport that carries the fetcher's requests.

Scrapy is stripped of what a crawl of the fetcher's kind does not use (scheduler, spider callbacks, retries, redirects,
cookies, statistics). Requests go to the handlers of its downloader, of which ``fetcher.download.handler`` names the one
for HTTP; with downloader middlewares in ``fetcher.scrapy.middlewares`` they go through its engine, slots and
middlewares as well, which costs a third of the pages per second.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import causes_of
from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.body import Body, encoding_of
from nutch2py.fetcher.gate import AddressExcludedError, AddressGate
from nutch2py.fetcher.http_settings import SETTING, HttpSettings
from nutch2py.reporting import warn
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.javaurl import parse_url

if TYPE_CHECKING:
    from scrapy.http import Response

PYCURL = "nutch2py.fetcher.handler.PycurlDownloadHandler"
HANDLERS = {
    "auto": PYCURL,
    "pycurl": PYCURL,
    "aiohttp": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
}
"""Values of ``fetcher.download.handler``; any other is the path of a handler's class."""

_FAILURES = {
    "CannotResolveHostError": FailureKind.DNS,
    "gaierror": FailureKind.DNS,
    "DownloadConnectionRefusedError": FailureKind.REFUSED,
    "DownloadTimeoutError": FailureKind.TIMEOUT,
    "ResponseDataLossError": FailureKind.CLOSED,
    "UnsupportedURLSchemeError": FailureKind.URL,
    "NotSupported": FailureKind.URL,
}


_refusals: ContextVar[list[AddressExcludedError]] = ContextVar("refusals")
"""What the gate refused of the request in hand: where a name has several addresses, aiohttp makes one OSError of all
that went wrong, of which only words are left."""


class Carrier(NamedTuple):
    """What carries requests: the handler of ``fetcher.download.handler``, and middlewares by their paths."""

    handler: str = "auto"
    middlewares: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of the handler's class."""
        return HANDLERS.get(self.handler, self.handler)

    @classmethod
    def from_conf(cls, conf: Configuration) -> Carrier:
        """Read the properties."""
        handler = conf.get_trimmed("fetcher.download.handler", "auto")
        carrier = cls(handler, tuple(conf.get_strings("fetcher.scrapy.middlewares")))
        if carrier.path != PYCURL and conf.get_trimmed("http.hosts.file"):
            warn(f"fetcher.download.handler: {handler} does not read http.hosts.file")
        return carrier


def scrapy_settings(http: HttpSettings, carrier: Carrier, threads: int) -> dict[str, Any]:
    """Return the Scrapy settings of a fetch with ``threads`` requests at a time."""
    from scrapy.settings import default_settings

    middlewares: dict[str, int | None] = dict.fromkeys(default_settings.DOWNLOADER_MIDDLEWARES_BASE)
    middlewares.update((path, 100 + order) for order, path in enumerate(carrier.middlewares))
    chosen = carrier.path
    return {
        SETTING: http,
        "TWISTED_REACTOR_ENABLED": False,
        "DOWNLOAD_HANDLERS": {
            "http": chosen,
            "https": chosen,
            "ftp": chosen if chosen == PYCURL else None,
            "s3": None,
            "file": None,
            "data": None,
        },
        "CONCURRENT_ITEMS": 1,  # the default starts a hundred tasks for each response
        "CONCURRENT_REQUESTS": threads,
        "CONCURRENT_REQUESTS_PER_DOMAIN": threads,  # our queues say who may be asked, and when
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_TIMEOUT": http.timeout,
        "DOWNLOAD_MAXSIZE": 0,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOADER_MIDDLEWARES": middlewares,
        "SPIDER_MIDDLEWARES": dict.fromkeys(default_settings.SPIDER_MIDDLEWARES_BASE),
        "EXTENSIONS": dict.fromkeys(default_settings.EXTENSIONS_BASE),
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
        "ROBOTSTXT_OBEY": False,  # obeyed by nutch2py.fetcher.robots
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_ENABLED": False,
    }


class Transport:
    """Asks for URLs through Scrapy; :meth:`get` gives an answer for anything that can happen."""

    def __init__(self, http: HttpSettings, engine: Any, carrier: Carrier) -> None:
        from scrapy import Request

        self._http, self._own = http, carrier.path == PYCURL
        through_all = carrier.middlewares
        self._download = engine.download_async if through_all else engine.downloader.handlers.download_request_async
        self._request = Request

    async def get(self, url: str, modified_time: int = 0, limit: int | None = None, etag: str = "") -> Answer:
        """Ask for a URL; never raises. ``modified_time`` (ms) and ``etag``: of the copy at hand, if there is one."""
        started = time.monotonic()
        http = self._http
        refusals: list[AddressExcludedError] = []
        _refusals.set(refusals)
        try:
            parts = parse_url(url)
            refused = self._refused(url, parts.protocol)
            if refused is not None:
                return Answer(url, failure=refused)
            if parts.protocol == "file":
                return await asyncio.to_thread(http.files.get, url, modified_time)
            ftp = parts.protocol == "ftp"
            if limit is None:
                limit = http.ftp.limit if ftp else http.content_limit
            host = _ascii_host(parts.host)
            target = url if host == parts.host else url.replace(parts.host, host, 1)
            # the exact URL, and a slot each: the queues have done the waiting
            meta: dict[str, Any] = {"verbatim_url": True, "download_slot": host, "limit": limit}
            headers: list[tuple[str, str]] = [] if self._own else http.request_headers()
            own: list[tuple[str, str]] = []
            if http.if_modified_since:
                if 0 < modified_time <= time.time() * 1000:  # ahead: the answer would be 304 until then
                    own.append(("If-Modified-Since", formatdate(modified_time / 1000, usegmt=True)))
                if etag:
                    own.append(("If-None-Match", etag))
            if host.lower() in http.cookies:
                own.append(("Cookie", http.cookies[host.lower()]))
            if own and self._own:
                meta["header_lines"] = tuple(f"{name}: {value}" for name, value in own)
            else:
                headers += own
            response = await self._download(self._request(target, headers=headers or None, meta=meta, dont_filter=True))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the end of this URL only
            return Answer(url, failure=_failure_of(error, refusals))
        carried: Answer | None = getattr(response, "answer", None)
        if carried is not None:
            carried.url = url
            return carried
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
        lines = [name + b": " + value for name, values in response.headers.items() for value in values]
        answer = Answer(url, response.status, lines)
        body = Body(encoding_of(answer.header("Content-Encoding")), limit)
        body.feed(response.body)
        answer.content = body.content()
        answer.truncated = "length" if body.truncated else ""
        if self._http.store_ip and response.ip_address is not None:
            answer.ip = str(response.ip_address)
        return answer


def _failure_of(error: Exception, refusals: Sequence[AddressExcludedError]) -> Failure:
    """Say what an exception of a handler stands for; the gate's refusals may be wrapped, or be left as words only."""
    for cause in causes_of(error):
        if isinstance(cause, AddressExcludedError):
            return Failure(FailureKind.GATE, str(cause))
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

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect, or raise AddressExcludedError."""
        if self.gate and sock.family in (socket.AF_INET, socket.AF_INET6) and not self.gate.accepts(str(address[0])):
            refusal = AddressExcludedError(f"address excluded by http.filter.ipaddress: {address[0]}")
            _refusals.get([]).append(refusal)
            raise refusal
        await super().sock_connect(sock, address)


Main = Callable[[Transport], Awaitable[None]]


async def _crawl(http: HttpSettings, carrier: Carrier, threads: int, main: Main) -> None:
    import scrapy
    from scrapy.crawler import AsyncCrawlerRunner

    failed: list[BaseException] = []

    class FetcherSpider(scrapy.Spider):
        """Runs ``main`` while the engine is open; it yields no request of its own."""

        name = "fetcher"

        async def start(self):  # type: ignore[no-untyped-def]
            try:
                await main(Transport(http, self.crawler.engine, carrier))
            except BaseException as error:  # noqa: BLE001 - Scrapy would only log it
                failed.append(error)
            if not http:
                yield  # what makes this the generator that Scrapy expects

    await AsyncCrawlerRunner(scrapy_settings(http, carrier, threads)).crawl(FetcherSpider)
    if failed:
        raise failed[0]


def run(http: HttpSettings, carrier: Carrier, threads: int, main: Main) -> None:
    """Run ``main`` with a transport in an event loop of its own; what it raises is raised here."""

    def make_loop() -> GatedLoop:
        loop = GatedLoop()
        loop.gate = http.gate
        return loop

    with asyncio.Runner(loop_factory=make_loop) as runner:
        # not runner.run: on SIGINT it would cancel the crawl, which Scrapy takes for its end
        runner.get_loop().run_until_complete(_crawl(http, carrier, threads, main))
