"""Which links are navigation."""

from collections import Counter

import numpy as np
import pytest

from nutch2py.scoring.navigation_criterion import (
    MIN_ALLOWED_LINKS,
    max_linking_pages,
    navigation_mask,
    site_navigation_mask,
)


def by_hand(sites, targets, allowed, once):
    counts, seen, found = Counter(zip(sites, targets, strict=True)), set(), []
    for pair in zip(sites, targets, strict=True):
        over = counts[pair] > allowed[pair[0]]
        found.append(over and (not once or pair in seen))
        seen.add(pair)
    return found


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_navigation_links_are_removed_by_share(seed, once):
    random = np.random.default_rng(seed)
    sites = np.sort(random.integers(0, 6, 400))
    targets = np.where(random.random(400) < 0.5, random.integers(0, 8, 400), random.integers(0, 300, 400))
    allowed = np.array([3, 5, 8, 3, 4, 100])
    expected = by_hand(sites.tolist(), targets.tolist(), allowed, once)
    assert navigation_mask(sites, targets, allowed, once).tolist() == expected
    assert navigation_mask(sites, targets.astype(np.uint64), allowed, once).tolist() == expected
    for site in range(6):
        own = targets[sites == site]
        found = site_navigation_mask(own, 300, int(allowed[site]), once, chunk_size=7)
        assert found.tolist() == [out for out, of in zip(expected, sites, strict=True) if of == site]


def test_share_counts_pages_with_links_and_ignores_small_sites():
    assert max_linking_pages(np.array([0, 1, 10, 100, 101]), 0.3).tolist() == [
        MIN_ALLOWED_LINKS,
        MIN_ALLOWED_LINKS,
        MIN_ALLOWED_LINKS,
        30,
        30,
    ]
    assert (max_linking_pages(np.arange(1000), 1.0) >= np.arange(1000)).all()  # nothing is navigation


def test_empty_graph_removes_nothing():
    none = np.zeros(0, dtype=np.int64)
    assert navigation_mask(none, none, none, True).tolist() == site_navigation_mask(none, 0, 3, True, 5).tolist() == []
