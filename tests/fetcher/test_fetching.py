"""The fetcher against a scripted server."""

from __future__ import annotations

import gzip
import re
import socket
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scrapy import Request
from scrapy.http import Response

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.engine import fetch_monitor
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.fetcher import Fetcher, FetchItem, RowSource
from nutch2py.fetcher.queues.fetch_queues import HostFetchSettings
from nutch2py.records.cells import decode_int
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.fetcher.conftest import BATCH, Crawl, item
from tests.site.certificate import self_signed
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>hello</body></html>"


def test_fetched_page_has_expected_cells(site: ScriptedSite, crawl: Crawl) -> None:
    site.on(
        "/p", Reply(body=PAGE, headers=[("X-Two", "a"), ("x-two", "b"), ("X-Two", "c"), ("content_language", "fr")])
    )
    page = crawl(site.url("/p"))
    assert page.status == CrawlStatus.FETCHED
    assert page.protocol_status is not None
    assert page.protocol_status.code == Code.SUCCESS
    assert (page.content, page.content_type, page.base_url) == (PAGE, "text/html", site.url("/p"))
    headers = dict(page.headers)
    assert headers["X-Two"] == "c"
    assert headers["x-two"] == "b"
    assert headers["Content-Language"] == "fr"
    assert page.markers[Mark.FETCH] == BATCH
    assert 0 <= decode_int(page.metadata[MetadataKey.RESPONSE_TIME]) < 10_000
    assert crawl.report.counters["SUCCESS"] == crawl.report.pages == 1
    assert f"fetching {site.url('/p')} (queue crawl delay=0ms)" in crawl.log
    assert [line for line in crawl.log if not line.startswith("Scrapy: ")][-1] == "-activeThreads=0"


