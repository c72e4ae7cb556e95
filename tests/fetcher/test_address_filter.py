"""Server-side request forgery: no name, notation or redirect leads to a connection to an excluded address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.protocols.address_filter import AddressFilter, parse_host_address
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.host_resolver import HostsFile
from tests.fetcher.conftest import Crawl, item
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>secret</body></html>"
PRIVATE = (
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "198.18.0.1", "192.0.0.8", "240.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "::127.0.0.1", "::a9fe:a9fe", "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b:1::7f00:1", "64:ff9b:1::1",
    "2001::a:b:c:80ff:fffe", "2001:0:7f00:1:0:0:f7f7:f7f7", "2001:470::5efe:7f00:1", "2001:470:0:1:200:5efe:a00:1",
    "100::1", "2001:db8::1", "2001:2::1", "3fff::1", "5f00::1", "ff02::1", "224.0.0.1", "192.0.2.1",
)  # fmt: skip
PUBLIC = (
    "93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:2800:220:1::1", "::ffff:8.8.8.8",
    "::8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:0:808:808:0:0:f7f7:f7f7",
    "2001:470::5efe:808:808", "2001:4860:4860::8888", "2001:20::1", "101::1",
)  # fmt: skip
LOCAL_NAT64 = ("64:ff9b:1:7f00:0:100::", "64:ff9b:1:7f:0:1::", "64:ff9b:1:0:7f:0:100:0", "64:ff9b:1::7f00:1")


@pytest.fixture
def gated(crawl: Crawl) -> Crawl:
    """Return a crawl with the default exclusions."""
    crawl.conf.set("http.filter.ipaddress.exclude", Configuration.load().get("http.filter.ipaddress.exclude", ""))
    return crawl


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert AddressFilter.from_conf(Configuration.load()).is_allowed(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_name_of_excluded_address_is_rejected(gated: Crawl, tmp_path: Any, address: str) -> None:
    names = tmp_path / "names"
    names.write_text(f"{address} inside.test\n", encoding="utf-8")
    gated("http://inside.test:9/", http_hosts_file=str(names), http_timeout="100")
    assert gated.report.counters["exception_address_excluded"] == 1


@pytest.mark.parametrize("address", LOCAL_NAT64)
def test_excluded_ipv4_in_any_ipv6_translation_prefix_is_rejected(address: str) -> None:
    """RFC 6052 2.2: the position of the IPv4 address depends on the prefix length, which only the network knows."""
    assert not AddressFilter.from_conf(Configuration({"http.filter.ipaddress.exclude": "127.0.0.1"})).is_allowed(
        address
    )


def test_embedding_prefix_can_be_excluded() -> None:
    gate = AddressFilter.from_conf(Configuration({"http.filter.ipaddress.exclude": "2002::/16"}))
    assert not gate.is_allowed("2002:808:808::1")
    assert gate.is_allowed("8.8.8.8")


NOTATIONS = (
    "127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0",
    "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::]", "localhost", "LOCALHOST",
    "localhost.", "①②⑦.⓪.⓪.①", "127。0。0。1",
)  # fmt: skip


WRITTEN = (*NOTATIONS, "%31%32%37.0.0.1", "127.0.0.1.", "１２７.0.0.1", "0x7f.0x0.0x0.0x1", "0x7F.1", "017700000001.",
    "[::127.0.0.1]", "a.localhost", "00000000000000000177.1", "%5B::1%5D")  # fmt: skip


@pytest.mark.parametrize("host", WRITTEN)
def test_proxy_is_not_asked_for_loopback(host: str) -> None:
    assert not AddressFilter.from_conf(Configuration.load()).is_host_allowed(host)


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "1.example.org",
        "0x7g.1",
        "256.0.0.1",
        "127.0.0.256",
        "1.2.3.4.5",
        "08.0.0.1",
        "a b",
        "",
        "%zz",
        "134744072",
        "0x8.8.8.8",
        "[2001:4860:4860::8888]",
        "9" * 5000,
        "0x" + "f" * 5000,
        "localhost.example.org",
    ],
)
def test_proxy_is_asked_for_other_names(host: str) -> None:
    assert AddressFilter.from_conf(Configuration.load()).is_host_allowed(host)


@pytest.mark.parametrize(
    ("host", "address"), [("8.8.2056", "8.8.8.8"), ("010.8.0x808", "8.8.8.8"), ("0", "0.0.0.0"), ("4294967296", None)]
)
def test_numeric_hosts_are_parsed_like_inet_aton(host: str, address: str | None) -> None:
    assert parse_host_address(host) == address


@pytest.mark.parametrize("host", NOTATIONS)
@pytest.mark.parametrize("handler", ["pycurl", "aiohttp"])
def test_every_loopback_notation_is_rejected(site: ScriptedSite, gated: Crawl, handler: str, host: str) -> None:
    site.on("/p", Reply(body=PAGE))
    page = gated(f"http://{host}:{site.port}/p", fetcher_download_handler=handler, http_hosts_file="")
    assert page.status in (CrawlStatus.UNFETCHED, CrawlStatus.RETRY)  # aiohttp takes some notations for unknown names
    assert page.content is None
    assert site.seen == []


@pytest.mark.parametrize("at_once", ["0", "3"])
def test_redirect_to_excluded_address_is_rejected(
    site: ScriptedSite, gated: Crawl, tmp_path: Any, at_once: str
) -> None:
    """The site is allowed by address; it redirects to another address of this machine."""
    names = tmp_path / "names"
    names.write_text("127.0.0.1 outside.test\n127.0.0.2 inside.test\n", encoding="utf-8")
    site.on("/p", Reply(302, headers=[("Location", f"http://inside.test:{site.port}/secret")]))
    site.on("/secret", Reply(body=PAGE))
    gated.conf.set("http.filter.ipaddress.exclude", "127.0.0.2")
    gated.conf.set("http.hosts.file", str(names))
    gated.conf.set("http.redirect.max", at_once)
    done: dict[str, WebPage] = {}
    url = site.url("/p", "outside.test")
    report = Fetcher(gated.conf, 2, log=lambda _: None).run(
        iter([item(url)]), lambda found: done.update({found.url: found.page}), lookup_row=lambda _: None
    )
    assert done[url].status == CrawlStatus.REDIR_TEMP
    assert site.gets("/secret") == 0
    assert report.counters["exception_address_excluded"] == (at_once != "0")


def test_robots_txt_redirect_to_excluded_address_is_rejected(site: ScriptedSite, crawl: Crawl, tmp_path: Any) -> None:
    names = tmp_path / "names"
    names.write_text("127.0.0.1 outside.test\n127.0.0.2 inside.test\n", encoding="utf-8")
    site.on("/robots.txt", Reply(302, headers=[("Location", f"http://inside.test:{site.port}/secret")]))
    site.on("/secret", Reply(body=b"User-agent: *\nDisallow: /"))
    site.on("/p", Reply(body=PAGE))
    values = {"http.filter.ipaddress.exclude": "127.0.0.2", "http.hosts.file": str(names)}
    for name, value in values.items():
        crawl.conf.set(name, value)
    assert crawl(site.url("/p", "outside.test")).status == CrawlStatus.FETCHED
    assert site.gets("/secret") == 0


def test_redirect_to_file_url_is_not_followed(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(302, headers=[("Location", "file:///etc/passwd")]))
    site.on("/robots.txt", Reply(302, headers=[("Location", "file:///etc/passwd")]))
    page = crawl(site.url("/p"), plugin_includes="protocol-(http|file)|urlfilter-regex")
    assert dict(page.outlinks) == {}  # conf/regex-urlfilter.txt leaves file: out
    assert page.status == CrawlStatus.REDIR_TEMP


class Rebinding(HostsFile):
    """Names that resolve to a different address at each lookup."""

    def __init__(self, *addresses: str) -> None:
        super().__init__({})
        self.asked = 0
        self._answers = addresses

    def lookup(self, host: str) -> list[str] | None:
        self.asked += 1
        return [self._answers[min(self.asked, len(self._answers)) - 1]]


def test_name_changing_between_requests_is_rechecked(site: ScriptedSite, crawl: Crawl) -> None:
    """robots.txt comes from an allowed address, then the name points inside: the page is rejected."""
    site.on("/p", Reply(body=PAGE))
    crawl.conf.set("http.filter.ipaddress.exclude", "127.0.0.2")
    fetcher = Fetcher(crawl.conf, 1, log=lambda _: None)
    fetcher.http_settings.dns_cache.hosts_file = Rebinding("127.0.0.1", "127.0.0.2")
    done: list[FetchItem] = []
    report = fetcher.run(iter([item(site.url("/p", "rebound.test"))]), done.append)
    assert site.gets("/robots.txt") == 1
    assert site.gets("/p") == 0
    assert report.counters["exception_address_excluded"] == 1
    assert done[0].page.protocol_status is not None
    assert done[0].page.protocol_status.code == Code.EXCEPTION


def test_name_changing_between_check_and_use_is_blocked(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For Scrapy's own handlers and a resolver without cache: the filter checks where the socket connects."""
    aiohttp = pytest.importorskip("aiohttp")
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", aiohttp.ThreadedResolver)
    site.on("/p", Reply(body=PAGE))
    real: Callable[..., Any] = socket.getaddrinfo
    asked = 0

    def changing(host: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal asked
        if host in ("rebound.test", b"rebound.test"):
            asked += 1
            host = "127.0.0.1" if asked <= 1 else "127.0.0.2"
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    values = {
        "fetcher.download.handler": "aiohttp",
        "http.dns.resolver": "system",
        "http.hosts.file": "",
        "http.filter.ipaddress.exclude": "127.0.0.2",
    }
    for name, value in values.items():
        crawl.conf.set(name, value)
    with ScriptedSite(address="127.0.0.2", port=site.port) as inside:
        inside.on("/p", Reply(body=PAGE))
        urls = [f"http://rebound.test:{site.port}/{name}" for name in ("p", "q", "r")]
        crawl.run(crawl.conf, *urls, threads=1)
        assert inside.seen == []
    assert asked >= 1


def test_each_address_of_name_is_checked(site: ScriptedSite, crawl: Crawl, tmp_path: Any) -> None:
    """The first address does not respond; the second, which libcurl tries next, is excluded."""
    names = tmp_path / "names"
    names.write_text("127.0.0.9 two.test\n127.0.0.1 two.test\n", encoding="utf-8")
    site.on("/p", Reply(body=PAGE))
    page = crawl(site.url("/p", "two.test"), http_hosts_file=str(names), http_filter_ipaddress_exclude="127.0.0.1")
    assert page.status == CrawlStatus.UNFETCHED
    assert site.seen == []


@pytest.mark.parametrize("host", ["%31%32%37.0.0.1", "0x7f.1", "2130706433", "127.0.0.1."])
def test_proxy_is_not_asked_for_name_of_excluded_address(site: ScriptedSite, gated: Crawl, host: str) -> None:
    """The proxy would open the connection, and redirects of robots.txt are not normalized."""
    proxy = {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(site.port), "http_hosts_file": ""}
    page = gated(f"http://{host}/p", **proxy)
    assert page.content is None
    assert site.seen == []
    assert gated.report.counters["exception_address_excluded"] == 1
