"""Add-ons that raise, hang, lie or never stop: each page ends with a status, and so does the fetch."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings

from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.runtime import loop_watchdog
from nutch2py.records.webpage import CrawlStatus
from nutch2py.support.reporting import Reporter, use_reporter
from tests.fetcher.conftest import Crawl
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>words</body></html>"
HERE = __name__

pytestmark = pytest.mark.parametrize("way", ["true"], indirect=True)


def odd(request: Request) -> bool:
    """Return whether a request is for the page on which the add-ons below misbehave."""
    return "/odd" in request.url


class Raises:
    error: type[BaseException] = OSError
    place = "request"

    def process_request(self, request: Request) -> None:
        if odd(request) and self.place == "request":
            raise self.error("of an add-on")

    def process_response(self, request: Request, response: Response) -> Response:
        if odd(request) and self.place == "response":
            raise self.error("of an add-on")
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if odd(request) and self.place == "exception":
            raise self.error("of an add-on")


@pytest.mark.parametrize("error", [OSError, RecursionError, UnicodeError, asyncio.CancelledError])
@pytest.mark.parametrize("place", ["request", "response", "exception"])
def test_raising_addon_fails_only_its_page(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], place: str
) -> None:
    monkeypatch.setattr(Raises, "error", error)
    monkeypatch.setattr(Raises, "place", place)
    site.on("/odd", Reply(reset=True) if place == "exception" else Reply(body=PAGE))
    site.on("/p", Reply(body=PAGE))
    crawl(site.url("/odd"), site.url("/p", "b.test"), fetcher_scrapy_middlewares=f"{HERE}.Raises")
    assert crawl.pages[site.url("/odd")].status == CrawlStatus.RETRY
    assert crawl.pages[site.url("/p", "b.test")].status == CrawlStatus.FETCHED


class Returns:
    """Returns an invalid type, or a response that no server would send."""

    what: Any = None

    def process_response(self, request: Request, response: Response) -> Any:
        return type(self).what if odd(request) else response


@pytest.mark.parametrize(
    ("what", "status"),
    [
        (None, CrawlStatus.RETRY),
        (b"bytes", CrawlStatus.RETRY),
        (HtmlResponse("http://a.test/odd", status=99999, body=b"x"), CrawlStatus.RETRY),
        (HtmlResponse("", body=b"x"), CrawlStatus.FETCHED),
        (HtmlResponse("http://[::1/", body=b"x"), CrawlStatus.RETRY),
        (HtmlResponse("http://a.test/odd", status=-1, body=b"x"), CrawlStatus.RETRY),
        (HtmlResponse("file:///etc/passwd", body=b"x"), CrawlStatus.REDIR_TEMP),
    ],
    ids=["none", "bytes", "status", "no URL", "malformed URL", "negative", "file"],
)
def test_addon_returning_wrong_type_fails_page(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, what: object, status: CrawlStatus
) -> None:
    monkeypatch.setattr(Returns, "what", what)
    site.on("/p", Reply(body=PAGE))
    crawl(site.url("/odd"), site.url("/p", "b.test"), fetcher_scrapy_middlewares=f"{HERE}.Returns")
    assert crawl.pages[site.url("/odd")].status == status
    assert dict(crawl.pages[site.url("/odd")].outlinks) == {}
    assert crawl.pages[site.url("/p", "b.test")].status == CrawlStatus.FETCHED


class Hangs:
    place = "request"

    async def process_request(self, request: Request) -> None:
        if odd(request) and self.place == "request":
            await asyncio.Event().wait()

    async def process_response(self, request: Request, response: Response) -> Response:
        if odd(request) and self.place == "response":
            await asyncio.Event().wait()
        return response


@pytest.mark.parametrize("place", ["request", "response"])
def test_hanging_addon_times_out(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(Hangs, "place", place)
    for path in ("/odd", "/p"):
        site.on(path, Reply(body=PAGE))
    urls = site.url("/odd"), site.url("/p", "b.test")
    crawl(*urls, fetcher_scrapy_middlewares=f"{HERE}.Hangs", fetcher_scrapy_time_limit="0.5")
    assert "fetcher.scrapy.time.limit" in str(crawl.pages[urls[0]].protocol_status)
    assert crawl.pages[urls[1]].status == CrawlStatus.FETCHED


class HangsBehind:
    """Requests a page in its own unawaited task, in which another add-on hangs."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        if request.url.endswith("/p"):
            own = Request(request.url.replace("/p", "/odd"), dont_filter=True)
            self._task = asyncio.ensure_future(self._crawler.engine.download_async(own))
        return response


