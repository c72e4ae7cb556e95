"""Data classes of the overview: a summary of all rows in bounded size, written by jobs that scan the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nutch2py.support.histogram import Histogram

MAX_HOSTS = 200
MAX_EDGES = 500


@dataclass(frozen=True, slots=True)
class HostSummary:
    """Row and link counts of a host.

    Attributes:
        host: Host name.
        rows: Number of rows.
        fetched: Number of rows that are fetched or not modified.
        errors: Number of rows that are gone, or whose last fetch failed and will be retried.
        status: Rows by status; names as ``readdb -stats`` prints them.
        inlinks: Links from other hosts; None if links were not counted.
        outlinks: Links to other hosts; None if links were not counted.
    """

    host: str
    rows: int
    fetched: int
    errors: int
    status: Mapping[str, int] = field(default_factory=dict)
    inlinks: int | None = None
    outlinks: int | None = None


@dataclass(frozen=True, slots=True)
class HostEdge:
    """Number of links from the pages of a host to the pages of another host."""

    source: str
    target: str
    links: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Summary of a crawl. Parts that no job has counted are empty.

    Attributes:
        counted_at: Time of the newest part, ms since 1970.
        hosts: Up to :data:`MAX_HOSTS` hosts, most rows first.
        host_count: Number of all hosts.
        edges: Up to :data:`MAX_EDGES` links between different hosts, most links first.
        histograms: By name: ``score``, ``pagerank``, ``depth`` (links from a seed), ``interval`` (seconds),
            ``next_fetch`` (seconds from ``counted_at``, of fetched pages).
        page_kinds: Fetched pages by ``content_type`` and ``language``: up to 30 names each.
    """

    counted_at: int
    hosts: tuple[HostSummary, ...] = ()
    host_count: int = 0
    edges: tuple[HostEdge, ...] = ()
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    page_kinds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