def test_request_has_expected_headers(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p?q=a b", Reply(body=PAGE))
    crawl(site.url("/p?q=a b|é#frag", "a.test"), http_agent_version="7", http_agent_email="me@x")
    seen = site.seen[-1]
    assert seen.line == "GET /p?q=a%20b|%C3%A9 HTTP/1.1"
    assert seen.headers["user-agent"] == "probe/7 (me@x)"
    assert seen.headers["host"] == f"a.test:{site.port}"
    assert seen.headers["accept-encoding"] == "x-gzip, gzip, deflate"
    assert seen.headers["accept-language"].startswith("en-us")
    assert "if-modified-since" not in seen.headers


def test_http_1_1_connection_is_reused(site: ScriptedSite, crawl: Crawl) -> None:
    for name in "xyz":
        site.on(f"/{name}", Reply(body=PAGE, keep=True))
    site.on("/robots.txt", Reply(404, keep=True))
    crawl(*(site.url(f"/{name}") for name in "xyz"), http_useHttp11="true")
    assert {seen.line.rsplit(" ", 1)[1] for seen in site.seen} == {"HTTP/1.1"}
    assert len({seen.connection for seen in site.seen}) == 1


def test_known_page_is_requested_with_if_modified_since(site: ScriptedSite, fetch_conf: Configuration) -> None:
    site.on("/p", Reply(304, content_type=None))
    done: list[FetchItem] = []
    known = item(site.url("/p"), modified_time=1_600_000_000_000)
    Fetcher(fetch_conf, log=lambda _: None).run(iter([known]), done.append)
    assert site.seen[-1].headers["if-modified-since"] == "Sun, 13 Sep 2020 12:26:40 GMT"
    page = done[0].page
    assert page.status == CrawlStatus.NOTMODIFIED
    assert page.content is None


@pytest.mark.parametrize(
    ("status", "code", "crawl_status"),
    [
        (204, Code.EXCEPTION, CrawlStatus.RETRY),
        (206, Code.EXCEPTION, CrawlStatus.RETRY),
        (301, Code.MOVED, CrawlStatus.REDIR_PERM),
        (302, Code.TEMP_MOVED, CrawlStatus.REDIR_TEMP),
        (308, Code.MOVED, CrawlStatus.REDIR_PERM),
        (400, Code.GONE, CrawlStatus.GONE),
        (401, Code.ACCESS_DENIED, CrawlStatus.GONE),
        (403, Code.EXCEPTION, CrawlStatus.RETRY),
        (404, Code.NOTFOUND, CrawlStatus.GONE),
        (410, Code.GONE, CrawlStatus.GONE),
        (429, Code.EXCEPTION, CrawlStatus.RETRY),
        (503, Code.EXCEPTION, CrawlStatus.RETRY),
        (999, Code.EXCEPTION, CrawlStatus.RETRY),
    ],
)
def test_status_codes_map_to_statuses(
    site: ScriptedSite, crawl: Crawl, status: int, code: Code, crawl_status: CrawlStatus
) -> None:
    site.on("/p", Reply(status, PAGE if status != 204 else b"", [("Location", "/other")]))
    page = crawl(site.url("/p"))
    assert page.protocol_status is not None
    assert (page.protocol_status.code, page.status) == (code, crawl_status)


def deflate(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body", "content"),
    [
        ("gzip", gzip.compress(PAGE, mtime=0), PAGE),
        ("x-gzip", gzip.compress(PAGE, mtime=0), PAGE),
        ("gzip", gzip.compress(PAGE, mtime=0) * 2, PAGE + PAGE),
        ("gzip", gzip.compress(PAGE, mtime=0) + b"\0" * 8, PAGE),
        ("deflate", deflate(PAGE, 15), PAGE),
        ("deflate", deflate(PAGE, -15), PAGE),
        ("gzip", PAGE, PAGE),
        ("gzip", b"<", b"<"),
        ("gzip", b"", b""),
        ("identity", PAGE, PAGE),
        ("nonsense", PAGE, PAGE),
    ],
)
def test_content_encodings_are_decoded(
    site: ScriptedSite, crawl: Crawl, encoding: str, body: bytes, content: bytes
) -> None:
    site.on("/p", Reply(body=body, headers=[("Content-Encoding", encoding)]))
    assert crawl(site.url("/p")).content == content


def test_broken_gzip_keeps_decoded_part(site: ScriptedSite, crawl: Crawl) -> None:
    packed = gzip.compress(b"".join(b"%d," % n for n in range(5000)))
    site.on("/p", Reply(body=packed[:4000] + b"\xff" * 50 + packed[4050:], headers=[("Content-Encoding", "gzip")]))
    content = crawl(site.url("/p")).content
    assert content is not None
    assert content.startswith(b"0,1,2,")


def test_decompression_bomb_stops_at_limit(site: ScriptedSite, crawl: Crawl) -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, 9)
    site.on("/bomb", Reply(body=bomb, headers=[("Content-Encoding", "gzip")]))
    page = crawl(site.url("/bomb"), http_content_limit="100000")
    assert page.content == b"\0" * 100_000
    assert page.status == CrawlStatus.FETCHED


@pytest.mark.parametrize(("limit", "kept"), [("10", 10), ("31", 31), ("32", 31), ("-1", 31), ("0", 0)])
def test_content_limit_truncates_body(site: ScriptedSite, crawl: Crawl, limit: str, kept: int) -> None:
    site.on("/p", Reply(body=PAGE))
    assert crawl(site.url("/p"), http_content_limit=limit).content == PAGE[:kept]


def test_reading_stops_at_content_limit(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(pieces=[b"x" * 1000] * 500, pause=0.01, length=False))
    page = crawl(site.url("/p"), http_content_limit="3000")
    assert page.content == b"x" * 3000
    assert site.seen[-1].ended - site.seen[-1].began < 4  # all of it would take five seconds


BROKEN = {
    "nothing": Reply(raw=b""),
    "reset": Reply(reset=True),
    "garbage": Reply(raw=b"GARBAGE\r\n\r\nhello"),
    "no-status-line": Reply(raw=b"just text"),
    "bad-length": Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nhello"),
    "cut-in-headers": Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Ha"),
    "cut-in-status": Reply(raw=b"HTTP/1.1 2"),
    "cut-chunk": Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\nhello"),
    "bad-chunk": Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"),
    "endless-header": Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n"),
    "many-headers": Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\nhello"),
    "bad-redirect": Reply(301, headers=[("Location", "nosuch:thing")]),
}


