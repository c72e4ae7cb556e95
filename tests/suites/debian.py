"""Packages of Debian documentation, crawled completely: pages that a link checker finds are stored and searchable."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from nutch2py.crawl import Crawl
from nutch2py.records.webpage import CrawlStatus, ParseStatusCode, WebPage
from nutch2py.search.results.search_results import MAX_ROWS
from tests.suites.link_checker import Page, check
from tests.suites.suite import Case, Goal

_ROOT = Path(__file__).parents[2]
_PASSED_OVER = (
    ".gif", ".jpg", ".jpeg", ".png", ".ico", ".css", ".sit", ".eps", ".wmf", ".zip", ".ppt", ".mpg", ".xls", ".gz",
    ".rpm", ".tgz", ".mov", ".exe", ".bmp", ".js",
)  # fmt: skip
"""URLs that conf/regex-urlfilter.txt rejects."""
_ROUNDS = 60
_SETTINGS = {
    "http.agent.name": "suites",
    "http.filter.ipaddress.exclude": "",
    "http.content.limit": -1,
    "indexer.max.title.length": -1,
    "parser.timeout": 300,
    "fetcher.server.delay": 0.0,
    "fetcher.threads.per.queue": 8,
    "db.max.outlinks.per.page": -1,
    "db.ignore.external.links": True,
    "parser.html.outlinks.ignore_tags": "img,script",
}


class _Site(NamedTuple):
    """A site: a language, packages, the folder of their pages, and the pages from which all can be reached."""

    language: str
    packages: tuple[str, ...]
    folder: str
    seeds: tuple[str, ...]


_SITES = (
    # its contents are listed by scripts; the server lists its folders
    _Site("Japanese", ("libreoffice-help-ja", "libreoffice-help-common"), "libreoffice/help", ("/ja/text/",)),
    _Site("German", ("gimp-help-de",), "gimp/2.0/help", ("/de/index.html",)),
    _Site("French", ("lilypond-doc-html-fr",), "doc/lilypond/html", ("/Documentation/",)),
    _Site("Russian", ("aptitude-doc-ru",), "doc/aptitude/html/ru", ("/index.html",)),
    _Site("English", ("libboost1.81-doc",), "doc/libboost1.81-doc/doc", ("/html/index.html",)),
    _Site("Chinese", ("kicad-doc-zh",), "doc/kicad/help/zh", ("/",)),
)
GOALS = tuple(Goal(f"{site.packages[0]} ({site.language})", 1.0) for site in _SITES)


def cases(data: Path) -> Iterator[Case]:
    """Yield a case for each page that the checker finds, and for each that only the crawl found."""
    for goal, site in zip(GOALS, _SITES, strict=True):
        folder = _unpacked(data / "debian", site.packages) / "usr/share" / site.folder
        with _served(folder) as address, tempfile.TemporaryDirectory(prefix="nutch2py-suite-") as work:
            pages, broken = check(address, site.seeds, _PASSED_OVER)
            settings = {**_SETTINGS, "storage.data.store": f"embedded:{work}/crawl", "index.embedded.path": f"{work}/i"}
            with Crawl(properties=settings, on_warning=print) as crawl:
                _crawl(crawl, [address.rstrip("/") + seed for seed in site.seeds])
                for path, left in _compared(crawl, pages, broken):
                    yield Case(goal.part, path, left)


def _crawl(crawl: Crawl, seeds: list[str]) -> None:
    """Crawl until nothing is due."""
    crawl.inject(seeds)
    for _ in range(_ROUNDS):
        batch = crawl.generate()
        if not batch.urls:
            return
        crawl.fetch(batch.batch_id)
        crawl.parse(batch.batch_id)
        crawl.updatedb(batch.batch_id)
        crawl.index(batch.batch_id)
    raise SystemExit(f"the crawl of {seeds[0]} has no end: {_ROUNDS} rounds were not enough")


def _compared(crawl: Crawl, pages: dict[str, Page], broken: set[str]) -> Iterator[tuple[str, str]]:
    """Yield paths with their failure, "" for none."""
    fields = (WebPage.status, WebPage.parse_status, WebPage.title, WebPage.content_type)
    rows = {_path(url): (url, page) for url, page in crawl.pages(fields=fields)}
    for path, expected in sorted(pages.items()):
        yield path, _left(crawl, *rows[path], expected) if path in rows else "no row: no link to it was found"
    for path, (_, page) in sorted(rows.items()):
        is_page = page.status == CrawlStatus.FETCHED and "html" in (page.content_type or "")
        if path not in pages and (is_page or (page.status == CrawlStatus.GONE and path not in broken)):
            yield path, "the link checker found no link to it"


def _left(crawl: Crawl, url: str, page: WebPage, expected: Page) -> str:
    if page.status != CrawlStatus.FETCHED:
        return f"not fetched: {CrawlStatus(page.status).name}"
    if page.parse_status is None or page.parse_status.major != ParseStatusCode.SUCCESS:
        return f"not parsed: {page.parse_status}"
    if (title := " ".join((page.title or "").split())) != expected.title:
        return f"its title is {title!r}, not {expected.title!r}"
    if not title:
        return ""
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    found = crawl.search(f'title:"{quoted}"', rows=MAX_ROWS)
    return "" if any(hit.url == url for hit in found.hits) else f"not among {found.total} hits of its title {title!r}"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return unquote(parts.path) + (f"?{parts.query}" if parts.query else "")


def _unpacked(folder: Path, packages: tuple[str, ...]) -> Path:
    """Download and unpack packages from Debian's archive unless they exist; return the folder."""
    target = folder / packages[0]
    complete = target / ".complete"
    if not complete.exists():
        target.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ("apt-get", "download", "-q", *packages), cwd=target, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(packages)} were not got: apt-get said: {done.stderr.strip()[-300:]}")
        for archive in target.glob("*.deb"):
            subprocess.run(("dpkg", "-x", archive, target), check=True)
            archive.unlink()
        complete.touch()
    return target


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; give the address."""
    command = (sys.executable, str(_ROOT / "scripts" / "serve_folder"), str(folder))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
