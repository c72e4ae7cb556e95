"""Scrapy settings of a fetch, in direct mode and in full Scrapy mode."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies

from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.downloader.transport_settings import (
    FILTERED_HANDLERS,
    PYCURL_HANDLER,
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
_FORCED_PRIORITY = 100  # higher than all of Scrapy's priorities
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
"""Built-in components that are always disabled; docs/fetching.md gives the reason for each."""
_OFF_BY_DEFAULT = {"RETRY_ENABLED": False, "COOKIES_ENABLED": False, "HTTPPROXY_ENABLED": False}
_FORCED_SETTINGS: dict[str, object] = {
    "TWISTED_REACTOR_ENABLED": False,
    "CONCURRENT_ITEMS": 1,  # the default starts a hundred tasks for each response
    # the fetch queues limit concurrency and delays
    "CONCURRENT_REQUESTS": _UNLIMITED,
    "CONCURRENT_REQUESTS_PER_DOMAIN": _UNLIMITED,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "AUTOTHROTTLE_ENABLED": False,
    # limits truncate content instead of dropping it
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
"""Settings overridden without a warning, since Scrapy's project template sets them."""


def build_scrapy_settings(http: HttpSettings, transport_settings: TransportSettings) -> Settings:
    """Return the settings of a fetch; warn about user settings that have no effect."""
    from scrapy.settings import Settings

    settings = Settings()
    if transport_settings.is_scrapy_mode:
        _add_scrapy_components(settings, transport_settings)
    forced = _build_forced_settings(http, transport_settings)
    project_priority = 20  # scrapy.settings.SETTINGS_PRIORITIES
    ignored = sorted(
        name
        for name, value in forced.items()
        if (settings.getpriority(name) or 0) >= project_priority
        and name not in _SILENTLY_OVERRIDDEN
        and not _is_same(settings[name], value)
    )
    if ignored:
        warn(f"settings of Scrapy without effect in a fetch, see docs/fetching.md: {', '.join(ignored)}")
    settings.setdict(forced, _FORCED_PRIORITY)
    return settings


def _is_same(given: object, forced: object) -> bool:
    return given == forced or (str(given).lower() in ("0", "false") and forced in (0, False))


def _add_scrapy_components(settings: Settings, transport_settings: TransportSettings) -> None:
    """Add Scrapy's defaults, the project's settings, single settings and the configured components, in this order."""
    from scrapy.settings import default_settings

    for name in ("DOWNLOADER_MIDDLEWARES_BASE", "EXTENSIONS_BASE"):
        base = {
            path: priority
            for path, priority in getattr(default_settings, name).items()
            if path not in DISABLED_COMPONENTS
        }
        if name.startswith("DOWNLOADER"):
            base[f"{_COMPONENTS_MODULE}.BodyDecodingMiddleware"] = 590
        settings.set(name, base, _FORCED_PRIORITY)
    settings.setdict(_OFF_BY_DEFAULT, "default")
    settings.set("LOG_FORMATTER", f"{_COMPONENTS_MODULE}.QuietLogFormatter", "default")
    if transport_settings.settings_module:
        settings.setmodule(transport_settings.settings_module, "project")
    settings.setdict(dict(transport_settings.extra_settings), "cmdline")
    sections = (
        ("DOWNLOADER_MIDDLEWARES", transport_settings.middlewares),
        ("EXTENSIONS", transport_settings.extensions),
        ("ADDONS", transport_settings.addons),
    )
    for name, components in sections:
        values = settings.getdict(name)
        values.update(components)
        if name == "DOWNLOADER_MIDDLEWARES":
            values.update(dict.fromkeys(DISABLED_COMPONENTS))
            values[f"{_COMPONENTS_MODULE}.ExtraRequestMiddleware"] = float("inf")
        elif name == "EXTENSIONS":
            values.update(dict.fromkeys(DISABLED_COMPONENTS))
        settings.set(name, values, _FORCED_PRIORITY)


def _build_forced_settings(http: HttpSettings, transport_settings: TransportSettings) -> dict[str, object]:
    forced: dict[str, object] = {
        **_FORCED_SETTINGS,
        HTTP_SETTINGS_KEY: http,
        MAX_REQUESTS_KEY: transport_settings.max_requests,
        "DOWNLOAD_TIMEOUT": http.timeout,
        "DOWNLOAD_VERIFY_CERTIFICATES": http.check_certificates,
        "DOWNLOAD_HANDLERS_BASE": {
            **dict.fromkeys(("http", "https", "ftp"), PYCURL_HANDLER),
            **dict.fromkeys(("s3", "file", "data")),
        },
    }
    if transport_settings.is_scrapy_mode:
        forced["DOWNLOADER"] = f"{_COMPONENTS_MODULE}.FetchDownloader"
        if transport_settings.handler != "auto":
            forced["DOWNLOAD_HANDLERS"] = dict.fromkeys(("http", "https"), transport_settings.handler_path)
        return forced
    return forced | {
        # empty: Scrapy imports even disabled components, and with them Twisted's web server and aiohttp
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {},
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    }


def check_download_handlers(http: HttpSettings, crawler: Crawler) -> None:
    """Warn about handlers and proxies that bypass the address filter.

    Raises:
        ConfigurationError: A handler cannot work without a Twisted reactor.
    """
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for path in (handlers["http"], handlers["https"]):
        if str(path) in _REACTOR_HANDLERS:
            raise ConfigurationError(
                f"{path} needs a Twisted reactor, but a fetch runs on asyncio only: for HTTP/2 set http.useHttp2 = true"
                " or fetcher.download.handler = httpx with HTTPX_HTTP2_ENABLED=true in fetcher.scrapy.settings"
            )
    for path in sorted({str(handlers[name]) for name in ("http", "https")} - FILTERED_HANDLERS):
        if http.address_filter:
            warn(
                f"{path} opens its own connections: the address filter checks host names before requests, "
                "not the connections"
            )
    if (
        crawler.settings.getbool("HTTPPROXY_ENABLED")
        and http.address_filter
        and getproxies().keys() & {"http", "https"}
    ):
        warn("the environment names a proxy (http_proxy): the address filter checks only addresses in URLs")
