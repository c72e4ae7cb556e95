"""What one fetch is asked for, beside the properties: given by a job, or read from the properties that stand for it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration

DEFAULT_SLOW_THREADS = 200
"""The default of ``fetcher.threads.slow``."""


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """How a fetch is to go.

    ``threads``: requests at a time. ``deadline``: when it ends, in seconds since 1970. ``expected_pages``: about how many
    pages, 0 for unknown. ``is_sitemap``: what is fetched are sitemaps, which may be larger. ``detect_sitemaps``: note
    those that robots.txt names. ``parse``: parse what was fetched. ``warc_dir``: a folder for WARC files, "" for none.
    """

    threads: int = 10
    deadline: float = float("inf")
    expected_pages: int = 0
    is_sitemap: bool = False
    detect_sitemaps: bool = False
    parse: bool = False
    warc_dir: str = ""

    @classmethod
    def from_conf(cls, conf: Configuration, threads: int = 0) -> FetchOptions:
        """Return what the properties ask for; ``threads`` 0: ``fetcher.threads.fetch``."""
        return cls(
            threads=max(1, threads if threads > 0 else conf.get_int("fetcher.threads.fetch", 10)),
            deadline=compute_deadline(conf),
            parse=conf.get_bool("fetcher.parse", False),
            warc_dir=conf.get_trimmed("fetcher.warc.dir"),
        )


def compute_deadline(conf: Configuration) -> float:
    """Return when a fetch that begins now has to end by ``fetcher.timelimit.mins``, in seconds since 1970."""
    minutes = conf.get_int("fetcher.timelimit.mins", -1)
    return time.time() + 60 * minutes if minutes >= 0 else float("inf")
