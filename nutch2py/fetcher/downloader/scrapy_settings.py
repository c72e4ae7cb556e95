"""Scrapy's settings for a fetch, for the short way and for the whole one; what Scrapy decides, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.downloader.transport_settings import (
    FILTERED_HANDLERS,
    PYCURL_HANDLER,
    PYCURL_SCRAPY_HANDLER,
    TransportSettings,
)
from nutch2py.fetcher.protocols.http_settings import HTTP_SETTINGS_KEY, MAX_REQUESTS_KEY, HttpSettings
from nutch2py.support.reporting import warn

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

_COMPONENTS_MODULE = "nutch2py.fetcher.downloader.scrapy_components"
_MIDDLEWARES = "scrapy.downloadermiddlewares"
_EXTENSIONS = "scrapy.extensions"
_FORCED_PRIORITY = 100  # a priority above all of Scrapy's
_UNLIMITED = 1_000_000
DISABLED_COMPONENTS = (
    f"{_MIDDLEWARES}.offsite.OffsiteMiddleware",
    f"{_MIDDLEWARES}.robotstxt.RobotsTxtMiddleware",
    f"{_MIDDLEWARES}.downloadtimeout.DownloadTimeoutMiddleware",
    f"{_MIDDLEWARES}.defaultheaders.DefaultHeadersMiddleware",
    f"{_MIDDLEWARES}.useragent.UserAgentMiddleware",
    f"{_MIDDLEWARES}.redirect.MetaRefreshMiddleware",
    f"{_MIDDLEWARES}.httpcompression.HttpCompressionMiddleware",
    f"{_MIDDLEWARES}.redirect.RedirectMiddleware",
    f"{_EXTENSIONS}.telnet.TelnetConsole",
    f"{_EXTENSIONS}.memusage.MemoryUsage",
    f"{_EXTENSIONS}.closespider.CloseSpider",
    f"{_EXTENSIONS}.feedexport.FeedExporter",
    f"{_EXTENSIONS}.logstats.LogStats",
    f"{_EXTENSIONS}.spiderstate.SpiderState",
    f"{_EXTENSIONS}.throttle.AutoThrottle",
    f"{_EXTENSIONS}.remote_control.RemoteControl",
)
"""Built-in components that are off whatever the configuration says; docs/fetching.md has a reason for each."""
_OFF_BY_DEFAULT = {"RETRY_ENABLED": False, "COOKIES_ENABLED": False, "HTTPPROXY_ENABLED": False}
_FORCED_SETTINGS: dict[str, Any] = {
    "TWISTED_REACTOR_ENABLED": False,
    "CONCURRENT_ITEMS": 1,  # the default starts a hundred tasks for each response
    # the queues say who may be asked, and when
    "CONCURRENT_REQUESTS": _UNLIMITED,
    "CONCURRENT_REQUESTS_PER_DOMAIN": _UNLIMITED,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "AUTOTHROTTLE_ENABLED": False,
    # limits cut what is longer, they drop nothing
    "DOWNLOAD_MAXSIZE": 0,
    "DOWNLOAD_WARNSIZE": 0,
    "COMPRESSION_ENABLED": False,
    "ROBOTSTXT_OBEY": False,  # obeyed by nutch2py.fetcher.robots.robots_cache
    "REDIRECT_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    # no spider, no items
    "SCHEDULER": f"{_COMPONENTS_MODULE}.NullScheduler",
    "SPIDER_MODULES": [],
    "SPIDER_MIDDLEWARES": {},
    "ITEM_PIPELINES": {},
    "FEEDS": {},
    "JOBDIR": None,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "LOG_ENABLED": False,
}
_HANDLERS_MODULE = "scrapy.core.downloader.handlers"
_REACTOR_HANDLERS = frozenset(
    {f"{_HANDLERS_MODULE}.http11.HTTP11DownloadHandler", f"{_HANDLERS_MODULE}.http2.H2DownloadHandler"}
)
_SILENTLY_OVERRIDDEN = frozenset({"SPIDER_MODULES", "TWISTED_REACTOR_ENABLED", "ROBOTSTXT_OBEY", "LOG_ENABLED"})
"""Settings of which nobody need be told that they are ours: the projects of Scrapy's template have them."""


