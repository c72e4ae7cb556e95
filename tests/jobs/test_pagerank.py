"""PageRankJob on tables: both ways give the same ranks."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from nutch2py.cli import main
from nutch2py.errors import StoreError
from nutch2py.indexer.filters.index_pagerank import MEAN_RANK_ROW
from nutch2py.joblog.job_log_store import KEY_PREFIX
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.pagerank import graph_blocks
from nutch2py.jobs.pagerank.graph_links import GraphLinkRules, PageLinks
from nutch2py.jobs.pagerank.pagerank_job import pagerank
from nutch2py.jobs.pagerank.pagerank_memory import GraphTooLargeError, MemoryGraph
from nutch2py.mapreduce.lock_check import LOCKS_KEY
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url, reversed_host_of_key


def make_table(conf, pages):
    """Write pages: URL -> (status, URLs linked to)."""
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for url, (status, links) in pages.items():
            page = WebPage()
            page.fetch_interval = 1
            if status:
                page.status = status
            for link in links:
                page.outlinks[link] = "text"
            batch.put(reverse_url(url), page)
    return store


def ranks_of(conf):
    store = open_store(conf, WebPage)
    return {key: page.page_rank for key, page in store.scan(TableQuery())}


def random_web(count, seed=3):
    chance = random.Random(seed)
    urls = [f"http://{chance.choice('abcdefg')}.site{number % 7}.org/{number}" for number in range(count)]
    statuses = [CrawlStatus.FETCHED] * 16 + [CrawlStatus.UNFETCHED, 0, CrawlStatus.GONE, CrawlStatus.REDIR_PERM]
    return {
        url: (
            chance.choice(statuses),
            [chance.choice(urls) for _ in range(chance.randrange(9))] + ["http://elsewhere.net/", "http://bad url:x/"],
        )
        for url in urls
    }


def web_with_navigation(count, seed=3):
    """Sites of 1 to 60 pages: a menu on each, or on some, a footer to other sites, and links at random."""
    chance = random.Random(seed)
    sites = []
    while sum(map(len, sites)) < count:
        host = f"http://{chance.choice('abc')}.site{len(sites):03d}{chance.choice(['', '-x', '0'])}.org"
        sites.append([f"{host}/{number}" for number in range(chance.choice([1, 2, 3, 4, 5, 20, 60]))])
    urls = [url for pages in sites for url in pages]
    web = {}
    for pages in sites:
        menu, footer = chance.sample(pages, min(3, len(pages))), chance.sample(urls, 3)
        for url in pages:
            links = chance.sample(urls, 3) + [link for link in (*menu, *footer) if chance.random() < 0.6]
            web[url] = (chance.choice([CrawlStatus.FETCHED] * 9 + [CrawlStatus.GONE]), links)
            if chance.random() < 0.2:
                web[url] = (CrawlStatus.UNFETCHED, [])
    return web


def without_navigation(links, share):
    """What is left of key -> links, the rule of docs/jobs/pagerank.md word by word."""
    counts, linking, seen, left = Counter(), Counter(), set(), {}
    for key, found in links.items():
        linking[reversed_host_of_key(key)] += any(found)
        counts.update((reversed_host_of_key(key), target) for kind in found for target in kind)
    for key in sorted(links):
        host, (internal, external) = reversed_host_of_key(key), links[key]
        over = {t for t in (*internal, *external) if counts[host, t] > max(3, math.floor(share * linking[host]))}
        left[key] = PageLinks(
            [t for t in internal if t not in over],
            [t for t in external if t not in over or (host, t) not in seen],
        )
        seen |= {(host, target) for target in external}
    return left


def by_hand(conf, pages, iterations, base, weight, spread=False):
    """The formula, page by page; weight: internal -> number."""
    rules = GraphLinkRules(conf)
    nodes = {}
    for url, (status, links) in pages.items():
        page = WebPage()
        page.status = status
        page.outlinks = dict.fromkeys(links, "")
        if rules.is_page(page):
            nodes[reverse_url(url)] = rules.select_links(reverse_url(url), page)
    nodes = without_navigation(nodes, rules.navigation_share)
    links = {
        key: [(t, True) for t in found.internal if t in nodes] + [(t, False) for t in found.external if t in nodes]
        for key, found in nodes.items()
    }
    ranks = dict.fromkeys(nodes, 1.0)
    for _ in range(iterations):
        lost = sum(ranks[key] for key in nodes if not links[key]) if spread else 0.0
        after = {key: base + (1 - base) * lost / len(nodes) for key in nodes}
        for key, targets in links.items():
            for target, internal in targets:
                after[target] += (1 - base) * weight[internal] * ranks[key] / len(targets)
        ranks = after
    return ranks


def close(found, expected):
    assert {key for key, rank in found.items() if rank} == set(expected)
    return max(abs(found[key] - rank) for key, rank in expected.items()) < 1e-6


@pytest.mark.parametrize("method", ["memory", "mapreduce"])
@pytest.mark.parametrize("site", ["host", "domain"])
def test_ranks_match_formula(conf, method, site):
    conf.set("pagerank.method", method)
    conf.set("pagerank.site", site)
    conf.set("pagerank.external.weight", 0.7)
    pages = random_web(300)
    make_table(conf, pages)
    result = pagerank(conf)
    assert (result.method, result.iterations) == (method, 20)
    assert close(ranks_of(conf), by_hand(conf, pages, 20, 0.15, {True: 0.3, False: 0.7}))


@pytest.mark.parametrize("method", ["memory", "mapreduce"])
@pytest.mark.parametrize(
    ("share", "held", "pages"), [(0, 40, 16), (0.02, 1000, 64), (0.3, 40, 64), (0.3, 10_000, 1000), (0.8, 1000, 16)]
)
def test_navigation_links_are_ignored(conf, monkeypatch, method, share, held, pages):
    """Sites lie in several blocks, and in several pieces that a task holds, and in several tasks."""
    monkeypatch.setattr(graph_blocks, "MAX_HELD_LINKS", held)
    monkeypatch.setattr(graph_blocks, "PAGES_PER_BLOCK", pages)
    monkeypatch.setattr("nutch2py.jobs.pagerank.pagerank_memory.LINKS_PER_CHUNK", held)
    conf.set("pagerank.method", method)
    conf.set("pagerank.navigation.share", share)
    conf.set("pagerank.site", "domain" if share == 0.02 else "host")
    conf.set("mapreduce.job.maps", 3)
    conf.set("mapreduce.job.reduces", 2)
    conf.set("pagerank.iterations", 3)
    web = web_with_navigation(300, seed=held)
    make_table(conf, web)
    result = pagerank(conf)
    assert result.method == method
    assert close(ranks_of(conf), by_hand(conf, web, 3, 0.15, {True: 0.01, False: 0.99}))
    conf.set("pagerank.navigation.share", 1)
    conf.set("pagerank.iterations", 1)
    assert pagerank(conf).links > result.links


OPTIONS = [
    {},
    {"pagerank.model": "classic", "pagerank.dangling": "spread"},
    {"pagerank.external.weight": "1", "pagerank.base": "0.4"},
    {"pagerank.unfetched": "false", "pagerank.ignore.internal": "host", "pagerank.site": "domain"},
    {"pagerank.limit": "domain", "pagerank.iterations": "3"},
    {"pagerank.model": "linkrank"},
    {"pagerank.tolerance": "0.001", "pagerank.iterations": "50"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_mapreduce_ranks_equal_in_memory_ranks(conf, monkeypatch, options):
    conf.set("pagerank.iterations", 5)
    for name, value in options.items():
        conf.set(name, value)
    monkeypatch.setattr(graph_blocks, "PAGES_PER_BLOCK", 64)  # several of all there is
    monkeypatch.setattr(graph_blocks, "MAX_HELD_LINKS", 100)
    monkeypatch.setattr("nutch2py.jobs.pagerank.link_graph_job.MAX_KEY_CHARACTERS", 1200)
    monkeypatch.setattr("nutch2py.jobs.pagerank.pagerank_mapreduce.MAX_HELD_VECTORS", 2)
    make_table(conf, random_web(300, seed=5) | web_with_navigation(300, seed=5))
    in_memory = pagerank(conf)
    expected = ranks_of(conf)
    conf.set("pagerank.method", "mapreduce")
    conf.set("mapreduce.job.maps", 3)
    conf.set("mapreduce.job.reduces", 2)
    by_jobs = pagerank(conf)
    assert in_memory[1:4] == by_jobs[1:4]
    assert (in_memory.method, by_jobs.method) == ("memory", "mapreduce")
    found = ranks_of(conf)
    assert set(found) == set(expected)
    assert max(abs(found[key] - expected[key]) for key in expected) < 1e-6
    assert by_jobs.change == pytest.approx(in_memory.change, abs=1e-9)
    assert by_jobs.mean == pytest.approx(in_memory.mean, abs=1e-9)
    left = [key for key, _ in BatchListStore(conf).store.scan(TableQuery()) if not key.startswith(KEY_PREFIX)]
    assert left == ["m/overview/ranks", MEAN_RANK_ROW, LOCKS_KEY]  # nothing is left of the blocks


def test_pages_and_links_are_selected(conf):
    make_table(
        conf,
        {
            "http://a.org/": (CrawlStatus.FETCHED, ["http://a.org/", "http://a.org/1", "http://a.org/1#part",
                                                    "http://a.org/gone", "http://not.in.the.table/"]),
            "http://a.org/1": (CrawlStatus.UNFETCHED, []),
            "http://a.org/gone": (CrawlStatus.GONE, ["http://a.org/1"]),
        },
    )  # fmt: skip
    result = pagerank(conf)
    assert (result.pages, result.links) == (2, 1)
    found = ranks_of(conf)
    assert found["org.a:http/gone"] == 0.0
    assert found["org.a:http/1"] == pytest.approx(0.15 + 0.85 * 0.01 * 0.15)


def test_removed_page_loses_rank(conf):
    for method in ("memory", "mapreduce"):
        conf.set("pagerank.method", method)
        store = make_table(conf, {"http://a.org/": (CrawlStatus.FETCHED, ["http://b.org/"]),
                                  "http://b.org/": (CrawlStatus.FETCHED, [])})  # fmt: skip
        pagerank(conf)
        assert ranks_of(conf)["org.b:http/"] > 0
        gone = WebPage()
        gone.status = CrawlStatus.GONE
        with store.batch() as batch:
            batch.put("org.b:http/", gone)
        assert pagerank(conf).pages == 1
        assert ranks_of(conf)["org.b:http/"] == 0.0


def test_second_run_changes_nothing(conf):
    make_table(conf, random_web(50))
    assert pagerank(conf).written > 0
    assert pagerank(conf).written == 0


def test_killed_run_does_not_affect_next(conf, monkeypatch):
    conf.set("pagerank.method", "mapreduce")
    pages = random_web(80)
    make_table(conf, pages)
    with monkeypatch.context() as patch:
        patch.setattr("nutch2py.jobs.pagerank.pagerank_mapreduce.MapReducePageRank.write_ranks", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pagerank(conf)
    assert list(BatchListStore(conf).store.scan(TableQuery()))
    del pages[next(iter(pages))]
    open_store(conf, WebPage).drop()
    make_table(conf, pages)
    pagerank(conf)
    assert close(ranks_of(conf), by_hand(conf, pages, 20, 0.15, {True: 0.01, False: 0.99}))


def test_graph_exceeding_memory_uses_mapreduce(conf, capsys):
    conf.set("pagerank.memory.limit", 1)
    pages = {f"http://a.org/{n}": (CrawlStatus.FETCHED, [f"http://a.org/{(n + k) % 3000}" for k in range(1, 16)])
             for n in range(3000)}  # fmt: skip
    make_table(conf, pages)
    conf.set("pagerank.iterations", 2)
    assert pagerank(conf).method == "mapreduce"
    assert "does not fit" in capsys.readouterr().out
    conf.set("pagerank.method", "memory")
    with pytest.raises(StoreError, match=r"pagerank\.memory\.limit"):
        pagerank(conf)


def test_pages_with_same_hash_are_distinguished():
    graph = MemoryGraph(10**9)
    rules_links = ([], [])
    graph.add_page("a", rules_links)
    graph.add_page("a", rules_links)
    with pytest.raises(GraphTooLargeError):
        graph.build()


def test_linkrank_uses_own_properties(conf):
    conf.set("pagerank.model", "linkrank")
    conf.set("pagerank.update.score", True)
    make_table(
        conf,
        {
            "http://a.org/": (CrawlStatus.FETCHED, ["http://b.a.org/", "http://x.org/1", "http://x.org/2"]),
            "http://b.a.org/": (CrawlStatus.FETCHED, []),
            "http://x.org/1": (CrawlStatus.FETCHED, []),
            "http://x.org/2": (CrawlStatus.FETCHED, []),
        },
    )
    result = pagerank(conf)
    assert (result.iterations, result.links) == (10, 1)  # not within the domain, and one to x.org
    store = open_store(conf, WebPage)
    assert store.get("org.x:http/1").score == store.get("org.x:http/1").page_rank > store.get("org.a:http/").score


def test_pagerank_command_and_readdb_show_ranks(conf, tmp_path, capsys):
    make_table(conf, {"http://a.org/": (CrawlStatus.FETCHED, ["http://b.org/"]),
                      "http://b.org/": (CrawlStatus.FETCHED, ["http://a.org/"])})  # fmt: skip
    options = ["-D", f"storage.data.store={conf.get('storage.data.store')}", "-D", "storage.embedded.map.size=1g"]
    options[-1] = f"storage.embedded.map.size={conf.get('storage.embedded.map.size')}"
    assert main(["pagerank", "-classic", "-iterations", "2", *options]) == 0
    assert "2 pages, 2 links, in memory" in capsys.readouterr().out
    assert main(["readdb", "-url", "http://a.org/", *options]) == 0
    assert "pageRank:\t1.0\n" in capsys.readouterr().out


def test_missing_table_is_rejected(conf):
    with pytest.raises(StoreError, match="crawl or inject first"):
        pagerank(conf)


def test_page_with_many_links_has_finite_rank(conf):
    pages = {f"http://h{n}.org/": (CrawlStatus.FETCHED, ["http://hub.org/"]) for n in range(2000)}
    pages["http://hub.org/"] = (CrawlStatus.FETCHED, list(pages))
    make_table(conf, pages)
    pagerank(conf)
    assert np.isfinite([*ranks_of(conf).values()]).all()
