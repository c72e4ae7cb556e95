"""Fetches of hosts with slow, lossy, wrong or missing DNS responses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Self

import pytest
from scrapy import Request
from scrapy.crawler import Crawler

from nutch2py.records.webpage import CrawlStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.host_resolver import HostResolver
from tests.fetcher.conftest import Crawl
from tests.site.name_server import NameServer, name_server
from tests.site.server import Reply, ScriptedSite


@pytest.fixture
def dns() -> Iterator[NameServer]:
    with name_server() as served:
        yield served


@pytest.fixture
def by_name(crawl: Crawl, dns: NameServer) -> Crawl:
    crawl.conf.set("http.hosts.file", "")
    crawl.conf.set("http.dns.servers", dns.address)
    return crawl


def test_many_uncached_names_lose_no_page(site: ScriptedSite, by_name: Crawl, dns: NameServer) -> None:
    """Two hundred concurrent names: some slower than http.timeout, some with lost packets, some only by TCP."""
    site.on("/p", Reply(body=b"<p>words"))
    kinds = ["lossy", "slow-3500", "lost-1", "cut", "liar", "broken-1", "alias-5", "quiet6"]
    hosts = [f"{kinds[number // 50] if number % 50 == 0 else 'plain'}.n{number}.test" for number in range(400)]
    urls = [site.url("/p", host) for host in hosts]
    by_name(*urls, threads=200, http_timeout="3000")
    assert {page.status for page in by_name.pages.values()} == {2}
    assert len(by_name.pages) == len(urls)
    assert by_name.report.errors == 0
    messages = [line for line in by_name.log if line.startswith("DNS: ")]
    assert len(messages) == 1
    assert messages[0].startswith("DNS: 400 names, 0 unknown, 0 unanswered")
    assert len(dns.names()) >= 400


@pytest.mark.parametrize(
    ("name", "words"),
    [("none.test", "DNS has no address of none.test"), ("broken.test", "cannot resolve broken.test"),
     ("silent.test", "no response for 0.5 s (http.dns.timeout)")],
)  # fmt: skip
def test_row_records_dns_failure(site: ScriptedSite, by_name: Crawl, dns: NameServer, name: str, words: str) -> None:
    page = by_name(site.url("/p", name), site.url("/q", name), http_dns_timeout="0.5")
    assert page.protocol_status is not None
    assert page.protocol_status.code == Code.EXCEPTION
    assert words in str(page.protocol_status.args)
    kind = "unknown_host" if name == "none.test" else "dns_unavailable"
    assert by_name.report.counters[f"exception_{kind}"] == 2
    assert site.seen == []


def test_resolved_address_is_checked_and_used(site: ScriptedSite, by_name: Crawl, dns: NameServer) -> None:
    by_name.conf.set("http.filter.ipaddress.exclude", "sitelocal")
    page = by_name(site.url("/p", "inside.test"), site.url("/p", "plain.test"))
    assert page.protocol_status is not None
    assert "10.0.0.1" in str(page.protocol_status.args)
    assert by_name.report.counters["exception_address_excluded"] == 1
    assert [seen.host.split(":")[0] for seen in site.seen if seen.path == "/p"] == ["plain.test"]


def test_host_is_resolved_once_for_many_pages(site: ScriptedSite, by_name: Crawl, dns: NameServer) -> None:
    for number in range(30):
        site.on(f"/{number}", Reply(body=b"<p>words"))
    by_name(*(site.url(f"/{number}", "Plain.test") for number in range(30)), fetcher_threads_per_queue="5")
    assert by_name.report.counters["SUCCESS"] == 30
    assert dns.asked["plain.test", 1] == 1


@pytest.mark.parametrize("host", ["plain.test.", "pl%61in.test", "xn--bcher-kva.test", "b\u00fccher.test"])
def test_every_spelling_of_name_uses_configured_servers(
    site: ScriptedSite, by_name: Crawl, dns: NameServer, host: str
) -> None:
    site.on("/p", Reply(body=b"<p>words"))
    assert by_name(site.url("/p", host)).status == 2
    assert set(dns.names()) <= {"plain.test", "xn--bcher-kva.test"}
    assert dns.names()


@pytest.mark.parametrize("handler", ["aiohttp", "httpx"])
def test_every_handler_uses_configured_servers(
    site: ScriptedSite, by_name: Crawl, dns: NameServer, handler: str
) -> None:
    """Also for a name slower than http.timeout: the handler's own timeout does not run meanwhile."""
    site.on("/p", Reply(body=b"<p>words"))
    urls = [site.url("/p", name) for name in ("plain.test", "slow-1500.test", "none.test", "inside.test")]
    by_name(*urls, fetcher_download_handler=handler, http_timeout="1000", http_filter_ipaddress_exclude="sitelocal")
    assert [by_name.pages[url].status for url in urls[:2]] == [2, 2]
    assert by_name.report.counters["exception_unknown_host"] == 1
    assert by_name.report.counters["exception_address_excluded"] == 1
    assert "DNS has no address of none.test" in str(by_name.pages[urls[2]].protocol_status)
    assert {name: dns.asked[name, 1] for name in ("plain.test", "none.test")} == {"plain.test": 1, "none.test": 1}