def test_background_work_of_addon_does_not_delay_fetch_end(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    page = crawl(
        site.url("/p"),
        fetcher_scrapy_middlewares=f"{HERE}.Hangs,{HERE}.HangsBehind",
        fetcher_scrapy_time_limit="0.5",
    )
    assert page.status == CrawlStatus.FETCHED


class Sleeps:
    """Sleeps in the event loop, or in another thread."""

    how = "blocking"

    async def process_request(self, request: Request) -> None:
        if self.how == "blocking":
            await self._wait(1.0)
        elif self.how == "thread":
            await asyncio.to_thread(time.sleep, 1.0)
        else:
            await asyncio.sleep(1.0)

    async def _wait(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.mark.parametrize("how", ["blocking", "thread", "awaiting"])
def test_blocking_addon_is_named(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """It blocks the event loop, so that nothing else could report it."""
    monkeypatch.setattr(Sleeps, "how", how)
    monkeypatch.setattr(loop_watchdog, "SAMPLE_INTERVAL", 0.02)
    site.on("/p", Reply(body=PAGE))
    warnings: list[str] = []
    with use_reporter(Reporter(on_warning=warnings.append)):
        crawl(site.url("/p"), fetcher_scrapy_middlewares=f"{HERE}.Sleeps")
    assert crawl.pages[site.url("/p")].status == CrawlStatus.FETCHED
    named = [line for line in warnings if line.startswith(f"{HERE}.Sleeps.process_request ({__file__}:")]
    assert (named, len(warnings)) == (warnings, 1 if how == "blocking" else 0)


class NeverStops:
    how = "again"

    def process_request(self, request: Request) -> Request | None:
        return request.replace(dont_filter=True) if self.how == "before" and odd(request) else None

    def process_response(self, request: Request, response: Response) -> Response | Request:
        if not odd(request) or self.how == "before":
            return response
        if self.how == "new request":
            return Request(request.url, dont_filter=True)
        return request.replace(url=request.url + "x", dont_filter=True)


@pytest.mark.parametrize("how", ["again", "new request", "before"])
def test_endless_retries_of_addon_are_stopped(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(NeverStops, "how", how)
    for path in ("/odd", "/p"):
        site.on(path, Reply(body=PAGE))
    urls = site.url("/odd"), site.url("/p", "b.test")
    crawl(*urls, fetcher_scrapy_middlewares=f"{HERE}.NeverStops", fetcher_scrapy_time_limit="2")
    assert crawl.pages[urls[0]].status == CrawlStatus.RETRY
    assert crawl.pages[urls[1]].status == CrawlStatus.FETCHED
    if how == "again":
        assert 1 < sum(seen.path.startswith("/odd") for seen in site.seen) <= 21


class Leads:
    """Redirects requests to disallowed places."""

    target = ""

    def process_request(self, request: Request) -> Request | None:
        if not odd(request) or request.meta.get("led"):
            return None
        return request.replace(url=self.target, meta=request.meta | {"led": True})


@pytest.mark.parametrize("handler", ["pycurl", "aiohttp", "httpx"])
@pytest.mark.parametrize("target", ["http://127.0.0.2:PORT/", "http://0x7f.2:PORT/", "http://inside.test:PORT/"])
def test_addon_redirecting_to_internal_address_is_blocked(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, handler: str, target: str
) -> None:
    names = tmp_path / "names"
    names.write_text("127.0.0.2 inside.test\n", encoding="utf-8")
    monkeypatch.setattr(Leads, "target", target.replace("PORT", str(site.port)))
    with ScriptedSite(address="127.0.0.2", port=site.port) as inside:
        crawl(
            site.url("/odd"),
            fetcher_scrapy_middlewares=f"{HERE}.Leads",
            fetcher_download_handler=handler,
            http_filter_ipaddress_exclude="127.0.0.2",
            http_hosts_file=str(names),
        )
        assert inside.seen == []
    assert crawl.pages[site.url("/odd")].status == CrawlStatus.RETRY


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,words", "s3://bucket/key"])
def test_addon_redirecting_to_other_protocol_is_blocked(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(Leads, "target", target)
    page = crawl(site.url("/odd"), fetcher_scrapy_middlewares=f"{HERE}.Leads")
    assert (page.status, page.content) == (CrawlStatus.RETRY, None)


class Exits:
    def process_request(self, request: Request) -> None:
        if odd(request):
            sys.exit(0)


def test_exiting_addon_ends_fetch_with_error(site: ScriptedSite, crawl: Crawl) -> None:
    with pytest.raises(ConfigurationError, match="stopped the fetch: SystemExit: 0"):
        crawl(site.url("/odd"), fetcher_scrapy_middlewares=f"{HERE}.Exits")


class BadSignals:
    """An extension with handlers that raise, and one that never ends."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls()
        crawler.signals.connect(extension.broken, signals.response_received)
        crawler.signals.connect(extension.broken, signals.spider_opened)
        crawler.signals.connect(extension.hangs, signals.spider_closed)
        return extension

    def broken(self) -> None:
        raise OSError("of an extension")

    async def hangs(self) -> None:
        await asyncio.Event().wait()


def test_failing_and_hanging_extensions_are_tolerated(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/p", Reply(body=PAGE))
    page = crawl(site.url("/p"), fetcher_scrapy_extensions=f"{HERE}.BadSignals", fetcher_scrapy_time_limit="0.5")
    assert page.status == CrawlStatus.FETCHED


class BadAddOn:
    def update_settings(self, settings: BaseSettings) -> None:
        raise OSError("of an add-on")


class BadStart:
    def __init__(self) -> None:
        raise OSError("of a middleware")


@pytest.mark.parametrize(
    ("name", "value"), [("addons", "BadAddOn"), ("middlewares", "BadStart"), ("extensions", "BadStart")]
)
def test_failing_start_is_reported(site: ScriptedSite, crawl: Crawl, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match="OSError: of a"):
        crawl(site.url("/p"), **{f"fetcher_scrapy_{name}": f"{HERE}.{value}"})
    assert site.seen == []


@pytest.mark.parametrize("source", ["1 / 0", "def", "import sys; sys.exit(3)", "from nowhere import x"])
@pytest.mark.parametrize("name", ["settings_module", "middlewares"])
def test_unimportable_module_is_named_in_error(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, source: str
) -> None:
    (tmp_path / "odd_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("odd_module", None)
    value = "odd_module" if name == "settings_module" else "odd_module.Some"
    with pytest.raises(ConfigurationError, match=f"property fetcher.scrapy.{name.replace('_', '.')}"):
        crawl(site.url("/p"), **{f"fetcher_scrapy_{name}": value})
