"""A crawl of real documentation: every page that can be reached is fetched and parsed, and every link is in the table.

The site is Debian's package linux-doc-6.1: 3,185 pages by many hands, of up to 4 MB and 12,000 links, in several
languages. What is reachable is found out from the files alone, with a regular expression.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.readdb.readdb_commands import print_stats
from nutch2py.jobs.readdb.stats_breakdown import BreakdownParameters
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import unreverse_url
from tests.conftest import MAP_SIZE, ROOT
from tests.jobs import crawl

PACKAGE = "linux-doc-6.1"
CACHE = ROOT / ".cache" / "sites"
TAG = re.compile(r"<(a|area|img|link|script|frame|iframe)\s([^>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
NOT_CRAWLED = re.compile(r"(?i)\.(gif|jpg|png|ico|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|exe|jpeg|bmp|js)$")
"""What the first rules of conf/regex-urlfilter.txt leave out, as far as it is there."""
FIRST = "index.html"


@pytest.fixture(scope="module")
def files() -> Path:
    """The package's pages, unpacked in the cache of the checkout; from Debian's archive when missing."""
    folder = CACHE / PACKAGE
    if folder.is_dir():
        return folder
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip(f"{PACKAGE} is not in .cache/sites, and there is no apt-get to download it with")
    part = CACHE / f"{PACKAGE}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    done = subprocess.run(
        ["apt-get", "download", "-qq", PACKAGE], cwd=part, capture_output=True, text=True, timeout=300, check=False
    )
    archives = list(part.glob("*.deb"))
    if not archives:
        pytest.skip(f"{PACKAGE} cannot be downloaded here: {done.stderr.strip()[-200:] or 'no archive came'}")
    subprocess.run(["dpkg", "-x", archives[0], part / "root"], check=True)
    (part / "root" / "usr" / "share" / "doc" / PACKAGE / "html").rename(folder)
    shutil.rmtree(part)
    return folder


class Site:
    """What the files say: links by page, found with a regular expression, and what can be reached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {str(path.relative_to(folder)) for path in folder.rglob("*.html")}
        self.links = {page: self._links(page) for page in self.pages}

    def _links(self, page: str) -> set[str]:
        """Return the paths on this site that a page links to and that the filters let through."""
        text = (self.folder / page).read_text(encoding="utf-8", errors="replace")
        found: set[str] = set()
        for _, inside in TAG.findall(text):
            attributes = dict(ATTRIBUTE.findall(inside))
            target = attributes.get("href") or attributes.get("src")
            if not target or attributes.get("rel") == "nofollow":
                continue
            url = urlsplit(urljoin(f"http://site/{page}", html.unescape(target).strip()))
            if (url.scheme, url.netloc) == ("http", "site") and not url.query and not NOT_CRAWLED.search(url.path):
                found.add(unquote(url.path).removeprefix("/"))
        return found

    @cached_property
    def seeds(self) -> list[str]:
        """The first page, and those that no page leads to from there: with them everything can be reached."""
        chosen = [FIRST]
        reached = self.reached(chosen)
        linked = set().union(*self.links.values())
        for page in [*sorted(self.pages - linked), *sorted(self.pages)]:
            if page not in reached:
                chosen.append(page)
                reached |= self.reached([page])
        return chosen

    def reached(self, seeds: list[str]) -> set[str]:
        """Return everything that links lead to from some pages, pages or not, there or not."""
        reached, waiting = set(seeds), list(seeds)
        while waiting:
            for target in self.links.get(waiting.pop(), ()):
                if target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached


@pytest.fixture(scope="module")
def site(files: Path) -> Site:
    return Site(files)


class Row(NamedTuple):
    """What the table says of a URL."""

    status: int
    parsed: tuple[int, int] | None
    outlinks: set[str]
    inlinks: set[str]


class Crawled(NamedTuple):
    """A crawl that came to its end."""

    conf: Configuration
    rows: dict[str, Row]
    """By path on the site."""


