"""Scrapy add-ons in a fetch, against loopback servers: what they can do, and what they cannot change."""

from __future__ import annotations

import base64
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response, TextResponse
from scrapy.settings import BaseSettings

from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.downloader.transport_settings import TransportSettings
from nutch2py.fetcher.protocols.http_settings import build_user_agent
from nutch2py.records.webpage import CrawlStatus
from nutch2py.support.reporting import Reporter, use_reporter
from tests.fetcher.conftest import Crawl
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>words</body></html>"
HERE = __name__

pytestmark = pytest.mark.parametrize("way", ["true"], indirect=True)


def warned(crawl: Crawl, *urls: str, **properties: str) -> str:
    """Fetch and return the warnings."""
    messages: list[str] = []
    with use_reporter(Reporter(on_warning=messages.append)):
        crawl(*urls, **properties)
    return "\n".join(messages)


# headers


class AgentByHost:
    """Another User-Agent for one host."""

    def process_request(self, request: Request) -> None:
        if "//a.test" in request.url:
            request.headers["User-Agent"] = "for-a"


def test_middleware_sets_user_agent_by_host(site: ScriptedSite, crawl: Crawl) -> None:
    crawl(site.url("/p", "a.test"), site.url("/p", "b.test"), fetcher_scrapy_middlewares=f"{HERE}.AgentByHost")
    sent = {seen.host.partition(":")[0]: seen.headers["user-agent"] for seen in site.seen if seen.path == "/p"}
    assert sent == {"a.test": "for-a", "b.test": build_user_agent(crawl.conf)}


# proxies


class Rotation:
    """Uses the next of several proxies for each request, with a login."""

    proxies: tuple[str, ...] = ()
    count = 0

    def process_request(self, request: Request) -> None:
        type(self).count += 1
        request.meta["proxy"] = self.proxies[self.count % len(self.proxies)]


@pytest.mark.parametrize("middleware", ["false", "true"])
@pytest.mark.parametrize("handler", ["pycurl", "aiohttp"])
def test_proxies_are_rotated(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, handler: str, middleware: str
) -> None:
    if (handler, middleware) == ("aiohttp", "false"):
        pytest.skip("the login is sent by HttpProxyMiddleware")
    with ScriptedSite() as other:
        for proxy in (site, other):
            for path in ("/p", "/q"):
                proxy.on(f"http://far.example{path}", Reply(body=PAGE))
        at = tuple(f"http://ann:secret@127.0.0.1:{proxy.port}" for proxy in (site, other))
        monkeypatch.setattr(Rotation, "proxies", at)
        urls = ["http://far.example/p", "http://far.example/q"]
        messages = warned(
            crawl,
            *urls,
            fetcher_download_handler=handler,
            fetcher_scrapy_middlewares=f"{HERE}.Rotation",
            fetcher_scrapy_settings=f"HTTPPROXY_ENABLED={middleware}",
            http_filter_ipaddress_exclude="10.0.0.0/8",
        )
        assert [crawl.pages[url].content for url in urls] == [PAGE, PAGE]
        assert site.seen
        assert other.seen
        login = "Basic " + base64.b64encode(b"ann:secret").decode()
        assert {seen.headers.get("proxy-authorization") for seen in (*site.seen, *other.seen)} == {login}
    assert "the address filter checks only addresses in URLs" in messages


