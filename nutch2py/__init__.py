"""nutch2py: the successor of Apache Nutch 2 in Python. One table is the whole state of a crawl.

:class:`Crawl` is the Python interface: every job as a method, and what is in the tables and the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nutch2py.version import __version__

if TYPE_CHECKING:
    from nutch2py.crawl import Crawl

__all__ = ["Crawl", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Crawl":  # imported when it is asked for: commands start sooner without it
        from nutch2py.crawl import Crawl

        return Crawl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
