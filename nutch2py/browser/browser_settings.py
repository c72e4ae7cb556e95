"""Settings of the browser from ``browser.*`` and the equivalent properties of Nutch's selenium plug-ins."""

from __future__ import annotations

from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins.loading import plugin_selector
from nutch2py.url.url_length import max_url_length

BROWSER_PLUGIN = "protocol-browser"
SELENIUM_PLUGINS = ("protocol-selenium", "protocol-interactiveselenium", "protocol-htmlunit")
"""Plug-ins of Nutch that render every page, as this one does if ``plugin.includes`` has any of them."""
SCREENSHOT_MODES = ("none", "view", "page")


def is_browser_enabled(conf: Configuration) -> bool:
    """Return whether ``plugin.includes`` enables a browser plug-in."""
    return any(map(plugin_selector(conf), (BROWSER_PLUGIN, *SELENIUM_PLUGINS)))


@dataclass(frozen=True, kw_only=True)
class PageLimits:
    """Limits of one page.

    Attributes:
        time_limit: Seconds for the whole page.
        max_requests: Number of requests.
        max_bytes: Received bytes.
        max_memory: Bytes of memory of one process of the browser, and of all that render pages for each page.
        max_url_length: Characters of a URL that a page may move to or request.
        max_loads: Loads of the document.
        idle_timeout: Seconds to wait until the page is idle.
        start_timeout: Seconds for the start of the browser.
    """

    time_limit: float
    max_requests: int
    max_bytes: int
    max_memory: int
    max_url_length: int
    max_loads: int
    idle_timeout: float
    start_timeout: float

    @classmethod
    def from_conf(cls, conf: Configuration) -> PageLimits:
        """Read the properties."""
        return cls(
            time_limit=conf.get_float("browser.time.limit", 30.0),
            max_requests=conf.get_int("browser.requests.limit", 500),
            max_bytes=conf.get_int("browser.bytes.limit", 33_554_432),
            max_memory=conf.get_int("browser.memory.limit", 1024) << 20,
            max_url_length=max_url_length(conf),
            max_loads=conf.get_int("browser.loads.limit", 5),
            idle_timeout=conf.get_float("browser.idle.limit", 8.0),
            start_timeout=conf.get_float("browser.start.timeout", 60.0),
        )


@dataclass(frozen=True, kw_only=True)
class BrowserSettings:
    """Settings of rendering.

    Attributes:
        executable: Path of the browser, "" to search for it.
        sandbox: Whether Chromium's sandbox is used.
        user: User that runs the browser if started by root.
        max_tabs: Concurrent pages.
        context_max_pages: Pages after which a context is renewed.
        context_max_bytes: Bytes after which a context is renewed.
        browser_max_pages: Pages after which a browser is replaced.
        obey_robots: Whether robots.txt applies to the requests of pages.
        load_delay: Seconds to wait after each load, in addition to the waits of rules.
    """

    executable: str
    sandbox: bool
    user: str
    max_tabs: int
    context_max_pages: int
    context_max_bytes: int
    browser_max_pages: int
    obey_robots: bool
    load_images: bool
    load_fonts: bool
    load_media: bool
    load_stylesheets: bool
    screenshot_mode: str
    screenshot_quality: int
    width: int
    height: int
    load_delay: float
    limits: PageLimits

    @classmethod
    def from_conf(cls, conf: Configuration) -> BrowserSettings:
        """Read the properties; raise ConfigurationError if one is malformed."""
        screenshot = conf.get_trimmed("browser.screenshot", "none").lower()
        if screenshot not in SCREENSHOT_MODES:
            raise ConfigurationError(
                f"browser.screenshot is {screenshot!r}: choose one of {', '.join(SCREENSHOT_MODES)}"
            )
        if screenshot == "none" and conf.get_bool("selenium.take.screenshot", False):
            screenshot = "view"
        selenium = any(map(plugin_selector(conf), SELENIUM_PLUGINS))
        return cls(
            executable=conf.get_trimmed("browser.executable") or conf.get_trimmed("selenium.grid.binary"),
            sandbox=conf.get_bool("browser.sandbox", True),
            user=conf.get_trimmed("browser.user", "nobody"),
            max_tabs=conf.get_int("browser.tabs", 2),
            context_max_pages=conf.get_int("browser.context.pages", 50),
            context_max_bytes=conf.get_int("browser.context.bytes", 268_435_456),
            browser_max_pages=conf.get_int("browser.restart.pages", 1000),
            obey_robots=conf.get_bool("browser.robots", True),
            load_images=conf.get_bool("browser.load.images", False),
            load_fonts=conf.get_bool("browser.load.fonts", False),
            load_media=conf.get_bool("browser.load.media", False),
            load_stylesheets=conf.get_bool("browser.load.stylesheets", True),
            screenshot_mode=screenshot,
            screenshot_quality=conf.get_int("browser.screenshot.quality", 70),
            width=conf.get_int("browser.width", 1280),
            height=conf.get_int("browser.height", 1024),
            load_delay=conf.get_float("libselenium.page.load.delay", 3.0) if selenium else 0.0,
            limits=PageLimits.from_conf(conf),
        )
