"""Which links are navigation."""

from collections import Counter

import numpy as np
import pytest

from nutch2py.scoring.navigation import FEW, left_out, left_out_of_one, most


def by_hand(sites, targets, allowed, once):
    counts, seen, found = Counter(zip(sites, targets, strict=True)), set(), []
    for pair in zip(sites, targets, strict=True):
        over = counts[pair] > allowed[pair[0]]
        found.append(over and (not once or pair in seen))
        seen.add(pair)
    return found


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_links_are_left_out_by_the_rule(seed, once):
    random = np.random.default_rng(seed)
    sites = np.sort(random.integers(0, 6, 400))
    targets = np.where(random.random(400) < 0.5, random.integers(0, 8, 400), random.integers(0, 300, 400))
    allowed = np.array([3, 5, 8, 3, 4, 100])
    expected = by_hand(sites.tolist(), targets.tolist(), allowed, once)
    assert left_out(sites, targets, allowed, once).tolist() == expected
    assert left_out(sites, targets.astype(np.uint64), allowed, once).tolist() == expected
    for site in range(6):
        own = targets[sites == site]
        found = left_out_of_one(own, 300, int(allowed[site]), once, piece=7)
        assert found.tolist() == [out for out, of in zip(expected, sites, strict=True) if of == site]


def test_the_share_is_of_pages_with_links_and_few_are_none():
    assert most(np.array([0, 1, 10, 100, 101]), 0.3).tolist() == [FEW, FEW, FEW, 30, 30]
    assert (most(np.arange(1000), 1.0) >= np.arange(1000)).all()  # nothing is navigation


def test_nothing_is_left_out_of_nothing():
    none = np.zeros(0, dtype=np.int64)
    assert left_out(none, none, none, True).tolist() == left_out_of_one(none, 0, 3, True, 5).tolist() == []
