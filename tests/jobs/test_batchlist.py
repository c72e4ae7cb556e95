"""How a batch list is cut, and let go, where the store would read all of it to cut it."""

from __future__ import annotations

from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.jobs import batchlist, clearing
from nutch2py.jobs.batchlist import BatchLists, State, put_entry, put_redirected
from nutch2py.jobs.pagerank_blocks import CUTS, PREFIX
from nutch2py.mapreduce.driver import JobResult
from nutch2py.table import KeyRange, Query, open_store, prefix_range
from nutch2py.webpage import BatchEntry, WebPage


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


class TestLettingGo:
    """By map tasks where it is much: everything of it goes, and nothing else."""

    @pytest.fixture(autouse=True)
    def some_tasks(self, conf: Configuration, lists: BatchLists, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[int] = []
        run_job = clearing.run_job

        def counted(job: Any, conf: Any, splits: Any, **options: Any) -> JobResult:
            self.jobs.append(len(splits))
            return run_job(job, conf, splits, **options)

        monkeypatch.setattr(clearing, "run_job", counted)
        monkeypatch.setattr(BatchLists, "cuts_itself", False)
        monkeypatch.setattr(clearing, "_FEW", 10)
        conf.set("mapreduce.job.maps", "3")
        open_store(conf, WebPage).create()

    def test_a_long_list(self, conf: Configuration, lists: BatchLists) -> None:
        lists.set_state("b/10", State.GENERATED, 1)
        clearing.forget(conf, lists, "b/1", "IndexingJob")
        assert [key for key, _ in lists.store.scan(Query(None))] == ["l/b%2F10/00000/000000000", "s/b%2F10"]
        clearing.forget(conf, lists, "b/10", "IndexingJob")
        assert [*lists.store.keys(KeyRange())] == []
        (tasks,) = self.jobs  # one job, for the long one
        assert tasks >= 3

    def test_the_state_goes_last(self, conf: Configuration, lists: BatchLists, monkeypatch: pytest.MonkeyPatch) -> None:
        def killed(*_: Any, **__: Any) -> JobResult:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(clearing, "run_job", killed)
            with pytest.raises(KeyboardInterrupt):
                clearing.forget(conf, lists, "b/1", "IndexingJob")
        assert lists.state("b/1") is not None
        clearing.forget(conf, lists, "b/1", "IndexingJob")
        assert lists.state("b/1") is None

    def test_the_blocks_of_pagerank(self, conf: Configuration, lists: BatchLists) -> None:
        keys = [f"r/{kind}/{number % 256:02x}{number:04d}" for kind in ("c", "e", "k", "r/0") for number in range(30)]
        with lists.store.batch() as batch:
            for key in keys:
                entry = BatchEntry()
                entry.count = 1
                batch.put(key, entry)
        clearing.clear(conf, lists, prefix_range(PREFIX), CUTS, "PageRankJob")
        assert not [*lists.store.keys(prefix_range(PREFIX))]
        assert [*lists.store.keys(KeyRange())]
        assert self.jobs == [5]
        clearing.clear(conf, lists, prefix_range(PREFIX), CUTS, "PageRankJob")
        assert self.jobs == [5]