def build_scrapy_settings(http: HttpSettings, transport_settings: TransportSettings) -> Settings:
    """Return the settings of a fetch; warns of those that someone set in vain."""
    from scrapy.settings import Settings

    settings = Settings()
    if transport_settings.is_scrapy_mode:
        _add_scrapy_components(settings, transport_settings)
    ours = _build_forced_settings(http, transport_settings)
    project = 20  # scrapy.settings.SETTINGS_PRIORITIES
    vain = sorted(
        name
        for name, value in ours.items()
        if (settings.getpriority(name) or 0) >= project
        and name not in _SILENTLY_OVERRIDDEN
        and not _is_same(settings[name], value)
    )
    if vain:
        warn(f"settings of Scrapy without effect in a fetch, see docs/fetching.md: {', '.join(vain)}")
    settings.setdict(ours, _FORCED_PRIORITY)
    return settings


def _is_same(given: object, ours: object) -> bool:
    return given == ours or (str(given).lower() in ("0", "false") and ours in (0, False))


def _add_scrapy_components(settings: Settings, carrier: TransportSettings) -> None:
    """Add what Scrapy has, then the project's settings, then single ones, then the components that are named."""
    from scrapy.settings import default_settings

    for name in ("DOWNLOADER_MIDDLEWARES_BASE", "EXTENSIONS_BASE"):
        base = {
            path: place for path, place in getattr(default_settings, name).items() if path not in DISABLED_COMPONENTS
        }
        if name.startswith("DOWNLOADER"):
            base[f"{_COMPONENTS_MODULE}.BodyDecodingMiddleware"] = 590
        settings.set(name, base, _FORCED_PRIORITY)
    settings.setdict(_OFF_BY_DEFAULT, "default")
    settings.set("LOG_FORMATTER", f"{_COMPONENTS_MODULE}.QuietLogFormatter", "default")
    if carrier.settings_module:
        settings.setmodule(carrier.settings_module, "project")
    settings.setdict(dict(carrier.extra_settings), "cmdline")
    named = (
        ("DOWNLOADER_MIDDLEWARES", carrier.middlewares),
        ("EXTENSIONS", carrier.extensions),
        ("ADDONS", carrier.addons),
    )
    for name, components in named:
        found = settings.getdict(name)
        found.update(components)
        if name == "DOWNLOADER_MIDDLEWARES":
            found.update(dict.fromkeys(DISABLED_COMPONENTS))
            found[f"{_COMPONENTS_MODULE}.PolitenessMiddleware"] = float("inf")
        elif name == "EXTENSIONS":
            found.update(dict.fromkeys(DISABLED_COMPONENTS))
        settings.set(name, found, _FORCED_PRIORITY)


def _build_forced_settings(http: HttpSettings, carrier: TransportSettings) -> dict[str, Any]:
    own = PYCURL_SCRAPY_HANDLER if carrier.is_scrapy_mode else PYCURL_HANDLER
    ours: dict[str, Any] = {
        **_FORCED_SETTINGS,
        HTTP_SETTINGS_KEY: http,
        MAX_REQUESTS_KEY: carrier.max_requests,
        "DOWNLOAD_TIMEOUT": http.timeout,
        "DOWNLOAD_VERIFY_CERTIFICATES": http.check_certificates,
        "DOWNLOAD_HANDLERS_BASE": {"http": own, "https": own, "ftp": own, "s3": None, "file": None, "data": None},
    }
    if carrier.is_scrapy_mode:
        ours["DOWNLOADER"] = f"{_COMPONENTS_MODULE}.FetchDownloader"
        if carrier.handler != "auto":
            chosen = own if carrier.handler_path == PYCURL_HANDLER else carrier.handler_path
            ours["DOWNLOAD_HANDLERS"] = {"http": chosen, "https": chosen}
        return ours
    return ours | {
        # not even named: Scrapy imports what is, also what is off, and Twisted's web server and aiohttp with it
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {},
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    }


def check_download_handlers(http: HttpSettings, crawler: Crawler) -> None:
    """Warn of what goes around the address gate, or leaves out what the properties say.

    Raises ConfigurationError for a handler that cannot work here: Scrapy would say so of each page.
    """
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for path in (handlers["http"], handlers["https"]):
        if str(path) in _REACTOR_HANDLERS:
            raise ConfigurationError(
                f"{path} needs a Twisted reactor, and a fetch has asyncio alone: for HTTP/2 set http.useHttp2 = true"
                " or fetcher.download.handler = httpx with HTTPX_HTTP2_ENABLED=true in fetcher.scrapy.settings"
            )
    for path in sorted({str(handlers[name]) for name in ("http", "https")} - FILTERED_HANDLERS):
        if http.address_filter:
            warn(f"{path} opens connections of its own: the address gate judges names before, not connections")
    if (
        crawler.settings.getbool("HTTPPROXY_ENABLED")
        and http.address_filter
        and getproxies().keys() & {"http", "https"}
    ):
        warn("the environment names a proxy (http_proxy): the address gate sees addresses in URLs only")
