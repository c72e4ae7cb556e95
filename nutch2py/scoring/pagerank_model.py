"""Arithmetic of PageRank with separate weights for links within a site and between sites.

    PR(p) = d + (1 - d) · (Σ (1 - a)·PR(i)/C(i) over links from the same site + Σ a·PR(j)/C(j) over the others)

C is the number of all links of a page. The classic form (Brin, Page 1998) has the weight 1 for both kinds of link.
Ranks are not probabilities: in the classic form with the rank of dangling pages spread, their mean is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

PAGERANK_MODELS = ("site", "classic", "linkrank")
"""Values of ``pagerank.model``: the formula above, the classic one, and that of Nutch 1's LinkRank job."""


class PageRankModel(NamedTuple):
    """The parameters of the formula.

    Attributes:
        base: d of the formula.
        internal: Weight of links within a site (1 - a).
        external: Weight of links between sites (a).
        initial_rank: Rank before the first iteration.
        spreads_dangling_rank: The rank of pages without links goes to all pages in equal parts; in the formula it is
            lost.
        extra_rank: Rank that all pages together receive in every iteration, in equal parts (1 in Nutch's LinkRank,
            whose "rank one" is 1/pages).
    """

    base: float = 0.15
    internal: float = 0.5
    external: float = 0.5
    initial_rank: float = 1.0
    spreads_dangling_rank: bool = False
    extra_rank: float = 0.0

    @classmethod
    def from_conf(cls, conf: Configuration) -> PageRankModel:
        """Read the properties ``pagerank.*``."""
        kind = get_choice(conf, "pagerank.model", PAGERANK_MODELS)
        if kind == "linkrank":
            damping = conf.get_float("link.analyze.damping.factor", 0.85)
            return cls(1.0 - damping, 1.0, 1.0, conf.get_float("link.analyze.initial.score", 1.0), extra_rank=1.0)
        external = conf.get_float("pagerank.external.weight", 0.99)
        spread = get_choice(conf, "pagerank.dangling", ("vanish", "spread")) == "spread"
        base, initial = conf.get_float("pagerank.base", 0.15), conf.get_float("pagerank.initial", 1.0)
        if kind == "classic":
            return cls(base, 1.0, 1.0, initial, spread)
        return cls(base, 1.0 - external, external, initial, spread)

    def link_weight(self, is_internal: bool) -> float:
        """Return the weight of a link."""
        return self.internal if is_internal else self.external

    def next_rank(self, received: Floats, dangling: float, pages: int) -> Floats:
        """Return the ranks after an iteration; ``dangling``: rank of the pages without links, ``pages``: page count."""
        extra = ((dangling if self.spreads_dangling_rank else 0.0) + self.extra_rank) / max(pages, 1)
        ranks: Floats = self.base + (1.0 - self.base) * (received + extra)
        return ranks


class RankChange(NamedTuple):
    """Change of the ranks in an iteration: ``mean`` and ``greatest`` difference of a page's rank."""

    mean: float
    greatest: float


class LinkArrays(NamedTuple):
    """Links of one kind in the order of their pages: ``counts`` by page, and page numbers of the ``targets``."""

    counts: Indices
    targets: Indices


class LinkGraph(NamedTuple):
    """Pages, numbered from 0, and their links, separated into links within a site and between sites."""

    page_count: int
    internal: LinkArrays
    external: LinkArrays

    @property
    def link_count(self) -> int:
        """The number of links."""
        return len(self.internal.targets) + len(self.external.targets)


def get_choice(conf: Configuration, name: str, choices: tuple[str, ...]) -> str:
    """Return the value of a property with a fixed set of values; the default is the first of them."""
    value = conf.get_trimmed(name, choices[0])
    if value not in choices:
        raise ConfigurationError(f"{name} is {value!r}: write {' or '.join(choices)}")
    return value


def rank_shares(ranks: Floats, degrees: Indices) -> Floats:
    """Return PR/C of each page, 0 for a page without links."""
    import numpy as np

    return np.divide(ranks, degrees, out=np.zeros_like(ranks), where=degrees > 0)


def received_rank(share: Floats, sources: Indices, targets: Indices, page_count: int) -> Floats:
    """Return the rank that each of ``page_count`` pages receives from links; ``sources`` are indices into ``share``."""
    import numpy as np

    total: Floats = np.bincount(targets, weights=share[sources], minlength=page_count).astype(np.float64, copy=False)
    return total


def compute_pagerank(
    graph: LinkGraph,
    model: PageRankModel,
    iterations: int,
    tolerance: float = 0.0,
    report: Callable[[int, RankChange], None] = lambda _iteration, _change: None,
) -> tuple[Floats, int, RankChange]:
    """Return the ranks, the number of iterations and the last change.

    Stops after ``iterations``, or earlier if the mean change is at most ``tolerance``. Needs 16 bytes per link, 8 of
    which belong to the graph.
    """
    import numpy as np

    ranks = np.full(graph.page_count, model.initial_rank)
    change = RankChange(0.0, 0.0)
    if not graph.page_count:
        return ranks, 0, change
    degrees = graph.internal.counts + graph.external.counts
    leaves = degrees == 0
    kinds = [(graph.internal, model.internal), (graph.external, model.external)]
    iteration = 0
    for iteration in range(1, iterations + 1):
        share = rank_shares(ranks, degrees)
        total = np.zeros(graph.page_count)
        for links, weight in kinds:
            if len(links.targets) and weight:
                # a page's share, once for each of its links, in the order of the links
                received = np.repeat(share, links.counts)
                total += weight * np.bincount(links.targets, weights=received, minlength=graph.page_count)
        after = model.next_rank(total, float(ranks[leaves].sum()), graph.page_count)
        change = rank_change(ranks, after)
        ranks = after
        report(iteration, change)
        if change.mean <= tolerance and tolerance > 0:
            break
    return ranks, iteration, change


def rank_change(before: Floats, after: Floats) -> RankChange:
    """Return the change between two sets of ranks."""
    import numpy as np

    differences = np.abs(after - before)
    return RankChange(float(differences.mean()), float(differences.max()))
