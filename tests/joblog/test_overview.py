"""The overview: what updatehostdb, readdb -stats and pagerank have seen of a crawl as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.crawl_overview import MAX_EDGES, MAX_HOSTS, HostEdge, HostSummary, Overview
from nutch2py.joblog.stored_overview import (
    OVERVIEW_PREFIX,
    TABLE_STATS_KEY,
    load_overview,
    load_table_stats,
    store_overview_part,
)
from nutch2py.joblog.table_stats import TableStats
from nutch2py.jobs.hostdb.overview_builder import HostOverviewBuilder, save_host_overview
from nutch2py.jobs.stats.page_histograms import HISTOGRAM_BOUNDS, PageHistograms
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, WebPage
from nutch2py.support.histogram import Histogram
from nutch2py.table import open_store
from tests.jobs.crawl import properties


def _page(url: str, status: int, score: float, links: tuple[str, ...] = ()) -> tuple[str, WebPage]:
    from nutch2py.url.keys import reverse_url

    page = WebPage()
    page.status, page.score, page.fetch_interval = status, score, 86400
    page.markers = {Mark.DISTANCE: str(len(links))}
    page.outlinks = dict.fromkeys(links, "")
    return reverse_url(url), page


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_overview_contains_counts_of_jobs(tmp_path: Path, runner: str) -> None:
    settings = {**properties(runner), "mapreduce.job.reduces": "2"}
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", settings) as crawl:
        crawl.inject(["http://a.example/", "http://b.example/"])
        with open_store(crawl.conf, WebPage).batch() as batch:
            for key, page in (
                _page("http://a.example/1", CrawlStatus.FETCHED, 0.5, ("http://b.example/", "http://a.example/")),
                _page("http://a.example/2", CrawlStatus.GONE, 2.0, ("http://b.example/",)),
                _page("http://b.example/1", CrawlStatus.RETRY, 2.0),
            ):
                batch.put(key, page)
        assert crawl.overview() is None
        crawl.updatehostdb()
        seen = crawl.overview()
        assert seen is not None
        assert (seen.host_count, seen.edges, "depth" in seen.histograms) == (2, (), False)
        assert seen.hosts == (
            HostSummary("a.example", 3, 1, 1, {"null": 1, "status_fetched": 1, "status_gone": 1}),
            HostSummary("b.example", 2, 0, 1, {"null": 1, "status_retry": 1}),
        )
        assert seen.histograms["score"] == Histogram((0.3, 1.0), (1, 4))
        assert sum(seen.histograms["interval"].counts) == 5
        crawl.updatehostdb(links=True)
        seen = crawl.overview()
        assert seen is not None
        assert seen.edges == (HostEdge("a.example", "b.example", 2),)
        assert [(each.inlinks, each.outlinks) for each in seen.hosts] == [(0, 2), (0, 0)]  # inlinks are not noted yet
        assert seen.histograms["depth"] == Histogram((0.0, 1.0, 2.0), (3, 1, 1))
        assert "pagerank" not in seen.histograms
        crawl.pagerank()
        ranked = crawl.overview()
        assert ranked is not None
        assert sum(ranked.histograms["pagerank"].counts) > 0
        assert (ranked.hosts, ranked.edges) == (seen.hosts, seen.edges)
        crawl.stats(exact=True)
        stats = crawl.jobs(limit=1)[0].table_stats
        assert stats is not None
        assert (stats.rows, stats.due) == (5, None)
        crawl.due_index(drop=True)  # as HBase, which keeps no statistics
        assert crawl.table_stats() == stats


def test_overview_size_is_bounded(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    parts = [HostOverviewBuilder(counts_links=True), HostOverviewBuilder(counts_links=True)]
    for number in range(2 * MAX_HOSTS):
        links = Counter({f"t{to}.example": number + to for to in range(60)})
        parts[number % 2].add_host(f"h{number:03d}.example", Counter({2: number + 1}), 0, Counter(), links)
    save_host_overview(conf, True, [part.to_json() for part in parts])
    store = open_store(conf, DerivedRow)
    seen = load_overview(store)
    assert seen is not None
    assert (len(seen.hosts), len(seen.edges), seen.host_count) == (MAX_HOSTS, MAX_EDGES, 2 * MAX_HOSTS)
    assert [each.rows for each in seen.hosts] == [*range(2 * MAX_HOSTS, MAX_HOSTS, -1)]
    everything = sorted((n + to for n in range(2 * MAX_HOSTS) for to in range(60)), reverse=True)
    assert [each.links for each in seen.edges] == everything[:MAX_EDGES]
    row = store.get(f"{OVERVIEW_PREFIX}hosts")
    assert row is not None
    assert len(row.data or b"") < 50_000


def test_foreign_bytes_are_ignored(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    for record in (WebPage, DerivedRow):
        open_store(conf, record).create()
    store = open_store(conf, DerivedRow)
    store_overview_part(store, "hosts", Overview(5, host_count=1))
    with store.batch() as batch:
        for key in (f"{OVERVIEW_PREFIX}links", f"{OVERVIEW_PREFIX}\U0001f577", TABLE_STATS_KEY):
            row = DerivedRow()
            row.data = b'{"counted_at": "today"}'
            batch.put(key, row)
    assert load_overview(store) == Overview(5)
    with Crawl(conf, {"storage.embedded.due.index": False}) as crawl:
        assert crawl.table_stats() is None


def test_rows_of_older_version_are_read(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    store = open_store(conf, DerivedRow)
    store.create()
    old = {
        f"{OVERVIEW_PREFIX}hosts": b'{"made":5,'
        b'"hosts":[{"host":"a","rows":1,"fetched":1,"errors":0,"status":{"made":1}}],'
        b'"all_hosts":7,"edges":[],"histograms":{}}',
        TABLE_STATS_KEY: b'{"made":6,"rows":4,"status":{},"score":null,"due":null}',
    }
    with store.batch() as batch:
        for key, data in old.items():
            row = DerivedRow()
            row.data = data
            batch.put(key, row)
    assert load_overview(store) == Overview(5, (HostSummary("a", 1, 1, 0, {"made": 1}),), host_count=7)
    assert load_table_stats(store) == TableStats(6, 4)


def test_histogram_buckets_have_expected_bounds() -> None:
    spreads = PageHistograms(with_depth=True)
    for score, depth in ((-1.0, "-3"), (float("nan"), "x"), (1e30, "9" * 30), (0.0, ""), (1e-6, "7")):
        page = WebPage()
        page.score, page.markers = score, {Mark.DISTANCE: depth}
        spreads.add(page)
    counts = spreads.to_json()
    other = PageHistograms()
    other.merge(counts)
    assert other.make_histograms()["score"].counts[0] == 3
    assert sum(other.make_histograms()["score"].counts) == 5
    assert sum(other.make_histograms()["depth"].counts) == 2
    assert Histogram((0.0, 1.0), (0, 0)).trimmed() == Histogram((0.0,), (0,))
    assert all([*bounds] == sorted(set(bounds)) for bounds in HISTOGRAM_BOUNDS.values())
