from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetcher import Fetcher, FetchItem, FetchReport
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.url.keys import reverse_url

BATCH = "1600000001-7"


@pytest.fixture(params=["false", "true"], ids=["short", "whole"], scope="module")
def way(request: pytest.FixtureRequest) -> str:
    """Return the value of ``fetcher.scrapy.whole``: both modes must produce the same rows."""
    return str(request.param)


def loopback(folder: Path, **more: str) -> Configuration:
    """Return a configuration that fetches from the loopback without delay; host names ``*.test`` are known."""
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"127.0.0.1 {name}.test\n" for name in "abcdefghij"), encoding="utf-8")
    properties = {
        "http.agent.name": "probe",
        "http.hosts.file": str(hosts),
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0.0",
    }
    return Configuration.load(overrides=properties | {name.replace("_", "."): value for name, value in more.items()})


@pytest.fixture
def fetch_conf(tmp_path: Path, way: str) -> Configuration:
    """Return the configuration of a fetch from the loopback, in direct or Scrapy mode."""
    return loopback(tmp_path, http_timeout="2000", fetcher_scrapy_whole=way)


def item(url: str, **cells: object) -> FetchItem:
    page = WebPage()
    page.markers[Mark.GENERATE] = BATCH
    for name, value in cells.items():
        setattr(page, name, value)
    return FetchItem(reverse_url(url), url, page)


class Crawl:
    """Fetches URLs and keeps the sink's items and the log."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.pages: dict[str, WebPage] = {}
        self.log: list[str] = []
        self.report = FetchReport()

    def __call__(self, *urls: str, threads: int = 4, **properties: str) -> WebPage:
        conf = self.conf.copy()
        for name, value in properties.items():
            conf.set(name.replace("_", "."), value)
        return self.run(conf, *urls, threads=threads)

    def run(self, conf: Configuration, *urls: str, threads: int = 4, options: FetchOptions | None = None) -> WebPage:
        fetcher = Fetcher(conf, threads, log=self.log.append, options=options)
        self.report = fetcher.run(map(item, urls), self.sink)
        return self.pages[urls[0]]

    def sink(self, done: FetchItem) -> None:
        self.pages[done.url] = done.page


@pytest.fixture
def crawl(fetch_conf: Configuration) -> Crawl:
    return Crawl(fetch_conf)
