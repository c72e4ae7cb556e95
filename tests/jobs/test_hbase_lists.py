"""A long batch list in a real HBase: cut by the numbers of its entries, and let go by tasks."""

from __future__ import annotations

from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.jobs import batchlist, clearing
from nutch2py.jobs.batchlist import BatchLists, State, put_entry, put_redirected
from nutch2py.table import open_store, prefix_range
from nutch2py.webpage import WebPage

_SIZES = (1_500, 3, 0, 800, 700)


@pytest.mark.parametrize("times", [1, 50])
def test_it_is_cut_by_numbers_and_let_go(
    times: int, hbase: Any, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``times``: of 3,000 entries; 150,000 are a list that counts as long of itself."""
    if times == 1:
        monkeypatch.setattr(batchlist, "_MANY", 3_000)
    monkeypatch.setattr(clearing, "_FEW", 2_000)
    conf.set("storage.data.store", hbase.location)
    conf.set("storage.crawl.id", f"lists{times}")
    conf.set("mapreduce.job.maps", "4")
    lists = BatchLists(conf)
    lists.store.create()
    open_store(conf, WebPage).create()
    with lists.store.batch() as batch:
        for partition, size in enumerate(_SIZES):
            for order in range(size * times):
                put_entry(batch, "b", f"{partition:05d}", order, f"com.example:http/{partition}/{order}")
        for number in range(50):
            put_redirected(batch, "b", f"com.example:http/elsewhere/{number}")
        put_entry(batch, "other", "00000", 0, "com.example:http/")
    lists.set_state("b", State.GENERATED, sum(_SIZES) * times)

    def sampled(*_: Any) -> Any:
        raise AssertionError("every key was read")

    with monkeypatch.context() as patched:
        patched.setattr(type(lists.store), "key_ranges", sampled)
        splits = lists.splits("b", 12)
    parts = [[*lists.store.keys(split.range)] for split in splits]
    assert [key for part in parts for key in part] == [*lists.store.keys(prefix_range("l/b/"))]
    assert 12 <= len(splits) <= 24
    assert max(map(len, parts)) <= sum(_SIZES) * times // 12 + 60
    clearing.forget(conf, lists, "b", "IndexingJob")
    assert [*lists.store.keys(prefix_range("l/"))] == ["l/other/00000/000000000"]
    assert lists.states() == []
