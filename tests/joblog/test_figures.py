"""Table statistics without a scan: those of readdb -stats, and the number of due rows."""

from __future__ import annotations

from pathlib import Path

from nutch2py import Crawl
from nutch2py.jobs.stats.stats_collector import get_status_name
from tests.jobs.crawl import properties


def test_figures_equal_readdb_stats(tmp_path: Path) -> None:
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", properties()) as crawl:
        crawl.inject([f"http://127.0.0.1:9/{number}\tnutch.score={number}" for number in range(5)])
        stats = crawl.table_stats()
        assert stats is not None
        assert (stats.rows, stats.status, stats.retries, stats.due) == (5, {"null": 5}, {"0": 5}, 5)
        assert stats.score == (0.0, 2.0, 4.0)
        assert (crawl.jobs(limit=0), crawl.job("none"), crawl.overview()) == ([], None, None)


def test_status_names_equal_readdb_stats() -> None:
    assert [get_status_name(code) for code in (0, 1, 2, 34, 99)] == [
        *("null", "status_unfetched", "status_fetched", "status_retry", "null")
    ]
