"""nutch2py: the successor of Apache Nutch 2 in Python. One table is the whole state of a crawl.

:class:`Crawl` is the Python interface: it has a method for every job, and reads the tables and the index. The other
names are used with it. docs/python.md describes the interface.

Exports: ``Crawl``, ``Configuration``, ``WebPage``, ``Host``, ``NutchError``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nutch2py.version import __version__

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.crawl import Crawl
    from nutch2py.errors import NutchError
    from nutch2py.mapreduce.job_parameters import ALL, REINDEX, SCORES
    from nutch2py.records.webpage import CrawlStatus, Host, Mark, WebPage
    from nutch2py.support.reporting import Progress

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

_MODULES = {
    "conf.configuration": ("Configuration",),
    "crawl": ("Crawl",),
    "errors": ("NutchError",),
    "mapreduce.job_parameters": ("ALL", "REINDEX", "SCORES"),
    "support.reporting": ("Progress",),
    "records.webpage": ("CrawlStatus", "Host", "Mark", "WebPage"),
}
_EXPORTS = {name: f"nutch2py.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _EXPORTS:  # imported on first use, so that commands start faster
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
