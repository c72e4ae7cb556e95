"""nutch2py: the successor of Apache Nutch 2 in Python. One table is the whole state of a crawl.

:class:`Crawl` is the Python interface: every job as a method, and what is in the tables and the index. The other names
are what a program needs beside it. docs/python.md has a page on it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nutch2py.version import __version__

if TYPE_CHECKING:
    from nutch2py.conf import Configuration
    from nutch2py.crawl import Crawl
    from nutch2py.errors import NutchError
    from nutch2py.mapreduce.parameters import ALL, REINDEX, SCORES
    from nutch2py.reporting import Progress
    from nutch2py.webpage import CrawlStatus, Host, Mark, WebPage

__all__ = [
    "ALL",
    "REINDEX",
    "SCORES",
    "Configuration",
    "Crawl",
    "CrawlStatus",
    "Host",
    "Mark",
    "NutchError",
    "Progress",
    "WebPage",
    "__version__",
]

_ROOMS = {
    "conf": ("Configuration",),
    "crawl": ("Crawl",),
    "errors": ("NutchError",),
    "mapreduce.parameters": ("ALL", "REINDEX", "SCORES"),
    "reporting": ("Progress",),
    "webpage": ("CrawlStatus", "Host", "Mark", "WebPage"),
}
_PLACES = {name: f"nutch2py.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _PLACES:  # imported when it is asked for: commands start sooner without it
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
