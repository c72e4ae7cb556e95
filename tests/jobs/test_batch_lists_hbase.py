"""A long batch list in a real HBase: cut by the numbers of its entries, and let go by tasks."""

from __future__ import annotations

from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches import batch_lists, bulk_delete
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry, put_redirect_target
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store, prefix_range

_SIZES = (1_500, 3, 0, 800, 700)


@pytest.mark.parametrize("times", [1, 50])
def test_hbase_long_list_is_split_and_deleted(
    times: int, hbase: Any, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``times``: of 3,000 entries; 150,000 are a list that counts as long of itself."""
    if times == 1:
        monkeypatch.setattr(batch_lists, "LONG_LIST_ENTRIES", 3_000)
    monkeypatch.setattr(bulk_delete, "MAX_DRIVER_ROWS", 2_000)
    conf.set("storage.data.store", hbase.location)
    conf.set("storage.crawl.id", f"lists{times}")
    conf.set("mapreduce.job.maps", "4")
    lists = BatchListStore(conf)
    lists.store.create()
    open_store(conf, WebPage).create()
    with lists.store.batch() as batch:
        for partition, size in enumerate(_SIZES):
            for order in range(size * times):
                put_list_entry(batch, "b", f"{partition:05d}", order, f"com.example:http/{partition}/{order}")
        for number in range(50):
            put_redirect_target(batch, "b", f"com.example:http/elsewhere/{number}")
        put_list_entry(batch, "other", "00000", 0, "com.example:http/")
    lists.set_state("b", BatchState.GENERATED, sum(_SIZES) * times)

    def sampled(*_: Any) -> Any:
        raise AssertionError("every key was read")

    with monkeypatch.context() as patched:
        patched.setattr(type(lists.store), "key_ranges", sampled)
        splits = lists.make_list_splits("b", 12)
    parts = [[*lists.store.keys(split.key_range)] for split in splits]
    assert [key for part in parts for key in part] == [*lists.store.keys(prefix_range("l/b/"))]
    assert 12 <= len(splits) <= 24
    assert max(map(len, parts)) <= sum(_SIZES) * times // 12 + 60
    bulk_delete.bulk_delete_batch(conf, lists, "b", "IndexingJob")
    assert [*lists.store.keys(prefix_range("l/"))] == ["l/other/00000/000000000"]
    assert lists.list_records() == []
