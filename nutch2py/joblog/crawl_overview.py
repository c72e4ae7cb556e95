"""Overview: what the jobs that read every row have seen of a crawl as a whole, in bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_HOSTS = 200
MAX_EDGES = 500


@dataclass(frozen=True, slots=True)
class HostSummary:
    """A host: its ``rows`` by ``status`` (names as ``readdb -stats`` prints them), and how many are ``fetched``.

    ``errors``: rows that are gone or are to be tried again. ``inlinks``, ``outlinks``: links from and to other hosts,
    None when links were not counted.
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
    """How many ``links`` lead from the pages of a host to those of another one."""

    source: str
    target: str
    links: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of rows by a value: ``counts[i]`` of those from ``bounds[i]`` on, below ``bounds[i + 1]``.

    There are as many bounds as counts; the last count is open above, and the first holds all that is below, too.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A crawl as a whole; ``counted_at``: when its newest part was, ms since 1970.

    ``hosts``: those with the most rows first, :data:`MAX_HOSTS` at most, of ``host_count``. ``edges``: between
    different hosts, the heaviest first, :data:`MAX_EDGES` at most. ``histograms``: by name, such as ``score``,
    ``pagerank``, ``depth`` (links from a seed), ``interval`` (seconds). What no job has looked at is empty.
    """

    counted_at: int
    hosts: tuple[HostSummary, ...] = ()
    host_count: int = 0
    edges: tuple[HostEdge, ...] = ()
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
