"""PageRank against an independent implementation, and against numbers worked out by hand."""

import networkx
import numpy as np
import pytest
import scipy.sparse

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.scoring.pagerank_model import LinkArrays, LinkGraph, PageRankModel, compute_pagerank

PAGES, SITES = 20_000, 1_000


def graph_of(edges, pages):
    """Make a graph of (source, target, internal)."""
    kinds = []
    for internal in (True, False):
        chosen = sorted((s, t) for s, t, kind in edges if kind is internal)
        counts = np.bincount([s for s, _ in chosen], minlength=pages) if chosen else np.zeros(pages, dtype=np.int64)
        kinds.append(LinkArrays(counts.astype(np.int64), np.array([t for _, t in chosen], dtype=np.int64)))
    return LinkGraph(pages, *kinds)


@pytest.fixture(scope="module")
def large():
    """A graph of 20,000 pages in 1,000 sites: links, whether each is internal, and the graph."""
    random = np.random.default_rng(7)
    site = random.integers(0, SITES, PAGES)
    source = random.integers(0, PAGES * 9 // 10, 8 * PAGES)  # the last tenth has no links
    target = (random.pareto(1.2, len(source)) * 50).astype(np.int64) % PAGES
    near = random.random(len(source)) < 0.4
    by_site = np.argsort(site, kind="stable")
    starts = np.searchsorted(site[by_site], np.arange(SITES + 1))
    sizes = np.maximum(starts[site[source] + 1] - starts[site[source]], 1)
    target = np.where(near, by_site[starts[site[source]] + random.integers(0, 1 << 30, len(source)) % sizes], target)
    pairs = np.unique(np.stack([source, target], 1)[source != target], axis=0)
    internal = site[pairs[:, 0]] == site[pairs[:, 1]]
    kinds = [
        LinkArrays(np.bincount(chosen[:, 0], minlength=PAGES), chosen[:, 1])
        for chosen in (pairs[internal], pairs[~internal])
    ]
    return pairs, internal, LinkGraph(PAGES, *kinds)


@pytest.mark.parametrize(("a", "d"), [(0.5, 0.15), (0.8, 0.15), (0.0, 0.15), (1.0, 0.3), (0.35, 0.5)])
def test_weighted_ranks_equal_sparse_matrix_ranks(large, a, d):
    pairs, internal, graph = large
    degree = np.bincount(pairs[:, 0], minlength=PAGES)
    weight = np.where(internal, 1 - a, a) / degree[pairs[:, 0]]
    matrix = scipy.sparse.csr_array((weight, (pairs[:, 1], pairs[:, 0])), shape=(PAGES, PAGES))
    expected = np.ones(PAGES)
    for _ in range(20):
        expected = d + (1 - d) * (matrix @ expected)
    ranks, done, _ = compute_pagerank(graph, PageRankModel(d, 1 - a, a), 20)
    assert done == 20
    assert np.abs(ranks - expected).max() < 1e-9
    assert ranks.std() > 0.01


def test_classic_ranks_equal_networkx(large):
    pairs, _, graph = large
    web = networkx.DiGraph()
    web.add_nodes_from(range(PAGES))
    web.add_edges_from(pairs.tolist())
    expected = networkx.pagerank(web, alpha=0.85, tol=1e-12, max_iter=200)
    ranks, done, change = compute_pagerank(
        graph, PageRankModel(0.15, 1.0, 1.0, spreads_dangling_rank=True), 200, tolerance=1e-12
    )
    assert done < 200
    assert change.mean <= 1e-12
    assert ranks.mean() == pytest.approx(1.0, abs=1e-9)
    # networkx ends when all ranks together change by PAGES * tol: 1e-7
    assert max(abs(ranks[page] / PAGES - rank) for page, rank in expected.items()) < 1e-8


def test_two_mutually_linked_pages_have_equal_rank():
    ranks, done, _ = compute_pagerank(graph_of([(0, 1, False), (1, 0, False)], 2), PageRankModel(0.15, 1.0, 1.0), 20)
    assert (ranks.tolist(), done) == ([1.0, 1.0], 20)


def test_internal_link_weight_decreases_with_a():
    # 0 links to 1 within its site and to 2 elsewhere; C(0) is 2
    ranks, _, _ = compute_pagerank(graph_of([(0, 1, True), (0, 2, False)], 3), PageRankModel(0.2, 0.25, 0.75), 20)
    assert ranks.tolist() == pytest.approx([0.2, 0.2 + 0.8 * 0.25 * 0.1, 0.2 + 0.8 * 0.75 * 0.1])


def test_dangling_rank_is_lost_or_distributed():
    graph = graph_of([(0, 1, False)], 2)
    vanish, _, _ = compute_pagerank(graph, PageRankModel(0.5, 1.0, 1.0), 1)
    spread, _, _ = compute_pagerank(graph, PageRankModel(0.5, 1.0, 1.0, spreads_dangling_rank=True), 1)
    assert (vanish.tolist(), spread.tolist()) == ([0.5, 1.0], [0.75, 1.25])


def test_linkrank_starts_with_rank_one():
    model = PageRankModel.from_conf(
        Configuration({"pagerank.model": "linkrank", "link.analyze.damping.factor": "0.8f"})
    )
    ranks, _, _ = compute_pagerank(graph_of([(0, 1, False)], 2), model, 1)
    assert ranks.tolist() == pytest.approx([0.2 + 0.8 * 0.5, 0.2 + 0.8 * (0.5 + 1.0)])


def test_iteration_stops_at_convergence():
    changes = []
    graph = graph_of([(0, 1, False), (1, 0, False), (2, 0, False)], 3)
    _, done, _ = compute_pagerank(
        graph, PageRankModel(0.15, 1.0, 1.0), 500, 1e-8, lambda n, change: changes.append(change)
    )
    assert len(changes) == done < 500
    assert changes[-1].mean <= 1e-8 < changes[-2].mean


def test_empty_graph_returns_no_ranks():
    ranks, done, _ = compute_pagerank(graph_of([], 0), PageRankModel(), 20)
    assert (len(ranks), done) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("pagerank.base", "1.5"), ("pagerank.external.weight", "-1"), ("pagerank.model", "other"),
     ("pagerank.dangling", "keep")],
)  # fmt: skip
def test_invalid_properties_are_named_in_error(name, value):
    with pytest.raises(ConfigurationError, match=name):
        PageRankModel.from_conf(Configuration({name: value}))