@pytest.fixture(scope="module")
def crawled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Crawl the site from its first page until nothing is due."""
    folder = tmp_path_factory.mktemp("site")
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "serve_folder"), str(site.folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        conf = Configuration.load(
            overrides={
                **crawl.SETTINGS,
                "storage.data.store": f"embedded:{folder / 'crawldata'}",
                "storage.embedded.map.size": str(4 * int(MAP_SIZE)),
                "db.ignore.external.links": "true",
                "db.max.outlinks.per.page": "-1",
                "http.content.limit": str(8 << 20),
                "fetcher.threads.per.queue": "8",
            }
        )
        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"{address}{page}\n" for page in site.seeds), encoding="utf-8")
        crawl.inject(conf, str(seeds))
        for number in range(1, 30):
            batch, count = crawl.generate(conf, batch_id=f"round-{number}")
            if not count:
                break
            crawl.fetch(conf, batch)
            crawl.parse(conf, batch)
            crawl.updatedb(conf, batch)
        yield Crawled(conf, _rows(conf, address))
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


def _rows(conf: Configuration, address: str) -> dict[str, Row]:
    fields = {WebPage.status, WebPage.parse_status, WebPage.outlinks, WebPage.inlinks}

    def path(url: str) -> str:
        return unquote(url.removeprefix(address))

    return {
        path(unreverse_url(key)): Row(
            page.status,
            (page.parse_status.major, page.parse_status.minor) if page.parse_status else None,
            {path(url) for url in page.outlinks},
            {path(url) for url in page.inlinks},
        )
        for key, page in open_store(conf, WebPage).scan(TableQuery.for_fields(fields))
    }


def test_reference_walk_finds_known_pages(site: Site) -> None:
    assert len(site.pages) > 3000
    assert sum(map(len, site.links.values())) > 200_000  # targets of their own, of some 400,000 links
    assert max((site.folder / page).read_bytes().count(b"<a ") for page in site.pages) > 11_741
    assert max((site.folder / page).stat().st_size for page in site.pages) > 4_000_000
    assert site.pages <= site.reached(site.seeds)


def test_every_page_is_fetched_and_parsed(site: Site, crawled: Crawled) -> None:
    missed = {
        page: crawled.rows.get(page)
        for page in site.pages
        if page not in crawled.rows
        or (crawled.rows[page].status, crawled.rows[page].parsed) != (CrawlStatus.FETCHED, (1, 0))
    }
    assert missed == {}


def test_table_contains_exactly_linked_urls(site: Site, crawled: Crawled) -> None:
    assert set(crawled.rows) == site.reached(site.seeds)
    gone = {path for path in crawled.rows if not (site.folder / path).is_file()}
    assert {path for path, row in crawled.rows.items() if row.status == CrawlStatus.GONE} == gone


def test_outlinks_equal_links_in_files(site: Site, crawled: Crawled) -> None:
    wrong = {page: crawled.rows[page].outlinks ^ site.links[page] for page in site.pages}
    assert {page: difference for page, difference in wrong.items() if difference} == {}


def test_every_link_is_an_inlink_of_target(crawled: Crawled) -> None:
    """Also those of earlier rounds, which Nutch 2 forgets."""
    turned: dict[str, set[str]] = {path: set() for path in crawled.rows}
    for source, row in crawled.rows.items():
        for target in row.outlinks:
            turned[target].add(source)
    wrong = {path: row.inlinks ^ turned[path] for path, row in crawled.rows.items()}
    assert {path: difference for path, difference in wrong.items() if difference} == {}


def test_readdb_stats_add_up(site: Site, crawled: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    print_stats(crawled.conf, BreakdownParameters())
    printed = dict(re.findall(r"^(.+?):\t(.+)$", capsys.readouterr().out, re.MULTILINE))
    reached = site.reached(site.seeds)
    there = {path for path in reached if (site.folder / path).is_file()}
    expected = Counter(
        {
            "TOTAL urls": len(reached),
            "status 2 (status_fetched)": len(there),
            "status 3 (status_gone)": len(reached - there),
            "protocol SUCCESS": len(there),
            "protocol NOTFOUND": len(reached - there),
            "parse success/ok": len(there),  # the drawings among them as XML
        }
    )
    assert {name: int(printed[name]) for name in expected} == dict(expected)
    others = {name for name in printed if name.startswith(("status ", "protocol ", "parse "))} - set(expected)
    assert others == set()
