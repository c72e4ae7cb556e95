"""Creates the renderer of a fetch; the browser code is loaded only if it is enabled."""

from __future__ import annotations

from nutch2py.browser.browser_settings import is_browser_enabled
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.page_renderer import RendererFactory


def open_renderer(conf: Configuration, *, render_all: bool = False) -> RendererFactory | None:
    """Return a renderer factory if ``plugin.includes`` enables a browser, else None.

    ``render_all``: render every page, regardless of rules and properties.
    """
    if not (render_all or is_browser_enabled(conf)):
        return None
    from nutch2py.browser.browser_renderer import BrowserRenderer

    return lambda http: BrowserRenderer(conf, http, render_all=render_all)
