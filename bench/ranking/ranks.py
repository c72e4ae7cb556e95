"""PageRank of the collection by several formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench.ranking.crawl import Crawl
from bench.ranking.variants import USUAL
from nutch2py.conf import Configuration
from nutch2py.indexer.filters.index_pagerank import PageRankIndexingFilter
from nutch2py.jobs.pagerank_links import FIELDS, LinkRules, PageLinks
from nutch2py.scoring.rank_model import LinkGraph, Links, PageRankModel, pagerank
from nutch2py.table import Query, open_store
from nutch2py.url.keys import host_of_key, unreverse_url
from nutch2py.webpage import WebPage

JOBS: Mapping[str, Mapping[str, str]] = {
    USUAL: {},
    "a = 0.9": {"pagerank.external.weight": "0.9"},
    "a = 0.99": {"pagerank.external.weight": "0.99"},
    "classic": {"pagerank.model": "classic"},
    "links between sites only": {"pagerank.ignore.internal": "host"},
    "one link to a site": {"pagerank.limit": "host"},
}
"""Formulas as properties of the PageRankJob."""

WITHOUT_NAVIGATION = "a = 0.5, without navigation"
SHARE = 0.02  # what more of the pages of a site link to is its navigation
FEW = 3


def all_ranks(crawl: Crawl) -> dict[str, dict[str, float]]:
    """Return URL → rank, scaled to a mean of 1, for each formula. The table is left with the usual one."""
    found: dict[str, dict[str, float]] = {}
    for name, properties in reversed([*JOBS.items()]):
        crawl.run("pagerank", properties=properties)
        conf = Configuration.load(overrides=crawl.properties)
        mean = PageRankIndexingFilter(conf).mean
        rows = open_store(conf, WebPage).scan(Query(frozenset({WebPage.page_rank, WebPage.fetch_interval})))
        found[name] = {unreverse_url(key): page.page_rank / mean for key, page in rows if page.page_rank}
    return {**found, WITHOUT_NAVIGATION: without_navigation(crawl)}


def without_navigation(crawl: Crawl) -> dict[str, float]:
    """Return ranks by the usual formula over the links that are left when a site's navigation is taken away.

    A link within a site counts if at most :data:`SHARE` of the site's pages (or :data:`FEW` pages) link to its target.
    """
    conf = Configuration.load(overrides=crawl.properties)
    rules = LinkRules(conf)
    rows = {key: page for key, page in open_store(conf, WebPage).scan(Query(FIELDS)) if rules.is_page(page)}
    links = {key: rules.links(key, page) for key, page in rows.items()}
    sizes = Counter(map(host_of_key, rows))
    linked = Counter(target for each in links.values() for target in each.internal)
    kept = {
        key: PageLinks(
            [to for to in each.internal if to in rows and linked[to] <= max(FEW, SHARE * sizes[host_of_key(to)])],
            [to for to in each.external if to in rows],
        )
        for key, each in links.items()
    }
    ranks, _, _ = pagerank(graph(kept), PageRankModel(), 20)
    return {unreverse_url(key): float(rank) for key, rank in zip(kept, ranks / ranks.mean(), strict=True)}


def graph(links: Mapping[str, PageLinks]) -> LinkGraph:
    """Return the graph of pages and their links to one another."""
    import numpy as np

    numbers = {key: number for number, key in enumerate(links)}
    kinds = []
    for kind in (0, 1):
        counts = np.array([len(each[kind]) for each in links.values()], dtype=np.int64)
        targets = np.array([numbers[to] for each in links.values() for to in each[kind]], dtype=np.int64)
        kinds.append(Links(counts, targets))
    return LinkGraph(len(links), *kinds)
