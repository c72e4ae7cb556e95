"""PageRankJob without navigation, on sites that no design has: both ways give the same ranks."""

import numpy as np
import pytest

from nutch2py.jobs.pagerank import graph_blocks
from nutch2py.jobs.pagerank.pagerank_job import pagerank
from nutch2py.jobs.pagerank.site_navigation import COUNTS_KIND, OpenSite, OpenSiteCounter, encode_site_counts
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.test_pagerank import close, make_table, ranks_of

MANY = 20_000


def both_ways(conf, write):
    """Return the size of the graph and the ranks; in memory and by MapReduce they are the same."""
    found = []
    for method in ("memory", "mapreduce"):
        store = open_store(conf, WebPage)
        if store.exists():
            store.drop()
        write()
        conf.set("pagerank.method", method)
        conf.set("pagerank.iterations", 2)
        conf.set("mapreduce.job.maps", 3)
        result = pagerank(conf)
        found.append(((result.pages, result.links), ranks_of(conf)))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-6)
    return found[0]


def linked(conf, pages):
    """Return how many links count, of pages that link to one another."""
    return both_ways(conf, lambda: make_table(conf, {url: (CrawlStatus.FETCHED, to) for url, to in pages.items()}))


def test_small_site_has_no_navigation(conf):
    pages = {f"http://h{n}.org/{m}": ["http://c.org/"] for n in range(4) for m in range(n)} | {"http://c.org/": []}
    assert linked(conf, pages)[0] == (7, 6)


def test_footer_counts_once_and_menu_not_at_all(conf):
    urls = [f"http://a.org/{n}" for n in range(40)]
    pages = {url: [urls[0], "http://b.org/"] for url in urls} | {"http://b.org/": [], "http://z.org/": [urls[0]]}
    (_, count), ranks = linked(conf, pages)
    assert count == 2  # the first page's link to b.org, and z.org's
    assert ranks["org.b:http/"] > ranks["org.a:http/1"]


def test_links_differing_per_page_are_not_navigation(conf):
    pages = {f"http://a.org/{n}": [f"http://b.org/{n}"] for n in range(40)}
    pages |= {f"http://b.org/{n}": [f"http://b.org/{n}"] for n in range(40)}  # and a page's link to itself is none
    assert linked(conf, pages)[0] == (80, 40)


def test_unfetched_page_does_not_enlarge_site(conf):
    pages = {f"http://a.org/{n:03d}": (CrawlStatus.FETCHED, ["http://b.org/"]) for n in range(8)}
    pages |= {f"http://a.org/{n:03d}": (CrawlStatus.UNFETCHED, []) for n in range(100, 400)}
    pages["http://b.org/"] = (CrawlStatus.FETCHED, [])
    assert both_ways(conf, lambda: make_table(conf, pages))[0] == (309, 1)


def test_many_links_with_long_texts_are_bounded(conf):
    def write():
        store = make_table(conf, {f"http://a.org/{n}": (CrawlStatus.FETCHED, ["http://b.org/x"]) for n in range(5)})
        page = WebPage()
        page.fetch_interval, page.status = 1, CrawlStatus.FETCHED
        page.outlinks = {f"http://b.org/x#{n}": "" if n else "x" * 1_000_000 for n in range(MANY)}
        target = WebPage()
        target.fetch_interval = 1
        with store.batch() as batch:
            batch.put(reverse_url("http://a.org/many"), page)
            batch.put(reverse_url("http://b.org/x"), target)

    assert both_ways(conf, write)[0] == (7, 1)


def test_page_linking_to_thousands_is_counted(conf):
    urls = [f"http://b.org/{n}" for n in range(MANY // 10)]
    pages = {url: [] for url in urls} | {f"http://a.org/{n}": urls for n in range(4)}
    assert linked(conf, pages)[0] == (len(urls) + 4, len(urls))


def test_rows_without_host_are_accepted(conf, monkeypatch):
    monkeypatch.setattr(graph_blocks, "PAGES_PER_BLOCK", 5)
    keys = [
        "nothing",
        ":",
        ":file/x",
        "[::1]:http/",
        "[::1]:http/2",
        "[",
        "org.a:http/",
        "org.a-b:http/",
        "org.a0:http/",
    ]
    keys += [f":file/{n}" for n in range(6)] + [f"[::1]:http/{n}" for n in range(6)]

    def write():
        store = make_table(conf, {})
        with store.batch() as batch:
            for key in keys:
                page = WebPage()
                page.fetch_interval, page.status = 1, CrawlStatus.FETCHED
                page.outlinks = {"http://a.org/": "", "http://[::1]/": "", "file:/x": "", "nonsense": "", "": ""}
                batch.put(key, page)

    both_ways(conf, write)


def test_site_counts_are_summed_in_page_order():
    hashes = np.arange(10, 20, dtype=np.uint64)
    sites = OpenSiteCounter(lambda found: (found.astype(np.int64) - 10, (found >= 10) & (found < 20)), 0.3)

    def record(name, first, block, linking, targets, counts, numbers):
        some = np.array(targets, dtype=np.uint64)
        return encode_site_counts(
            OpenSite(name * 16, first, 0, 0, linking), block, some, np.array(counts), np.array(numbers, dtype=np.uint16)
        )

    records = [
        record("a", "02", "second", 4, [10, 12, 99], [2, 1, 4], [7, 8, 9]),
        record("a", "01", "first", 6, [12, 13], [3, 1], [5, 6]),
        record("b", "01", "third", 50, [10, 11], [15, 16], [1, 2]),
    ]
    assert all(each.startswith(COUNTS_KIND) for each in records)
    for each in sorted(records):
        sites.add_record(each)
    sites.finish_site()
    places, numbers = hashes.astype(np.int64) - 10, np.full(10, 5, dtype=np.uint16)
    out = sites.mask_navigation("a" * 16, "first", places, numbers, keeps_first=False)
    assert np.flatnonzero(out).tolist() == [2]  # 4 of 10 pages, in two parts
    assert not sites.mask_navigation(
        "a" * 16, "first", places, numbers, keeps_first=True
    ).any()  # page 5 of this block is the first
    assert sites.mask_navigation("a" * 16, "second", places, numbers, keeps_first=True)[2]
    assert np.flatnonzero(sites.mask_navigation("b" * 16, "third", places, numbers, keeps_first=True)).tolist() == [1]
    assert not sites.mask_navigation("c" * 16, "third", places, numbers, keeps_first=True).any()


def test_page_with_only_navigation_equals_page_without_links(conf):
    urls = [f"http://a.org/{n}" for n in range(10)]
    conf.set("pagerank.dangling", "spread")
    (_, count), ranks = linked(conf, {url: [urls[0], urls[1]] for url in urls})
    assert count == 0
    assert close(ranks, dict.fromkeys(ranks, 1.0))  # all rank is spread evenly
