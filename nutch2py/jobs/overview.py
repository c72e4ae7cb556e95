"""The part of the overview that updatehostdb makes: the greatest hosts, the heaviest links between hosts."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.joblog.kept import keep_part
from nutch2py.joblog.overview import MOST_EDGES, MOST_HOSTS, Edge, HostFigures, Overview
from nutch2py.jobs.snapshot import status_name
from nutch2py.jobs.spreads import Spreads
from nutch2py.table import open_store
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, CrawlStatus

_ERRORS = (CrawlStatus.GONE, CrawlStatus.RETRY)
_HELD = 20 * MOST_EDGES
"""Edges that a reducer holds before it drops the light ones."""


class OverviewPart:
    """What one reducer has seen of its hosts, in bounded size. ``links``: they are counted."""

    def __init__(self, links: bool) -> None:
        self._links = links
        self._all = 0
        self._hosts: list[tuple[int, str, dict[str, int], int, int]] = []
        self._edges: list[tuple[int, str, str]] = []
        self.spreads = Spreads()

    def add(self, host: str, status: Counter[int], inlinks: Counter[str], outlinks: Counter[str]) -> None:
        """Take in a host: rows by status, links by the host from or to which they lead."""
        self._all += 1
        counts: dict[str, int] = {}
        for code, count in sorted(status.items()):
            counts[status_name(code)] = counts.get(status_name(code), 0) + count
        come, go = (sum(links.values()) - links[host] for links in (inlinks, outlinks))
        entry = (status.total(), host, counts, come, go)
        if len(self._hosts) < MOST_HOSTS:
            heapq.heappush(self._hosts, entry)
        elif entry[:2] > self._hosts[0][:2]:
            heapq.heapreplace(self._hosts, entry)
        self._edges += [(count, host, target) for target, count in outlinks.items() if target != host]
        if len(self._edges) > _HELD:
            self._edges = heapq.nlargest(MOST_EDGES, self._edges)

    def to_json(self) -> dict[str, Any]:
        """Return it in a form that JSON carries; :func:`keep_overview` takes it."""
        edges = heapq.nlargest(MOST_EDGES, self._edges)
        return {"all": self._all, "hosts": self._hosts, "edges": edges, "spreads": self.spreads.to_json()}


def keep_overview(conf: Configuration, links: bool, told: Iterable[Mapping[str, Any]]) -> None:
    """Put together what the reducers have seen, and keep it."""
    parts, made, spreads = [*told], now_ms(), Spreads()
    for part in parts:
        spreads.merge(part["spreads"])
    store = open_store(conf, BatchEntry)
    hosts = heapq.nsmallest(MOST_HOSTS, (h for part in parts for h in part["hosts"]), key=lambda h: (-h[0], h[1]))
    seen = tuple(
        HostFigures(
            host=host,
            rows=rows,
            fetched=status.get(status_name(CrawlStatus.FETCHED), 0),
            errors=sum(status.get(status_name(code), 0) for code in _ERRORS),
            status=status,
            inlinks=inlinks if links else None,
            outlinks=outlinks if links else None,
        )
        for rows, host, status, inlinks, outlinks in hosts
    )
    whole = sum(part["all"] for part in parts)
    keep_part(store, "hosts", Overview(made, seen, whole, histograms=spreads.histograms()))
    if links:
        edges = heapq.nsmallest(
            MOST_EDGES, (e for part in parts for e in part["edges"]), key=lambda e: (-e[0], e[1], e[2])
        )
        keep_part(store, "links", Overview(made, edges=tuple(Edge(host, to, count) for count, host, to in edges)))
