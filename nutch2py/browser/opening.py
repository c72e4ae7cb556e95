"""Whether a fetch has a browser; what drives one is loaded only then."""

from __future__ import annotations

from nutch2py.browser.settings import wanted
from nutch2py.conf import Configuration
from nutch2py.fetcher.rendering import OpenRenderer


def open_renderer(conf: Configuration, *, every: bool = False) -> OpenRenderer | None:
    """Return what opens a browser where ``plugin.includes`` asks for one, else None.

    ``every``: one that renders every page, whatever rules and properties say.
    """
    if not (every or wanted(conf)):
        return None
    from nutch2py.browser.renderer import BrowserRenderer

    return lambda http: BrowserRenderer(conf, http, every=every)
