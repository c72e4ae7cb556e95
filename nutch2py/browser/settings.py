"""What the properties ``browser.*`` say, and those of Nutch's selenium plug-ins that mean the same."""

from __future__ import annotations

from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.plugins import selection

PLUGIN = "protocol-browser"
SELENIUM = ("protocol-selenium", "protocol-interactiveselenium", "protocol-htmlunit")
"""Plug-ins of Nutch that render every page: so does this one when ``plugin.includes`` has any of them."""
SCREENSHOTS = ("none", "view", "page")


def wanted(conf: Configuration) -> bool:
    """Tell whether ``plugin.includes`` asks for a browser."""
    return any(map(selection(conf), (PLUGIN, *SELENIUM)))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one page may take: ``seconds``, ``requests``, ``received`` and ``memory`` bytes, loads of a document.

    ``memory`` is that of a process of the browser. ``idle``: seconds to wait for quiet at most; ``start``: seconds that
    the browser has to start.
    """

    seconds: float
    requests: int
    received: int
    memory: int
    loads: int
    idle: float
    start: float

    @classmethod
    def of(cls, conf: Configuration) -> Limits:
        """Read the properties."""
        return cls(
            seconds=conf.get_float("browser.time.limit", 30.0),
            requests=conf.get_int("browser.requests.limit", 500),
            received=conf.get_int("browser.bytes.limit", 33_554_432),
            memory=conf.get_int("browser.memory.limit", 1024) << 20,
            loads=conf.get_int("browser.loads.limit", 5),
            idle=conf.get_float("browser.idle.limit", 8.0),
            start=conf.get_float("browser.start.timeout", 60.0),
        )


@dataclass(frozen=True, kw_only=True)
class BrowserSettings:
    """How pages are rendered.

    ``executable``: the browser, "" to look for it. ``pages``: those that a context renders before it is renewed,
    ``received``: the bytes; ``restart``: pages of a browser. ``robots``: robots.txt holds for what pages ask for.
    ``images``, ``fonts``, ``media``, ``styles``: whether they are loaded. ``tabs``: pages at a time. ``delay``: seconds
    to wait after each load, beside what rules say.
    """

    executable: str
    sandbox: bool
    user: str
    tabs: int
    pages: int
    received: int
    restart: int
    robots: bool
    images: bool
    fonts: bool
    media: bool
    styles: bool
    screenshot: str
    quality: int
    width: int
    height: int
    delay: float
    limits: Limits

    @classmethod
    def of(cls, conf: Configuration) -> BrowserSettings:
        """Read the properties; ConfigurationError when one is malformed."""
        screenshot = conf.get_trimmed("browser.screenshot", "none").lower()
        if screenshot not in SCREENSHOTS:
            raise ConfigurationError(f"browser.screenshot is {screenshot!r}: choose one of {', '.join(SCREENSHOTS)}")
        if screenshot == "none" and conf.get_bool("selenium.take.screenshot", False):
            screenshot = "view"
        selenium = any(map(selection(conf), SELENIUM))
        return cls(
            executable=conf.get_trimmed("browser.executable") or conf.get_trimmed("selenium.grid.binary"),
            sandbox=conf.get_bool("browser.sandbox", True),
            user=conf.get_trimmed("browser.user", "nobody"),
            tabs=conf.get_int("browser.tabs", 2),
            pages=conf.get_int("browser.context.pages", 50),
            received=conf.get_int("browser.context.bytes", 268_435_456),
            restart=conf.get_int("browser.restart.pages", 1000),
            robots=conf.get_bool("browser.robots", True),
            images=conf.get_bool("browser.load.images", False),
            fonts=conf.get_bool("browser.load.fonts", False),
            media=conf.get_bool("browser.load.media", False),
            styles=conf.get_bool("browser.load.stylesheets", True),
            screenshot=screenshot,
            quality=conf.get_int("browser.screenshot.quality", 70),
            width=conf.get_int("browser.width", 1280),
            height=conf.get_int("browser.height", 1024),
            delay=conf.get_float("libselenium.page.load.delay", 3.0) if selenium else 0.0,
            limits=Limits.of(conf),
        )