def test_broken_response_ends_with_status_and_others_continue(site: ScriptedSite, crawl: Crawl) -> None:
    for name, reply in BROKEN.items():
        site.on(f"/{name}", reply)
    site.on("/good", Reply(body=PAGE))
    crawl(*(site.url(f"/{name}") for name in [*BROKEN, "good"]), threads=2)
    for name in BROKEN:
        page = crawl.pages[site.url(f"/{name}")]
        assert page.protocol_status is not None
        assert (name, page.protocol_status.code) == (name, Code.EXCEPTION)
        assert page.status == CrawlStatus.RETRY
        assert page.protocol_status.args[0]
        assert page.markers[Mark.FETCH] == BATCH
    assert crawl.pages[site.url("/good")].content == PAGE
    assert crawl.report.errors == len(BROKEN)


ACCEPTED = {
    "no-reason": (b"HTTP/1.1 200\r\nContent-Type: text/html\r\n\r\nhello", b"hello"),
    "colon": (b"HTTP/1.1 200: OK\r\nContent-Type: text/html\r\n\r\nhello", b"hello"),
    "line-feeds": (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nhello", b"hello"),
    "continue": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nhello", b"hello"),
    "too-long": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello", b"hello"),
    "lower-case": (b"http/1.0 200 ok\r\nA: b\r\n\r\nhello", b"hello"),
    "nul": (b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\nhello", b"hello"),
    "no-colon": (b"HTTP/1.1 200 OK\r\nnonsense\r\nA: b\r\n\r\nhello", b"hello"),
    "no-blank-line": (b"HTTP/1.1 200 OK\r\nA: b\r\n<html><p>hello</html>\n", b"<html><p>hello</html>\n"),
    "bare-returns": (b"HTTP/1.1 200 OK\r\nA: b\rC: d\r\r\nhello", b"hello"),
    "transfer-encoding": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\nhello", b"hello"),
    "chunks-and-no-colon": (
        b"HTTP/1.1 200 OK\r\nnonsense\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        b"hello",
    ),
    "trailer": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", b"hello"),
}


def test_odd_responses_are_accepted(site: ScriptedSite, crawl: Crawl) -> None:
    for name, (raw, _) in ACCEPTED.items():
        site.on(f"/{name}", Reply(raw=raw))
    crawl(*(site.url(f"/{name}") for name in ACCEPTED))
    for name, (_, content) in ACCEPTED.items():
        page = crawl.pages[site.url(f"/{name}")]
        assert (name, page.status, page.content) == (name, CrawlStatus.FETCHED, content)
    assert crawl.pages[site.url("/trailer")].headers["X-T"] == "1"


def test_silent_server_times_out(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/silent", Reply(hang=30))
    site.on("/stalls", Reply(pieces=[b"first", b"second"], pause=30))
    page = crawl(site.url("/silent"), site.url("/stalls", "a.test"), http_timeout="500")
    assert page.status == CrawlStatus.RETRY
    assert crawl.report.counters["exception_timeout"] == 2


def test_slow_document_stops_at_time_limit(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/slow", Reply(pieces=[b"x"] * 1000, pause=0.1, length=False))
    page = crawl(site.url("/slow"), http_time_limit="1")
    assert page.status == CrawlStatus.FETCHED
    assert page.content is not None
    assert 0 < len(page.content) < 1000


def test_partial_document_is_kept_when_configured(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\nhello"))
    page = crawl(site.url("/p"), http_partial_truncated="true")
    assert (page.status, page.content) == (CrawlStatus.FETCHED, b"hello")


def test_unreachable_server_and_unknown_host_have_status(crawl: Crawl) -> None:
    items = [
        item("http://127.0.0.1:1/x"),
        item("http://nosuch.invalid/"),
        FetchItem("x", "http://[broken/x", WebPage()),
    ]
    crawl.report = Fetcher(crawl.conf, log=crawl.log.append).run(iter(items), crawl.sink)
    counters = crawl.report.counters
    assert counters["exception_connection_refused"] == 1
    assert counters["exception_unknown_host"] == 1
    assert counters["exception_malformed_url"] == 1
    assert all(page.status == CrawlStatus.RETRY for page in crawl.pages.values())


@pytest.mark.parametrize("rules", ["loopback", "127.0.0.0/8", "10.0.0.0/8, localhost"])
def test_address_filter_blocks_excluded_addresses(site: ScriptedSite, crawl: Crawl, rules: str) -> None:
    site.on("/p", Reply(body=PAGE))
    page = crawl(site.url("/p", "a.test"), http_filter_ipaddress_exclude=rules)
    assert page.status == CrawlStatus.UNFETCHED
    assert crawl.report.counters["exception_address_excluded"] == 1
    assert site.seen == []  # neither the page nor robots.txt


def test_address_filter_includes_override(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    assert crawl(site.url("/p"), http_filter_ipaddress_include="127.0.0.1").status == CrawlStatus.FETCHED
    assert crawl(site.url("/p"), http_filter_ipaddress_include="192.0.2.0/24").status == CrawlStatus.UNFETCHED


def test_ip_address_is_stored_when_configured(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    assert crawl(site.url("/p", "b.test"), store_ip_address="true").metadata[MetadataKey.IP] == b"127.0.0.1"


def test_ip_address_is_not_stored_without_connection(crawl: Crawl) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        page = crawl(f"http://127.0.0.1:{closed.getsockname()[1]}/", store_ip_address="true")
    assert crawl.report.counters["exception_connection_refused"] == 1
    assert MetadataKey.IP not in page.metadata


def test_content_is_not_stored_when_disabled(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    page = crawl(site.url("/p"), fetcher_store_content="false")
    assert (page.content, page.content_type) == (b"", "text/html")


def test_pages_are_parsed_when_configured(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=b"<html><title>T</title><body>text</body></html>"))
    page = crawl(site.url("/p"), fetcher_parse="true")
    assert page.title == "T"
    assert page.markers[Mark.PARSE] == BATCH


def test_missing_agent_name_is_rejected(conf: Configuration) -> None:
    conf.set("http.agent.name", " ")
    with pytest.raises(ConfigurationError, match=r"^Fetcher: No agents listed in 'http.agent.name' property\."):
        Fetcher(conf)


def test_robots_rules_and_crawl_delay_are_applied(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: probe\nDisallow: /no\nCrawl-delay: 0.4", content_type="text/plain"))
    names = ("/no", "/1", "/2", "/3")
    for name in names[1:]:
        site.on(name, Reply(body=PAGE))
    denied = crawl(*(site.url(name) for name in names))
    assert denied.status == CrawlStatus.GONE
    assert denied.protocol_status is not None
    assert denied.protocol_status.code == Code.ROBOTS_DENIED
    assert site.gets("/no") == 0
    assert site.gets("/robots.txt") == 1
    pages = [seen for seen in site.seen if seen.path != "/robots.txt"]
    assert all(later.began - earlier.ended >= 0.39 for earlier, later in pairwise(pages))


def test_crawl_delay_is_at_least_minimum(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nCrawl-delay: 0.01", content_type="text/plain"))
    site.on("/1", Reply(body=PAGE))
    site.on("/2", Reply(body=PAGE))
    crawl(site.url("/1"), site.url("/2"), fetcher_min_crawl_delay="0.4")
    first, second = [seen for seen in site.seen if seen.path != "/robots.txt"]
    assert second.began - first.ended >= 0.39


def test_cookies_of_host_are_kept(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    cookies = tmp_path / "cookies.txt"
    cookies.write_text("# host, tab, cookie\na.test\tk=v; x=y\n", encoding="utf-8")
    crawl(site.url("/1", "a.test"), site.url("/2", "b.test"), http_agent_host_cookie_file=str(cookies))
    sent = {(seen.path, seen.host): seen.headers.get("cookie") for seen in site.seen}
    assert sent["/1", "a.test"] == "k=v; x=y"
    assert sent["/2", "b.test"] is None


def _fetch_in_a_process(url: str, count: int) -> int:
    conf = Configuration.load(
        overrides={"http.agent.name": "probe", "http.filter.ipaddress.exclude": "", "fetcher.server.delay": "0"}
    )
    done: list[FetchItem] = []
    items = (item(f"{url}{number}") for number in range(count))
    Fetcher(conf, log=lambda _: None).run(items, done.append)
    return sum(1 for found in done if found.page.status == CrawlStatus.FETCHED)


def test_several_processes_fetch_concurrently(site: ScriptedSite) -> None:
    for number in range(20):
        site.on(f"/{number}", Reply(body=PAGE))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        results = [pool.submit(_fetch_in_a_process, site.url("/"), 20) for _ in range(2)]
        assert [result.result(60) for result in results] == [20, 20]


def test_crawl_delay_above_maximum_denies_page(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nCrawl-delay: 31", content_type="text/plain"))
    assert crawl(site.url("/p")).status == CrawlStatus.GONE
    assert crawl.report.counters["ROBOTS_DENIED_MAXCRAWLDELAY"] == 1


def test_server_observes_politeness(site: ScriptedSite, crawl: Crawl) -> None:
    urls = []
    for host in ("a.test", "b.test"):
        for number in range(4):
            site.on(f"{host}/{number}", Reply(body=PAGE, hang=0.1))
            urls.append(site.url(f"/{number}", host))
    crawl(*urls, threads=8, fetcher_server_delay="0.3")
    for host in ("a.test", "b.test"):
        pages = [seen for seen in site.seen if seen.host == host and seen.path != "/robots.txt"]
        assert len(pages) == 4
        assert all(later.began - earlier.ended >= 0.29 for earlier, later in pairwise(pages))
    assert site.most_at_once <= 2


def test_threads_per_queue_limits_concurrent_requests(site: ScriptedSite, crawl: Crawl) -> None:
    for number in range(12):
        site.on(f"/{number}", Reply(body=PAGE, hang=0.05))
    crawl(*(site.url(f"/{n}") for n in range(12)), threads=10, fetcher_threads_per_queue="3")
    assert site.most_at_once == 3


def test_sitemaps_of_robots_txt_are_stored_on_home_page(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(body=b"Sitemap: http://a.test/1.xml\nSitemap: http://a.test/2.xml\n"))
    site.on("/", Reply(body=PAGE))
    detecting = FetchOptions(threads=4, detect_sitemaps=True)
    page = crawl.run(crawl.conf, site.url("/"), site.url("/p"), options=detecting)
    assert dict(page.sitemaps) == {"http://a.test/1.xml": "", "http://a.test/2.xml": ""}
    assert dict(crawl.pages[site.url("/p")].sitemaps) == {}


def test_redirects_are_queued_for_next_round(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/from", Reply(302, b"moved", [("Location", "/to")]))
    page = crawl(site.url("/from"))
    assert dict(page.outlinks) == {site.url("/to"): ""}
    assert page.metadata[MetadataKey.REDIRECT_DISCOVERED] == b"y"
    assert page.content == b"moved"
    assert site.gets("/to") == 0


def test_redirects_are_followed_when_configured(site: ScriptedSite, fetch_conf: Configuration) -> None:
    for number in range(4):
        site.on(f"/{number}", Reply(301, b"", [("Location", f"/{number + 1}")]))
    site.on("/loop", Reply(301, b"", [("Location", "/loop")]))
    site.on("/a", Reply(301, b"", [("Location", "/b")]))
    site.on("/b", Reply(301, b"", [("Location", "/a")]))
    fetch_conf.set("http.redirect.max", "2")
    done: dict[str, WebPage] = {}
    start = [item(site.url(path)) for path in ("/0", "/loop", "/a")]
    Fetcher(fetch_conf, log=lambda _: None).run(
        iter(start), lambda found: done.update({found.url: found.page}), lookup_row=lambda _: None
    )
    assert sorted(url.rsplit("/", 1)[1] for url in done) == ["0", "1", "2", "a", "b", "loop"]
    assert done[site.url("/1")].markers[Mark.FETCH] == BATCH
    assert done[site.url("/1")].fetch_interval == 2592000
    assert dict(done[site.url("/2")].outlinks) == {site.url("/3"): ""}  # the rest in the next round
    assert site.gets("/loop") == 1


def test_waiting_redirect_targets_are_fetched_with_full_queues(site: ScriptedSite, fetch_conf: Configuration) -> None:
    """Redirect targets are in no row that could be read again, so they are not spilled."""
    names = [(site.url(f"/{number}", "a.test"), site.url(f"/{number}", "b.test")) for number in range(20)]
    for number, (_, target) in enumerate(names):
        site.on(f"a.test/{number}", Reply(302, b"", [("Location", target)]))
        site.on(f"b.test/{number}", Reply(body=PAGE))
    others = [site.url(f"/{number}", "c.test") for number in range(40)]
    at_hand = {each.key: each for each in map(item, [source for source, _ in names] + others)}
    rows = RowSource(((key, each.url) for key, each in at_hand.items()), lambda keys: [at_hand[key] for key in keys])
    for name, value in (("http.redirect.max", "1"), ("fetcher.queue.depth.multiplier", "5")):
        fetch_conf.set(name, value)
    fetch_conf.set("fetcher.queue.use.host.settings", "true")
    done: set[str] = set()
    own = {"b.test": HostFetchSettings(1, 150, 150), "c.test": HostFetchSettings(1, 50, 50)}
    fetcher = Fetcher(fetch_conf, 4, get_host_settings=own.get, log=lambda _: None)
    report = fetcher.run(rows, lambda found: done.add(found.url), lookup_row=lambda _: None)
    assert {target for _, target in names} <= done
    assert len(done) == 80
    assert report.counters["TEMP_MOVED"] == 20


@pytest.mark.parametrize("stopped", [True, False])
def test_redirect_targets_beyond_limit_are_counted(
    site: ScriptedSite, fetch_conf: Configuration, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """The limit of a run that is too slow, or of a full queue."""
    site.on("/a", Reply(301, b"", [("Location", "/b")]))
    states: list[FetchState] = []

    class Noted(FetchState):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            states.append(self)

    def lookup(_: str) -> None:
        states[0].is_stopped = stopped

    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_run.FetchState", Noted)
    for name, value in (("http.redirect.max", "2"), ("fetcher.max.pages.per.queue", "100" if stopped else "1")):
        fetch_conf.set(name, value)
    report = Fetcher(fetch_conf, log=lambda _: None).run(
        iter([item(site.url("/a"))]), lambda _: None, lookup_row=lookup
    )
    assert site.gets("/b") == 0
    assert report.counters["hitByThrougputThreshold" if stopped else "AboveMaxPagesInQueue"] == 1


def test_redirect_beyond_maximum_is_dropped_when_configured(site: ScriptedSite, fetch_conf: Configuration) -> None:
    for number in range(3):
        site.on(f"/{number}", Reply(301, b"", [("Location", f"/{number + 1}")]))
    conf = with_values(fetch_conf, {"http.redirect.max": "1", "http.redirect.max.exceeded.skip": "true"})
    done: dict[str, WebPage] = {}
    Fetcher(conf, log=lambda _: None).run(
        iter([item(site.url("/0"))]), lambda found: done.update({found.url: found.page}), lookup_row=lambda _: None
    )
    assert dict(done[site.url("/0")].outlinks) == {site.url("/1"): ""}
    assert dict(done[site.url("/1")].outlinks) == {}


def test_redirect_target_in_batch_is_fetched_once(site: ScriptedSite, fetch_conf: Configuration) -> None:
    site.on("/from", Reply(301, b"", [("Location", "/to")]))
    fetch_conf.set("http.redirect.max", "2")
    known = item(site.url("/to"))
    done: list[str] = []
    Fetcher(fetch_conf, log=lambda _: None).run(
        iter([item(site.url("/from"))]), lambda found: done.append(found.url), lookup_row=lambda _: known.page
    )
    assert done == [site.url("/from")]
    assert site.gets("/to") == 0


def test_expired_time_limit_defers_remaining_urls(site: ScriptedSite, crawl: Crawl) -> None:
    crawl.report = Fetcher(crawl.conf, log=crawl.log.append).run(iter([]), crawl.sink)
    conf = crawl.conf.copy()
    conf.set("fetcher.timelimit.mins", "0")
    report = Fetcher(conf, log=crawl.log.append).run(map(item, [site.url(f"/{n}") for n in range(7)]), crawl.sink)
    assert report.hit_by_time_limit == 7
    assert crawl.pages == {}
    assert "QueueFeeder finished: total 0 records. Hit by time limit :7" in crawl.log


def test_time_limit_ends_running_fetch(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_monitor, "LOG_INTERVAL", 0.1)
    urls = [site.url(f"/{number}") for number in range(50)]
    for number in range(50):
        site.on(f"/{number}", Reply(body=PAGE, hang=0.1))
    crawl.run(crawl.conf, *urls, options=FetchOptions(threads=4, deadline=time.time() + 0.7))
    left = crawl.report.counters["HitByTimeLimit-Queues"]
    assert 0 < left < 50
    assert len(crawl.pages) == 50 - left


def test_throughput_below_threshold_ends_fetch(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_monitor, "LOG_INTERVAL", 0.1)
    for number in range(50):
        site.on(f"/{number}", Reply(body=PAGE, hang=0.1))
    values = {"pages": "100000", "sequence": "3", "check.after": "0"}
    conf = with_values(crawl.conf, {f"fetcher.throughput.threshold.{name}": value for name, value in values.items()})
    crawl.run(conf, *(site.url(f"/{number}") for number in range(50)))
    left = crawl.report.counters["hitByThrougputThreshold"]
    assert 0 < left < 50
    assert len(crawl.pages) == 50 - left
    assert "Dropped below threshold too many times in a row, killing!" in crawl.log


def test_items_are_taken_as_queues_have_room(site: ScriptedSite, fetch_conf: Configuration) -> None:
    fetch_conf.set("fetcher.queue.depth.multiplier", "2")
    taken, stored, most = 0, 0, 0

    def items() -> Iterator[FetchItem]:
        nonlocal taken, most
        for number in range(300):
            taken += 1
            most = max(most, taken - stored)
            yield item(site.url(f"/{number}"))

    def sink(_: FetchItem) -> None:
        nonlocal stored
        stored += 1

    Fetcher(fetch_conf, 3, log=lambda _: None).run(items(), sink)
    assert stored == 300
    assert most < 300


def test_sink_error_ends_fetch(site: ScriptedSite, fetch_conf: Configuration) -> None:
    def sink(_: FetchItem) -> None:
        raise OSError("the table is gone")

    with pytest.raises(OSError, match="the table is gone"):
        Fetcher(fetch_conf, log=lambda _: None).run(map(item, [site.url(f"/{n}") for n in range(300)]), sink)


def test_item_iterator_error_ends_fetch(site: ScriptedSite, fetch_conf: Configuration) -> None:
    def items() -> Iterator[FetchItem]:
        yield item(site.url("/1"))
        raise OSError("the scan broke")

    with pytest.raises(OSError, match="the scan broke"):
        Fetcher(fetch_conf, log=lambda _: None).run(items(), lambda _: None)


def test_robots_error_defers_host_when_configured(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(503))
    crawl.report = Fetcher(
        with_values(
            crawl.conf,
            {
                "http.robots.503.defer.visits": "true",
                "http.robots.503.defer.visits.delay": "100",
                "http.robots.503.defer.visits.retries": "2",
            },
        ),
        log=crawl.log.append,
    ).run(map(item, [site.url("/1"), site.url("/2")]), crawl.sink)
    assert crawl.pages == {}  # left for a later batch
    assert crawl.report.counters["robots_defer_visits_dropped"] == 2
    assert site.gets("/1") == 0


def with_values(conf: Configuration, values: dict[str, str]) -> Configuration:
    changed = conf.copy()
    for name, value in values.items():
        changed.set(name, value)
    return changed


@pytest.mark.parametrize("handler", ["aiohttp", "httpx"])
@pytest.mark.parametrize("way", ["true"], indirect=True)
def test_scrapy_handlers_fetch_pages(site: ScriptedSite, crawl: Crawl, handler: str) -> None:
    site.on("/p", Reply(body=gzip.compress(PAGE), headers=[("Content-Encoding", "gzip")]))
    page = crawl(site.url("/p", "a.test"), "http://127.0.0.1:1/", fetcher_download_handler=handler)
    assert (page.status, page.content, page.headers["Content-Type"]) == (CrawlStatus.FETCHED, PAGE, "text/html")
    assert crawl.report.counters["exception_connection_refused"] == 1


@pytest.mark.parametrize("handler", ["aiohttp", "httpx"])
@pytest.mark.parametrize("way", ["true"], indirect=True)
def test_scrapy_handlers_apply_address_filter(site: ScriptedSite, crawl: Crawl, handler: str) -> None:
    site.on("/p", Reply(body=PAGE))
    conf = with_values(
        crawl.conf,
        {
            "fetcher.download.handler": handler,
            "http.filter.ipaddress.exclude": "loopback",
            "http.hosts.file": "",
        },
    )
    assert crawl.run(conf, site.url("/p", "localhost")).status == CrawlStatus.UNFETCHED
    assert crawl.report.counters["exception_address_excluded"] == 1
    assert site.seen == []


class Counting:
    """A Scrapy downloader middleware."""

    urls: ClassVar[list[str]] = []

    def process_response(self, request: Request, response: Response) -> Response:
        self.urls.append(request.url)
        return response


def test_scrapy_middlewares_are_used(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    Counting.urls.clear()
    page = crawl(site.url("/p"), fetcher_scrapy_middlewares=f"{Counting.__module__}.Counting")
    assert page.content == PAGE
    assert Counting.urls == [site.url("/robots.txt"), site.url("/p")]


def test_proxy_is_used(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("http://far.example/p", Reply(body=PAGE))
    values = {
        "http.proxy.host": "127.0.0.1",
        "http.proxy.port": str(site.port),
        "http.filter.ipaddress.exclude": "loopback",
    }
    page = crawl.run(with_values(crawl.conf, values), "http://far.example/p", "http://127.0.0.9/x")
    assert page.content == PAGE
    assert crawl.report.counters["exception_address_excluded"] == 1


@pytest.fixture
def tls_site(tmp_path: Path) -> Iterator[ScriptedSite]:
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as running:
        yield running


def test_certificates_are_checked_when_configured(tls_site: ScriptedSite, crawl: Crawl) -> None:
    tls_site.on("/p", Reply(body=PAGE))
    assert crawl(tls_site.url("/p", "a.test"), http_tls_certificates_check="true").status == CrawlStatus.RETRY
    assert crawl.report.counters["exception_tls"] == 1
    assert crawl(tls_site.url("/p", "a.test")).content == PAGE


def test_fetch_status_is_reported(site: ScriptedSite, fetch_conf: Configuration) -> None:
    messages: list[str] = []
    Fetcher(fetch_conf, 2, log=lambda _: None).run(iter([item(site.url("/x"))]), lambda _: None, messages.append)
    assert messages
    assert re.fullmatch(r"[\d.]+ pages/s, \d+ kB/s, 0 queues, 0 active, 0 s left", messages[-1])


def test_fetcher_runs_in_thread(site: ScriptedSite, crawl: Crawl) -> None:
    from threading import Thread

    site.on("/p", Reply(body=PAGE))
    thread = Thread(target=lambda: crawl(site.url("/p")))
    thread.start()
    thread.join(20)
    assert crawl.pages[site.url("/p")].content == PAGE
