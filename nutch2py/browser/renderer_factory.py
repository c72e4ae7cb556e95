"""Whether a fetch has a browser; what drives one is loaded only then."""

from __future__ import annotations

from nutch2py.browser.browser_settings import is_browser_enabled
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.page_renderer import RendererFactory


def open_renderer(conf: Configuration, *, render_all: bool = False) -> RendererFactory | None:
    """Return what opens a browser where ``plugin.includes`` asks for one, else None.

    ``render_all``: one that renders every page, whatever rules and properties say.
    """
    if not (render_all or is_browser_enabled(conf)):
        return None
    from nutch2py.browser.browser_renderer import BrowserRenderer

    return lambda http: BrowserRenderer(conf, http, render_all=render_all)
