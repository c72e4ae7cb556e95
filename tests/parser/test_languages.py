"""Every script, encoding and form of link: pages of a generated web are read right, fetched once and found."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.webpage import WebPage
from nutch2py.search.search_backends import search
from tests.jobs.crawl import properties
from tests.site.languages import ENCODINGS, NOT_DETECTED, SCRIPTS, LanguageWeb, WebResponse
from tests.small_http import Answering, QuietServer


@pytest.fixture
def conf() -> Configuration:
    return Configuration.load(overrides={"http.agent.name": "x", "db.max.outlinks.per.page": "-1"})


def test_web_has_all_scripts_encodings_and_mirrors() -> None:
    web = LanguageWeb()
    pages = [(host, path) for host, path, _ in web.responses()]
    assert len(pages) == len(set(pages))
    assert (len(web.hosts), len(set(web.hosts)), len(SCRIPTS), len(ENCODINGS)) == (60, 60, 20, 39)
    for encoding in ENCODINGS:
        for path in (f"/declared/{encoding}", f"/undeclared/{encoding}"):
            assert sorted(each for _, each in pages if each.endswith(path)) == sorted([path, f"/mirror{path}"])


def test_pages_of_all_scripts_and_encodings_have_their_text(conf: Configuration) -> None:
    parser = RowParser(conf)
    wrong = []
    for host, path, response in LanguageWeb().responses():
        url = f"http://{host}{path}"
        found = parser.parse(url, create_page(url, response.body, response.content_type, conf))
        if response.text not in found.text or found.title != response.text:
            wrong.append(path)
    assert set(wrong) == {f"{prefix}/undeclared/{name}" for prefix in ("", "/mirror") for name in NOT_DETECTED}


def test_links_of_all_forms_lead_where_browsers_go(conf: Configuration) -> None:
    web = LanguageWeb()
    hub, path, response = next(iter(web.responses()))
    found = set(_outlinks(conf, web.url(hub, path), response))
    assert {url for _, url in web.links} <= found | {web.url(hub, path)}
    assert found <= {web.url(host, path) for host, path, _ in web.responses()}


def _outlinks(conf: Configuration, url: str, response: WebResponse) -> list[str]:
    parser = RowParser(conf)
    parse = parser.parse(url, create_page(url, response.body, response.content_type, conf))
    return [*parser.outlink_filter.filter_outlinks(url, parse.outlinks)]


class _Handler(Answering):
    server: _Server

    def serve(self) -> None:
        host = (self.headers["Host"] or "").partition(":")[0]
        self.server.requests[host, self.path] += 1
        response = self.server.responses.get((host, self.path))
        if response is None:
            self.answer(404, b"none", "text/plain")
        else:
            self.answer(200, response.body, response.content_type)


class _Server(QuietServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web = LanguageWeb(self.server_address[1])
        self.responses = {(host, path): response for host, path, response in self.web.responses()}
        self.requests: Counter[tuple[str, str]] = Counter()


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as served:
        threading.Thread(target=served.serve_forever, args=(0.05,), daemon=True).start()
        yield served
        served.shutdown()


def test_crawl_fetches_every_page_once_and_each_is_found_by_its_words(server: _Server, tmp_path: Path) -> None:
    web = server.web
    (tmp_path / "hosts").write_text(f"127.0.0.1 {' '.join(web.hosts)}\n", "utf-8")
    settings = {
        **properties(),
        "http.hosts.file": str(tmp_path / "hosts"),
        "plugin.excludes": "urlfilter-regex",
        "db.max.outlinks.per.page": "-1",
        "generate.max.count": "-1",
        "index.folder": str(tmp_path / "index"),
    }
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", settings) as crawl:
        crawl.inject([web.seed])
        while (batch := crawl.generate()).urls:
            crawl.fetch(batch.batch_id)
            crawl.parse(batch.batch_id)
            crawl.updatedb(batch.batch_id)
            crawl.index(batch.batch_id)
        pages = {key: count for key, count in server.requests.items() if key[1] != "/robots.txt"}
        assert pages == dict.fromkeys(server.responses, 1)
        rows = dict(crawl.pages(fields=(WebPage.text,)))
        conf = crawl.conf.copy()
    conf.set("index.search.collapse", "")
    unread, missed = set(), []
    for (host, path), response in server.responses.items():
        url = web.url(host, path)
        if response.text not in (rows[url].text or ""):
            unread.add(path)
        else:
            word = max(response.text.split(), key=len)
            hits = search(conf, word, rows=1000).hits
            missed += [(url, word)] * (url not in {hit.url for hit in hits})
    assert unread == {f"{prefix}/undeclared/{name}" for prefix in ("", "/mirror") for name in NOT_DETECTED}
    assert missed == []