def test_lenient_reader_uses_configured_servers(site: ScriptedSite, by_name: Crawl, dns: NameServer) -> None:
    site.on("/p", Reply(raw=b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n\r\nwords"))
    assert by_name(site.url("/p", "plain.test")).content == b"words"
    assert site.gets("/p") == 2
    assert dns.asked["plain.test", 1] == 1


class AsksAnother:
    """Requests a page of another host before the current page."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._asked = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if not self._asked and request.url.endswith("/p"):
            self._asked = True
            other = request.url.replace("plain.", "slow-200.")
            await self._crawler.engine.download_async(Request(other, dont_filter=True))


def test_queues_by_ip_use_configured_servers_without_blocking(
    site: ScriptedSite, by_name: Crawl, dns: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two names of one address share a queue; its pages and extra requests of add-ons wait for each other."""

    def blocking(_: HostResolver, host: str) -> str:
        raise AssertionError(f"{host} was resolved by the system")

    monkeypatch.setattr(HostResolver, "resolve_uncached", blocking)
    site.on("/p", Reply(body=b"<p>words"))
    by_name.conf.set("fetcher.queue.mode", "byIP")
    by_name.conf.set("fetcher.server.delay", "0.3")
    by_name.conf.set("fetcher.scrapy.middlewares", f"{__name__}.AsksAnother")
    urls = [site.url("/p", name) for name in ("plain.test", "slow-100.test", "none.test")]
    by_name(*urls)
    assert [by_name.pages[url].status for url in urls[:2]] == [2, 2]
    assert "unknown host none.test" in str(by_name.pages[urls[2]].protocol_status)
    pages = sorted((seen for seen in site.seen if seen.path == "/p"), key=lambda seen: seen.began)
    assert {seen.host.partition(":")[0] for seen in pages} == {"plain.test", "slow-100.test", "slow-200.test"}
    for earlier, later in itertools.pairwise(pages):
        assert later.began - earlier.ended >= 0.25


def test_queues_by_ip_resolve_redirect_targets(
    site: ScriptedSite, by_name: Crawl, dns: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target at the same address waits in its queue; one without an address gets a status."""

    def blocking(_: HostResolver, host: str) -> str:
        raise AssertionError(f"{host} was resolved by the system")

    monkeypatch.setattr(HostResolver, "resolve_uncached", blocking)
    site.on("/p", Reply(body=b"<p>words"))
    targets = {name: site.url("/p", name) for name in ("slow-100.test", "none.test")}
    for path, target in zip(("/moved", "/lost"), targets.values(), strict=True):
        site.on(path, Reply(302, headers=[("Location", target)]))
    urls = [site.url(path, "plain.test") for path in ("/moved", "/lost")]
    by_name(*urls, fetcher_queue_mode="byIP", fetcher_server_delay="0.3", http_redirect_max="2")
    assert [by_name.pages[url].status for url in urls] == [CrawlStatus.REDIR_TEMP] * 2
    assert by_name.pages[targets["slow-100.test"]].status == CrawlStatus.FETCHED
    assert "unknown host none.test" in str(by_name.pages[targets["none.test"]].protocol_status)
    pages = sorted((seen for seen in site.seen if seen.path != "/robots.txt"), key=lambda seen: seen.began)
    assert len(pages) == 3
    for earlier, later in itertools.pairwise(pages):
        assert later.began - earlier.ended >= 0.25
