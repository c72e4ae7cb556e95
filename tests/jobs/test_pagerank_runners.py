"""PageRank by MapReduce gives the ranks of the memory path on every runner, and on HBase.

On YARN: tests/mapreduce/test_yarn_crawl.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.pagerank.pagerank_job import pagerank
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.table.table_copy import copy_table
from tests.jobs.test_pagerank import make_table, ranks_of, web_with_navigation
from tests.services import needs_spark


def ranks_in_memory(conf: Configuration, iterations: int) -> dict[str, float]:
    """Make a table of 400 pages and rank them in memory; the table is then without ranks again."""
    make_table(conf, web_with_navigation(400, seed=11))
    conf.set("pagerank.iterations", iterations)
    conf.set("pagerank.method", "memory")
    assert pagerank(conf).method == "memory"
    ranks = ranks_of(conf)
    store = open_store(conf, WebPage)
    with store.batch() as batch:
        for key, page in store.scan(TableQuery(frozenset({WebPage.page_rank, WebPage.fetch_interval}))):
            page.page_rank = 0.0
            batch.put(key, page)
    assert not any(ranks_of(conf).values())
    return ranks


def equal_by_mapreduce(conf: Configuration, runner: dict[str, str], expected: dict[str, float]) -> None:
    """Rank the same table by MapReduce, two map tasks and two reduce tasks; compare rank by rank."""
    settings = {"mapreduce.job.maps": "2", "mapreduce.job.reduces": "2", "pagerank.method": "mapreduce", **runner}
    for name, value in settings.items():
        conf.set(name, value)
    assert pagerank(conf).method == "mapreduce"
    found = ranks_of(conf)
    assert set(found) == set(expected)
    assert max(abs(found[key] - expected[key]) for key in expected) < 1e-6


@pytest.mark.parametrize(("runner", "iterations"), [("inline", 20), ("local", 2)])
def test_pagerank_inline_and_local_give_same_ranks(conf: Configuration, runner: str, iterations: int) -> None:
    equal_by_mapreduce(conf, {"mapreduce.runner": runner}, ranks_in_memory(conf, iterations))


@needs_spark
def test_pagerank_on_spark_gives_same_ranks(conf: Configuration) -> None:
    expected = ranks_in_memory(conf, 1)
    equal_by_mapreduce(conf, {"mapreduce.runner": "spark", "mapreduce.spark.master": "local[2]"}, expected)


def on_hbase(conf: Configuration, hbase: Any, crawl_id: str) -> Configuration:
    """Copy the table into HBase and give the configuration of a job there."""
    copy = conf.copy()
    copy.set("storage.data.store", hbase.address())
    copy.set("storage.crawl.id", crawl_id)
    target = open_store(copy, WebPage)
    target.create()
    copy_table(open_store(conf, WebPage), target)
    return copy


@pytest.mark.parametrize(("runner", "iterations"), [("inline", 20), ("local", 2)])
def test_pagerank_on_hbase_gives_same_ranks(conf: Configuration, hbase: Any, runner: str, iterations: int) -> None:
    expected = ranks_in_memory(conf, iterations)
    copy = on_hbase(conf, hbase, f"rank{runner}")
    equal_by_mapreduce(copy, {"mapreduce.runner": runner}, expected)
    in_memory = on_hbase(conf, hbase, f"rank{runner}memory")
    in_memory.set("pagerank.method", "memory")
    pagerank(in_memory)
    assert ranks_of(in_memory) == expected
