"""How a batch list is cut where the store would read all of it to cut it."""

from __future__ import annotations

import pytest

from nutch2py.conf import Configuration
from nutch2py.jobs import batchlist
from nutch2py.jobs.batchlist import BatchLists, State, put_entry, put_redirected
from nutch2py.table import KeyRange, Query


@pytest.fixture
def lists(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> BatchLists:
    """A list as in HBase: 5 partitions of unlike size, one of them empty, and a few rows that redirects led to."""
    monkeypatch.setattr(batchlist, "_MANY", 100)
    found = BatchLists(conf)
    found.store.create()
    with found.store.batch() as batch:
        for partition, size in enumerate((400, 3, 0, 100, 97)):
            for order in range(size):
                put_entry(batch, "b/1", f"{partition:05d}", order, f"com.example:http/{partition}/{order}")
        for number in range(5):
            put_redirected(batch, "b/1", f"com.example:http/elsewhere/{number}")
        put_entry(batch, "b/10", "00000", 0, "org.example:http/")
    found.set_state("b/1", State.GENERATED, 600)
    monkeypatch.setattr(found.store, "row_estimate", lambda: None)

    def sampled(query: Query, count: int) -> list[KeyRange]:
        raise AssertionError("every key was read")

    monkeypatch.setattr(found.store, "key_ranges", sampled)
    return found


@pytest.mark.parametrize(("count", "least", "most"), [(2, 2, 5), (3, 3, 6), (10, 10, 20), (60, 60, 120)])
def test_it_is_cut_by_the_numbers_of_its_entries(lists: BatchLists, count: int, least: int, most: int) -> None:
    found = lists.splits("b/1", count)
    keys = [[*lists.store.keys(split.range)] for split in found]
    assert [key for part in keys for key in part] == [*lists.store.keys(KeyRange("l/b%2F1/", "l/b%2F10"))]
    assert least <= len(found) <= most
    assert all(keys)
    assert max(map(len, keys)) <= 600 // count + 6


def test_a_list_of_few_parts_has_some(lists: BatchLists) -> None:
    """Those of which there are more than twice as many as were asked for are joined."""
    lists.set_state("b/1", State.GENERATED, 6_000_000)
    assert 2 <= len(lists.splits("b/1", 2)) <= 5
