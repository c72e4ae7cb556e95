"""Batch lists are split and deleted without reading them whole."""

from __future__ import annotations

from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches import batch_lists, bulk_delete
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry, put_redirect_target
from nutch2py.jobs.pagerank.graph_blocks import BLOCKS_PREFIX, LINK_SPLIT_KEYS
from nutch2py.mapreduce.driver import JobResult
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import KeyRange, TableQuery, open_store, prefix_range


@pytest.fixture
def lists(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> BatchListStore:
    """A list as in HBase: 5 partitions of unlike size, one of them empty, and a few rows that redirects led to."""
    monkeypatch.setattr(batch_lists, "LONG_LIST_ENTRIES", 100)
    found = BatchListStore(conf)
    found.store.create()
    with found.store.batch() as batch:
        for partition, size in enumerate((400, 3, 0, 100, 97)):
            for order in range(size):
                put_list_entry(batch, "b/1", f"{partition:05d}", order, f"com.example:http/{partition}/{order}")
        for number in range(5):
            put_redirect_target(batch, "b/1", f"com.example:http/elsewhere/{number}")
        put_list_entry(batch, "b/10", "00000", 0, "org.example:http/")
    found.set_state("b/1", BatchState.GENERATED, 600)
    monkeypatch.setattr(found.store, "row_estimate", lambda: None)

    def sampled(query: TableQuery, count: int) -> list[KeyRange]:
        raise AssertionError("every key was read")

    monkeypatch.setattr(found.store, "key_ranges", sampled)
    return found


@pytest.mark.parametrize(("count", "least", "most"), [(2, 2, 5), (3, 3, 6), (10, 10, 20), (60, 60, 120)])
def test_large_list_is_split_by_entry_numbers(lists: BatchListStore, count: int, least: int, most: int) -> None:
    found = lists.make_list_splits("b/1", count)
    keys = [[*lists.store.keys(split.key_range)] for split in found]
    assert [key for part in keys for key in part] == [*lists.store.keys(KeyRange("l/b%2F1/", "l/b%2F10"))]
    assert least <= len(found) <= most
    assert all(keys)
    assert max(map(len, keys)) <= 600 // count + 6


def test_list_with_few_parts_is_split(lists: BatchListStore) -> None:
    """Parts are joined when there are more than twice as many as requested."""
    lists.set_state("b/1", BatchState.GENERATED, 6_000_000)
    assert 2 <= len(lists.make_list_splits("b/1", 2)) <= 5


class TestLettingGo:
    """By map tasks where it is much: everything of it goes, and nothing else."""

    @pytest.fixture(autouse=True)
    def some_tasks(self, conf: Configuration, lists: BatchListStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[int] = []
        run_job = bulk_delete.run_job

        def counted(job: Any, conf: Any, splits: Any, **options: Any) -> JobResult:
            self.jobs.append(len(splits))
            return run_job(job, conf, splits, **options)

        monkeypatch.setattr(bulk_delete, "run_job", counted)
        monkeypatch.setattr(BatchListStore, "can_split_ranges", False)
        monkeypatch.setattr(bulk_delete, "MAX_DRIVER_ROWS", 10)
        conf.set("mapreduce.job.maps", "3")
        open_store(conf, WebPage).create()

    def test_long_list_is_deleted_in_parts(self, conf: Configuration, lists: BatchListStore) -> None:
        lists.set_state("b/10", BatchState.GENERATED, 1)
        bulk_delete.bulk_delete_batch(conf, lists, "b/1", "IndexingJob")
        assert [key for key, _ in lists.store.scan(TableQuery(None))] == ["l/b%2F10/00000/000000000", "s/b%2F10"]
        bulk_delete.bulk_delete_batch(conf, lists, "b/10", "IndexingJob")
        assert [*lists.store.keys(KeyRange())] == []
        (tasks,) = self.jobs  # one job, for the long one
        assert tasks >= 3

    def test_state_is_deleted_last(
        self, conf: Configuration, lists: BatchListStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: Any, **__: Any) -> JobResult:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(bulk_delete, "run_job", killed)
            with pytest.raises(KeyboardInterrupt):
                bulk_delete.bulk_delete_batch(conf, lists, "b/1", "IndexingJob")
        assert lists.get_record("b/1") is not None
        bulk_delete.bulk_delete_batch(conf, lists, "b/1", "IndexingJob")
        assert lists.get_record("b/1") is None

    def test_pagerank_blocks_are_deleted(self, conf: Configuration, lists: BatchListStore) -> None:
        keys = [f"r/{kind}/{number % 256:02x}{number:04d}" for kind in ("c", "e", "k", "r/0") for number in range(30)]
        with lists.store.batch() as batch:
            for key in keys:
                entry = DerivedRow()
                entry.count = 1
                batch.put(key, entry)
        bulk_delete.bulk_delete_range(conf, lists, prefix_range(BLOCKS_PREFIX), LINK_SPLIT_KEYS, "PageRankJob")
        assert not [*lists.store.keys(prefix_range(BLOCKS_PREFIX))]
        assert [*lists.store.keys(KeyRange())]
        assert self.jobs == [5]
        bulk_delete.bulk_delete_range(conf, lists, prefix_range(BLOCKS_PREFIX), LINK_SPLIT_KEYS, "PageRankJob")
        assert self.jobs == [5]