def test_environment_proxy_is_used_when_configured(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{site.port}")
    site.on("http://far.test/p", Reply(body=PAGE))
    assert crawl("http://far.test/p").status == CrawlStatus.RETRY
    messages = warned(
        crawl,
        "http://far.test/p",
        fetcher_scrapy_settings="HTTPPROXY_ENABLED=true",
        http_filter_ipaddress_exclude="10.0.0.0/8",
    )
    assert crawl.pages["http://far.test/p"].content == PAGE
    assert "the environment names a proxy" in messages


def test_proxy_is_not_asked_for_excluded_address(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rotation, "proxies", (f"http://127.0.0.1:{site.port}",))
    crawl("http://0x7f.1/p", fetcher_scrapy_middlewares=f"{HERE}.Rotation", http_filter_ipaddress_exclude="loopback")
    assert crawl.report.counters["exception_address_excluded"] == 1
    assert site.seen == []


# the cache


def test_http_cache_replays_crawl_offline(site: ScriptedSite, crawl: Crawl, tmp_path: Path) -> None:
    import gzip

    site.on("/p", Reply(body=gzip.compress(PAGE), headers=[("Content-Encoding", "gzip"), ("X-A", "1"), ("X-A", "2")]))
    site.on("/long", Reply(body=b"x" * 5000))
    site.on("/gone", Reply(404))
    urls = [site.url(path) for path in ("/p", "/long", "/gone")]
    cached = {
        "fetcher_scrapy_settings": f"HTTPCACHE_ENABLED=true\nHTTPCACHE_DIR={tmp_path / 'cache'}",
        "http_content_limit": "1000",
    }
    crawl(*urls, **cached)
    first = {url: (page.status, page.content, dict(page.headers)) for url, page in crawl.pages.items()}
    site.seen.clear()
    crawl.pages.clear()
    crawl(*urls, **cached)
    second = {url: (page.status, page.content, dict(page.headers)) for url, page in crawl.pages.items()}
    assert site.seen == []
    assert {url: (status, content) for url, (status, content, _) in second.items()} == {
        url: (status, content) for url, (status, content, _) in first.items()
    }
    for url in urls:  # but for Date, which the cache adds
        assert {name: second[url][2].get(name) for name in first[url][2]} == first[url][2]
    assert any("httpcache/hit=4" in line for line in crawl.log)


# logins, and requests of add-ons


class Login:
    """Logs in with a form when a page requires it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        if not isinstance(response, TextResponse) or not response.css("form#login"):
            return response
        form = Request(
            response.urljoin("/login"),
            method="POST",
            body=b"name=ann",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            dont_filter=True,
        )
        await self._crawler.engine.download_async(form)
        return request.replace(dont_filter=True)


def test_cookie_login_works(site: ScriptedSite, crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    site.on("/p", Reply(body=b"<form id=login></form>"), Reply(body=PAGE))
    site.on("/login", Reply(302, headers=[("Set-Cookie", "session=7; Path=/"), ("Location", "/")]))
    page = crawl(
        site.url("/p"),
        fetcher_scrapy_middlewares=f"{HERE}.Login=560",
        fetcher_scrapy_settings="COOKIES_ENABLED=true",
        fetcher_server_delay="0.3",
    )
    assert (page.status, page.content) == (CrawlStatus.FETCHED, PAGE)
    asked = [seen for seen in site.seen if seen.path != "/robots.txt"]
    assert [(seen.line.split()[0], seen.path) for seen in asked] == [("GET", "/p"), ("POST", "/login"), ("GET", "/p")]
    assert asked[-1].headers["cookie"] == "session=7"
    assert [
        record for record in caplog.records if "tldextract" in record.name
    ] == []  # it would send requests to the web
    assert all(later.began - earlier.ended >= 0.25 for earlier, later in itertools.pairwise(asked))


def test_robots_txt_applies_to_addon_requests(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /login\n", content_type="text/plain"))
    site.on("/p", Reply(body=b"<form id=login></form>"))
    page = crawl(site.url("/p"), fetcher_scrapy_middlewares=f"{HERE}.Login=560")
    assert page.status == CrawlStatus.RETRY
    assert page.protocol_status is not None
    assert "robots.txt forbids it" in page.protocol_status.args[0]
    assert site.gets("/login") == 0


class Follows:
    """Follows redirects by itself."""

    def process_response(self, request: Request, response: Response) -> Response | Request:
        if response.status != 302:
            return response
        target = response.headers["Location"]
        assert target is not None
        return request.replace(url=response.urljoin(target.decode()))


def test_redirect_followed_by_addon_is_stored_as_redirect(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(302, headers=[("Location", "/there")]))
    site.on("/there", Reply(body=PAGE))
    page = crawl(site.url("/p"), fetcher_scrapy_middlewares=f"{HERE}.Follows")
    assert (page.status, list(page.outlinks)) == (CrawlStatus.REDIR_TEMP, [site.url("/there")])


# tries


def test_retry_middleware_waits_for_queue(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(500), Reply(reset=True), Reply(body=PAGE))
    page = crawl(site.url("/p"), fetcher_scrapy_settings="RETRY_ENABLED=true", fetcher_server_delay="0.3")
    assert (page.status, page.content) == (CrawlStatus.FETCHED, PAGE)
    tries = [seen for seen in site.seen if seen.path == "/p"]
    assert len(tries) == 3
    assert all(later.began - earlier.ended >= 0.25 for earlier, later in itertools.pairwise(tries))


def test_without_retry_middleware_schedule_retries(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(500), Reply(body=PAGE))
    assert crawl(site.url("/p")).status == CrawlStatus.RETRY
    assert site.gets("/p") == 1


# settings, add-ons, extensions


class Counter:
    """An extension."""

    opened = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls()
        crawler.signals.connect(extension.count, signals.spider_opened)
        return extension

    def count(self) -> None:
        type(self).opened += 1


class Ends(Counter):
    def count(self) -> None:
        raise CloseSpider("enough")


class AddOn:
    """An add-on that adds a middleware and tries to override forced settings."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", AgentByHost, 543)
        settings.set("DOWNLOAD_DELAY", 60, "addon")
        settings.set("REDIRECT_ENABLED", True, "addon")


def test_addon_and_extension_are_loaded(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counter, "opened", 0)
    site.on("/p", Reply(302, headers=[("Location", "/there")]))
    page = crawl(
        site.url("/p", "a.test"),
        fetcher_scrapy_addons=f"{HERE}.AddOn",
        fetcher_scrapy_extensions=f"{HERE}.Counter",
    )
    assert Counter.opened == 1
    assert page.status == CrawlStatus.REDIR_TEMP
    assert site.seen[-1].headers["user-agent"] == "for-a"


