"""The cases of fetcher_storage.json: sitemaps apart from pages, refetching, the agent's name, and the table itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import KeyRange, TableQuery, open_store
from tests.conftest import MAP_SIZE
from tests.jobs import crawl
from tests.jobs.rows import marked, pages
from tests.site.server import Reply, ScriptedSite

Case = dict[str, Any]


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        yield running


class Crawl:
    """A crawl of a site of its own, for one case."""

    def __init__(self, folder: Path, site: ScriptedSite, **settings: str) -> None:
        self.folder, self.site = folder, site
        own = {"storage.data.store": f"embedded:{folder / 'crawldata'}", "storage.embedded.map.size": MAP_SIZE}
        more = {name.replace("_", "."): value for name, value in settings.items()}
        self.conf = Configuration.load(overrides={**crawl.SETTINGS, **own, **more})

    def inject(self, *lines: str) -> None:
        seeds = self.folder / "seeds.txt"
        seeds.write_text("".join(f"{line}\n" for line in lines))
        inject(self.conf, str(seeds))

    def names(self, mark: Mark) -> list[str]:
        """Return the names of the files whose rows carry a mark."""
        return [url.rpartition("/")[2] for url in marked(self.conf, mark)]


def _fetch_files(case: Case, crawled: Crawl, *, sitemap: bool) -> bool:
    """Inject pages and sitemaps, generate both, and fetch the one kind."""
    files, kinds = case["input"], list(case["input"])
    for name in files[kinds[0]] + files[kinds[1]]:
        crawled.site.on(f"/{name}", Reply(body=f"<html><body>{name}</body></html>".encode()))
    lines = [crawled.site.url(f"/{name}") for name in files[kinds[0]]]
    crawled.inject(*lines, *(f"{crawled.site.url(f'/{name}')}\t-sitemap" for name in files[kinds[1]]))
    generate(crawled.conf, batch_id="pages", filter_urls=False)
    generate(crawled.conf, batch_id="sitemaps", filter_urls=False, sitemap=True)
    fetch(crawled.conf, "-all", sitemap=sitemap)
    found = crawled.names(Mark.FETCH)
    return len(found) == case["expect"]["rows_with_fetch_mark"] and sorted(found) == sorted(case["expect"]["fetched"])


def _detect_sitemaps(case: Case, crawled: Crawl) -> bool:
    named = "".join(f"Sitemap: {crawled.site.url(f'/sitemap{number}.xml')}\n" for number in range(3))
    crawled.site.on("/robots.txt", Reply(body=f"User-agent: *\nAllow: /\n{named}".encode(), content_type="text/plain"))
    crawled.site.on("/", Reply(body=b"<html><body>home</body></html>"))
    crawled.inject(crawled.site.url("/"))
    generate(crawled.conf, batch_id="b")
    fetch(crawled.conf, "b", detect_sitemaps=True)
    (page,) = pages(crawled.conf).values()
    return len(page.sitemaps) == case["expect"]["page.sitemaps"]


def _fetch_again(case: Case, crawled: Crawl) -> bool:
    crawled.conf.set("db.fetch.interval.default", "1")
    crawled.site.on("/index.html", Reply(body=b"<html><body>the same each time</body></html>"))
    url = crawled.site.url("/index.html")
    crawled.inject(url)
    before, sizes = crawled.site.gets("/index.html"), []
    for number, ahead in enumerate((0, 10_000)):
        batch, _ = generate(crawled.conf, batch_id=f"b{number}", now=int(time.time() * 1000) + ahead)
        for job in (fetch, parse, updatedb):
            job(crawled.conf, batch)
        sizes.append(len(pages(crawled.conf)[url].metadata))
    assert crawled.site.gets("/index.html") - before == 2
    return (sizes[0] == sizes[1]) == case["expect"]["number_of_metadata_keys_unchanged"]


def _agent(case: Case, crawled: Crawl) -> bool:
    crawled.conf.set("http.agent.name", case["input"]["http.agent.name"])
    try:
        fetch(crawled.conf, "-all")
    except ConfigurationError as error:
        return str(error).startswith(case["expect"]["error"])
    return False


def _table(case: Case, crawled: Crawl) -> bool:
    """Each thread writes rows of its own and reads them back, one by one and by a scan."""
    rows = case["input"]["rows"]
    open_store(crawled.conf, WebPage).create()

    def work(number: int) -> int:
        store = open_store(crawled.conf, WebPage)
        for row in range(rows):
            page = WebPage()
            page.title = f"title{row}"
            with store.batch() as batch:
                batch.put(f"key-{number}-{row}", page)
            read = store.get(f"key-{number}-{row}", {WebPage.title})
            assert read is not None
            assert read.title == page.title
        own = TableQuery(frozenset({WebPage.title}), KeyRange(f"key-{number}-", f"key-{number}."))
        return sum(1 for _ in store.scan(own))

    threads = case["args"]["threads"]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(threads))) == [rows] * threads


RUNS: dict[str, Callable[[Case, Crawl], bool]] = {
    "testFetch": lambda case, crawled: _fetch_files(case, crawled, sitemap=False),
    "testSitemapFetch": lambda case, crawled: _fetch_files(case, crawled, sitemap=True),
    "testSitemapDetect": _detect_sitemaps,
    "testReFetch (NUTCH-2222)": _fetch_again,
    "testAgentNameCheck": _agent,
    "testSinglethreaded": _table,
    "testMultithreaded": _table,
}


def test_fetcher_storage_public_cases(cases: Callable[[str], list[Case]], site: ScriptedSite, tmp_path: Path) -> None:
    """Every case; of the first, that the delay between two fetches is kept is left to the tests of the queues."""
    table, failed = cases("fetcher_storage"), []
    for case in table:
        name = case["source"].rpartition(":")[2]
        folder = tmp_path / name.split()[0]
        folder.mkdir()
        site.replies.clear()
        if not RUNS[name](case, Crawl(folder, site)):
            failed.append(name)
    print(f"fetcher_storage: {len(table) - len(failed)}/{len(table)}")
    assert failed == []
