"""Builds the overview of updatehostdb: the largest hosts and the strongest links between hosts."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.crawl_overview import MAX_EDGES, MAX_HOSTS, HostEdge, HostSummary, Overview
from nutch2py.joblog.stored_overview import store_overview_part
from nutch2py.jobs.stats.page_histograms import PageHistograms
from nutch2py.jobs.stats.page_kinds import PageKinds
from nutch2py.jobs.stats.stats_collector import get_status_name
from nutch2py.records.webpage import FETCHED_STATUSES, CrawlStatus, DerivedRow
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store

_MAX_HELD_EDGES = 20 * MAX_EDGES
"""Edges that a reducer buffers before it drops the weakest."""


class HostOverviewBuilder:
    """Overview of the hosts of one reducer, in bounded size; ``counts_links``: links were counted."""

    def __init__(self, counts_links: bool) -> None:
        self._counts_links = counts_links
        self._host_count = 0
        self._hosts: list[tuple[int, str, dict[str, int], int, int, int]] = []
        self._edges: list[tuple[int, str, str]] = []
        self.histograms, self.kinds = PageHistograms(), PageKinds()

    def add_host(
        self, host: str, status: Counter[int], retry_count: int, inlinks: Counter[str], outlinks: Counter[str]
    ) -> None:
        """Add a host: rows by status and rows to retry, inlinks by source host, outlinks by target host."""
        self._host_count += 1
        counts: dict[str, int] = {}
        for code, count in sorted(status.items()):
            counts[get_status_name(code)] = counts.get(get_status_name(code), 0) + count
        inlink_count, outlink_count = (sum(links.values()) - links[host] for links in (inlinks, outlinks))
        entry = (status.total(), host, counts, retry_count, inlink_count, outlink_count)
        if len(self._hosts) < MAX_HOSTS:
            heapq.heappush(self._hosts, entry)
        elif entry[:2] > self._hosts[0][:2]:
            heapq.heapreplace(self._hosts, entry)
        self._edges += [(count, host, target) for target, count in outlinks.items() if target != host]
        if len(self._edges) > _MAX_HELD_EDGES:
            self._edges = heapq.nlargest(MAX_EDGES, self._edges)

    def to_json(self) -> dict[str, object]:
        """Return the overview as JSON types for :func:`save_host_overview`."""
        edges = heapq.nlargest(MAX_EDGES, self._edges)
        return {
            "all": self._host_count,
            "hosts": self._hosts,
            "edges": edges,
            "spreads": self.histograms.to_json(),
            "kinds": self.kinds.to_json(),
        }


def save_host_overview(conf: Configuration, with_links: bool, task_outputs: Iterable[Mapping[str, Any]]) -> None:
    """Merge the parts of the reducers and store the overview."""
    parts, counted_at, histograms, kinds = [*task_outputs], now_ms(), PageHistograms(), PageKinds()
    for part in parts:
        histograms.merge(part["spreads"])
        kinds.merge(part["kinds"])
    store = open_store(conf, DerivedRow)
    hosts = heapq.nsmallest(MAX_HOSTS, (h for part in parts for h in part["hosts"]), key=lambda h: (-h[0], h[1]))
    summaries = tuple(
        HostSummary(
            host=host,
            rows=rows,
            fetched=sum(status.get(get_status_name(code), 0) for code in FETCHED_STATUSES),
            errors=status.get(get_status_name(CrawlStatus.GONE), 0) + retry_count,
            status=status,
            inlinks=inlinks if with_links else None,
            outlinks=outlinks if with_links else None,
        )
        for rows, host, status, retry_count, inlinks, outlinks in hosts
    )
    host_count = sum(part["all"] for part in parts)
    store_overview_part(
        store,
        "hosts",
        Overview(
            counted_at,
            summaries,
            host_count,
            histograms=histograms.make_histograms(),
            page_kinds=kinds.most_common(),
        ),
    )
    if with_links:
        edges = heapq.nsmallest(
            MAX_EDGES, (e for part in parts for e in part["edges"]), key=lambda e: (-e[0], e[1], e[2])
        )
        store_overview_part(
            store, "links", Overview(counted_at, edges=tuple(HostEdge(host, to, count) for count, host, to in edges))
        )
