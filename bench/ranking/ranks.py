"""PageRank of a collection by several formulas, from the links in the crawl table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bench.ranking.crawl import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.pagerank.graph_links import LINK_GRAPH_FIELDS, GraphLinkRules, PageLinks
from nutch2py.jobs.pagerank.pagerank_memory import MemoryGraph
from nutch2py.records.webpage import WebPage
from nutch2py.scoring.pagerank_model import PageRankModel, compute_pagerank
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import unreverse_url

SHARES = (0.02, 0.1, 0.3)
"""Candidates of ``pagerank.navigation.share`` apart from 1, which counts all links."""
_MOST = 1 << 40  # bytes of a graph: unlimited


class Formula(NamedTuple):
    """``external``: weight of links between sites; others weigh 1 minus this; negative: both weigh 1.

    ``navigation``: targets of more than this share of a site's pages are ignored, see ``pagerank.navigation.share``.
    """

    external: float = 0.5
    navigation: float = 1.0

    def __str__(self) -> str:
        weight = "classic" if self.external < 0 else f"a = {self.external:g}"
        return weight if self.navigation >= 1 else f"{weight}, without what {self.navigation:g} of a site link to"

    @property
    def model(self) -> PageRankModel:
        """Settings of the computation."""
        if self.external < 0:
            return PageRankModel(internal=1.0, external=1.0)
        return PageRankModel(internal=1 - self.external, external=self.external)


USUAL = Formula()
FORMULAS = tuple(Formula(external, share) for share in (1.0, *SHARES) for external in (-1.0, 0.5, 0.9, 0.99))
Ranks = Mapping[Formula, Mapping[str, float]]


def all_ranks(crawl: Crawl) -> Ranks:
    """Return URL → rank, scaled to a mean of 1, by each formula."""
    links = all_links(crawl)
    return {formula: ranks_of(links, formula) for formula in FORMULAS}


def ranks_of(links: Mapping[str, PageLinks], formula: Formula) -> dict[str, float]:
    """Return URL → rank by one formula; links are in key order."""
    made = MemoryGraph(_MOST, formula.navigation)
    for key, found in links.items():
        made.add_page(key, found)
    ranks, _, _ = compute_pagerank(made.build(), formula.model, 20)
    return dict(zip(map(unreverse_url, links), (ranks / ranks.mean()).tolist(), strict=True))


def all_links(crawl: Crawl) -> dict[str, PageLinks]:
    """Return the links of the table's pages in key order."""
    conf = Configuration.load(overrides=crawl.properties)
    rules = GraphLinkRules(conf)
    pages = open_store(conf, WebPage).scan(TableQuery(LINK_GRAPH_FIELDS))
    return {key: rules.select_links(key, page) for key, page in pages if rules.is_page(page)}
