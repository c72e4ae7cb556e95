"""Overview: what the jobs that read every row have seen of a crawl as a whole, in bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_HOSTS = 200
MOST_EDGES = 500


@dataclass(frozen=True, slots=True)
class HostFigures:
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
class Edge:
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
    """A crawl as a whole; ``made``: when its newest part was, ms since 1970.

    ``hosts``: those with the most rows first, :data:`MOST_HOSTS` at most, of ``all_hosts``. ``edges``: between
    different hosts, the heaviest first, :data:`MOST_EDGES` at most. ``histograms``: by name, such as ``score``,
    ``pagerank``, ``depth`` (links from a seed), ``interval`` (seconds). What no job has looked at is empty.
    """

    made: int
    hosts: tuple[HostFigures, ...] = ()
    all_hosts: int = 0
    edges: tuple[Edge, ...] = ()
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