def test_extension_ending_fetch_is_respected(site: ScriptedSite, crawl: Crawl) -> None:
    with pytest.raises(ConfigurationError, match="enough"):
        crawl(site.url("/p"), fetcher_scrapy_extensions=f"{HERE}.Ends")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "some_project_settings.py").write_text(
        f"""
BOT_NAME = "tutorial"
SPIDER_MODULES = ["tutorial.spiders"]
ROBOTSTXT_OBEY = False
DOWNLOAD_DELAY = 30
AUTOTHROTTLE_ENABLED = True
USER_AGENT = "somebody else"
DOWNLOADER_MIDDLEWARES = {{
    "{HERE}.AgentByHost": 543,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": 600,
}}
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "some_project_settings"
    sys.modules.pop("some_project_settings", None)


def test_project_settings_are_loaded(site: ScriptedSite, crawl: Crawl, module: str) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /no\n", content_type="text/plain"))
    site.on("/moved", Reply(302, headers=[("Location", "/p")]))
    urls = [site.url(path, "a.test") for path in ("/p", "/no", "/moved")]
    messages = warned(crawl, *urls, fetcher_scrapy_settings_module=module)
    assert "without effect in a fetch" in messages
    assert "AUTOTHROTTLE_ENABLED, DOWNLOAD_DELAY" in messages
    assert {seen.headers["user-agent"] for seen in site.seen} == {"for-a"}
    assert site.gets("/no") == 0
    assert site.gets("/p") == 1
    assert crawl.pages[urls[2]].status == CrawlStatus.REDIR_TEMP


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetcher.scrapy.middlewares", "nowhere.Middleware"),
        ("fetcher.scrapy.middlewares", f"{HERE}.AgentByHost=first"),
        ("fetcher.scrapy.extensions", "Nothing"),
        ("fetcher.scrapy.addons", f"{HERE}.Absent"),
        ("fetcher.scrapy.settings", "no equals sign"),
        ("fetcher.scrapy.settings", "EXTENSIONS={not json"),
        ("fetcher.scrapy.settings.module", "nowhere.settings"),
        ("fetcher.download.handler", "nowhere.Handler"),
    ],
)
def test_missing_component_is_rejected(crawl: Crawl, name: str, value: str) -> None:
    crawl.conf.set(name, value)
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        TransportSettings.from_conf(crawl.conf)


# handlers


class OwnConnections:
    """A download handler that connects without the address filter."""

    lazy = True
    asked: list[str] = []  # noqa: RUF012

    async def download_request(self, request: Request) -> Response:
        self.asked.append(request.url)
        return Response(request.url, body=PAGE, request=request)

    async def close(self) -> None:
        pass


def test_handler_with_own_connections_is_reported_and_names_checked(crawl: Crawl) -> None:
    OwnConnections.asked.clear()
    messages = warned(
        crawl,
        "http://localhost/p",
        "http://192.0.2.1/p",
        fetcher_download_handler=f"{HERE}.OwnConnections",
        http_filter_ipaddress_exclude="loopback",
    )
    assert "opens its own connections" in messages
    assert crawl.report.counters["exception_address_excluded"] == 1
    assert crawl.pages["http://192.0.2.1/p"].content == PAGE
    assert not any("localhost" in url for url in OwnConnections.asked)


@pytest.mark.parametrize("handler", ["aiohttp", "httpx"])
def test_body_beyond_limit_is_truncated(site: ScriptedSite, crawl: Crawl, handler: str) -> None:
    site.on("/p", Reply(body=b"x" * 3_000_000))
    page = crawl(site.url("/p"), fetcher_download_handler=handler, http_content_limit="1000")
    assert (page.status, page.content) == (CrawlStatus.FETCHED, b"x" * 1000)


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_third_party_addon_works(site: ScriptedSite, crawl: Crawl) -> None:
    """scrapy-zyte-smartproxy from PyPI: its proxy receives its key; the crawl delay that it removes still applies."""
    for path in ("/p", "/q"):
        site.on(f"http://far.example{path}", Reply(body=PAGE))
    urls = ["http://far.example/p", "http://far.example/q"]
    settings = {"ENABLED": "true", "APIKEY": "key", "URL": f"http://127.0.0.1:{site.port}"}
    crawl(
        *urls,
        fetcher_scrapy_middlewares="scrapy_zyte_smartproxy.ZyteSmartProxyMiddleware=610",
        fetcher_scrapy_settings=",".join(f"ZYTE_SMARTPROXY_{name}={value}" for name, value in settings.items()),
        fetcher_server_delay="0.3",
    )
    assert [crawl.pages[url].content for url in urls] == [PAGE, PAGE]
    login = "Basic " + base64.b64encode(b"key:").decode()
    assert {seen.headers.get("proxy-authorization") for seen in site.seen} == {login}
    first, second = (seen for seen in site.seen if not seen.path.endswith("robots.txt"))
    assert second.began - first.ended >= 0.25
