"""Options of one fetch, given by a job or read from the properties."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration

DEFAULT_SLOW_THREADS = 200
"""The default of ``fetcher.threads.slow``."""


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """Options of one fetch.

    Attributes:
        threads: Maximum number of concurrent requests.
        deadline: Time at which the fetch stops, in seconds since 1970.
        expected_pages: Approximate number of pages, 0 if unknown.
        is_sitemap: Whether the URLs are sitemaps, which may be larger than pages.
        detect_sitemaps: Whether to store the sitemaps that robots.txt lists.
        parse: Whether to parse fetched pages.
        warc_dir: Directory for WARC files, "" for none.
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
        """Return the options set by the properties; ``threads`` overrides ``fetcher.threads.fetch`` unless it is 0."""
        return cls(
            threads=max(1, threads if threads > 0 else conf.get_int("fetcher.threads.fetch", 10)),
            deadline=compute_deadline(conf),
            parse=conf.get_bool("fetcher.parse", False),
            warc_dir=conf.get_trimmed("fetcher.warc.dir"),
        )


def compute_deadline(conf: Configuration) -> float:
    """Return the deadline of a fetch that starts now (``fetcher.timelimit.mins``), in seconds since 1970."""
    minutes = conf.get_int("fetcher.timelimit.mins", -1)
    return time.time() + 60 * minutes if minutes >= 0 else float("inf")
