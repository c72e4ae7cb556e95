"""The pages of the control room: in a browser, with malicious values in every field, and their cost."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from starlette.routing import Route

from nutch2py.conf.configuration import Configuration
from nutch2py.control_room.crawl_fingerprint import crawl_fingerprint
from nutch2py.crawl_reader import CrawlReader
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.rest.dispatch.sse import SharedPoller
from nutch2py.rest.job_control.job_processes import JobProcessManager
from nutch2py.server.http_server import HttpServer
from nutch2py.support.thread_limit import ThreadLimit
from nutch2py.table import open_store
from nutch2py.table.embedded.embedded_store import EmbeddedStore
from nutch2py.url.keys import reverse_url
from tests.charts.chrome import OUT_OF_REACH, OVERLAPS, VIEWS, axe, chrome, faults, open_page, save, too_wide
from tests.charts.samples import HOSTILE
from tests.control_room import test_report
from tests.control_room.sample_crawl import HOST, crawled, log_searches, simulate
from tests.control_room.simulated_job_log import entries
from tests.server.running_server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["axe", "chrome"]
PATHS = (
    "crawl", "crawl/activity?range=all", "crawl/jobs", "crawl/rounds", "crawl/hosts", f"crawl/host?name={HOST}",
    "crawl/page", "crawl/new", "crawl/doctor", "crawl/search-quality",
    *(f"crawl/page?url=http://{HOST}/p{number}" for number in (3, 7)),
    *(f"crawl/job?id={entries()[number].id}" for number in (0, 3)),
)  # fmt: skip


@contextmanager
def serve_control_room(conf: Configuration) -> Iterator[str]:
    """Serve the application; yield the URL of its first page."""
    conf.set("http.dns.resolver", "system")  # the doctor sends nothing to other machines
    with serving(HttpServer(conf, ("127.0.0.1", 0))) as server:
        yield server.url


@pytest.fixture
def room(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of a server over a small table, with a log and an overview of ten million rows."""
    crawled(conf)
    BatchListStore(conf).set_state(entries()[0].batch_id, BatchState.GENERATED, 50_000)
    simulate(monkeypatch.setattr)
    log_searches(conf, [f"query {number}" for number in range(60)])
    with serve_control_room(conf) as url:
        yield url


def text_of(url: str) -> str:
    with urlopen(url, timeout=60) as response:
        return str(response.read().decode())


def test_pages_render_in_browser(chrome: Browser, axe: str, room: str) -> None:
    """Each page in one of the four views, and the first in all; for screenshots, each in all."""
    views = [(path, VIEWS[number % 4]) for number, path in enumerate(PATHS)] + [("crawl", view) for view in VIEWS[1:]]
    if "NUTCH2PY_SCREENSHOTS" in os.environ:
        views = [(path, view) for path in PATHS for view in VIEWS]
    for path, (size, scheme) in views:
        with open_page(chrome, size, scheme) as page:
            page.goto(room + path)
            page.wait_for_function("() => !document.querySelector('[data-live]') || live.textContent === 'live'")
            name = "-".join(re.findall(r"\w+", path.partition("http")[0])) + path[-2:].replace("/", "-")
            save(page, f"{name}-{size}-{scheme}", os.environ.get("NUTCH2PY_SCREENSHOTS"))
            assert page.evaluate(OVERLAPS) == [], path
            assert too_wide(page) == 0, path
            assert faults(page, axe) == [], path
            assert page.console_lines == [], path  # type: ignore[attr-defined]
            assert [url for url in page.requested_urls if not url.startswith(room)] == []  # type: ignore[attr-defined]
            assert page.context.cookies() == []


def test_table_cells_are_readable_on_phone(chrome: Browser, room: str) -> None:
    with open_page(chrome, "phone") as page:
        for path in PATHS:
            page.goto(room + path)
            assert page.evaluate(OUT_OF_REACH) == [], path
            shades = page.evaluate(
                "() => [...document.querySelectorAll('.scroll')].map(e => getComputedStyle(e).background)"
            )
            assert all("local" in shade for shade in shades), path


def test_every_page_is_tested(conf: Configuration) -> None:
    """Other tests check the pages in :data:`PATHS` only, so each new page must be listed there."""
    with serving(HttpServer(conf, ("127.0.0.1", 0))) as server:
        found = {
            route.path.strip("/")
            for route in server.app.routes
            if isinstance(route, Route) and route.path.startswith("/crawl") and "GET" in (route.methods or ())
        }
    assert found - {path.partition("?")[0] for path in PATHS} == {
        "crawl/control_room.css",
        "crawl/control_room.js",
        "crawl/events",
    }


def test_pages_work_without_scripts_and_with_keyboard(chrome: Browser, room: str) -> None:
    with open_page(chrome, scripts=False) as page:
        page.goto(f"{room}crawl")
        assert "10,000,000 pages of 184,311 hosts, 63 % fetched." in page.inner_text(".lead")
        assert page.inner_text("article.running-job h2").startswith("fetch")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.click("nav >> text=Hosts")
        page.fill("input[name=name]", HOST)
        page.keyboard.press("Enter")
        page.wait_for_url("**/crawl/host?name=*")
        assert page.inner_text("h1") == HOST
        page.click("text=/p2 >> nth=0")
        page.wait_for_url("**/crawl/page?url=*")
        assert "Gone: the interval grows by half after each fetch" in page.inner_text(".lead")
        page.click("text=Cached copy")
        page.wait_for_url("**/cached/view?id=*")
        assert "unavailable" in page.inner_text("p")  # only pages of the index have a copy, and this crawl has no index


def test_running_fetch_shows_queues(room: str) -> None:
    for path in ("crawl", "crawl/jobs", f"crawl/job?id={entries()[0].id}"):
        assert "1,204 queues, 50 active, errors: 31 HTTP status, 8 timeout" in text_of(room + path)


def test_activity_of_empty_range_says_only_so(room: str) -> None:
    text = text_of(f"{room}crawl/activity?range=1h")  # the simulated log is older
    assert "No job ran in this time range. Choose a longer one." in text
    assert "<figure" not in text
    assert "No host has failed" not in text
    assert 'range=1h" aria-current="true">Last hour</a>' in text


def test_overview_charts_are_drawn_once(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = text_of(f"{room}crawl/hosts")
    monkeypatch.setattr("nutch2py.control_room.crawl_charts.draw_host_links", None)
    again = text_of(f"{room}crawl/hosts")
    assert "Links between hosts" in first
    assert first == again


def test_changes_appear_while_page_is_open(
    chrome: Browser, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(conf, 3)
    log = entries(30)
    simulate(monkeypatch.setattr, log)
    with serve_control_room(conf) as url, open_page(chrome) as page:
        page.goto(f"{url}crawl")
        page.wait_for_function("() => live.textContent === 'live'")
        page.click("summary >> nth=0")
        page.evaluate("window.same = true")
        further = replace(log[0], rows=44_444)
        simulate(monkeypatch.setattr, [further, *log[1:]])
        page.wait_for_function("() => document.querySelector('article.running-job').textContent.includes('44,444')")
        assert page.evaluate("window.same")  # the page has not changed
        assert page.evaluate("document.activeElement === document.querySelector('summary')")  # nor has the focus
        assert page.locator("details.queues").get_attribute("open") is None  # it was closed
        assert page.console_lines == []  # type: ignore[attr-defined]


def hostile_page() -> WebPage:
    page = WebPage()
    page.title = page.repr_url = page.batch_id = page.content_type = HOSTILE[0] + HOSTILE[2]
    page.fetch_interval, page.fetch_time = 2**31 - 1, 2**62
    page.inlinks = {f"javascript:alert(1)//{number}": bad for number, bad in enumerate(HOSTILE)}
    page.outlinks = {bad: bad for bad in HOSTILE if bad}
    for mark in Mark:
        page.markers[mark] = HOSTILE[0]
    page.metadata[MetadataKey.DUPLICATE] = b"\xff\xfe <script>"
    return page


def test_field_values_are_escaped(
    chrome: Browser, axe: str, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(conf, 2)
    url = "http://evil.example/<script>document.title='ran'</script>\u202e" + "a" * 3000
    with open_store(conf, WebPage).batch() as batch:
        batch.put(reverse_url(url), hostile_page())
    bad = test_report.hostile()
    simulate(monkeypatch.setattr, bad.entries)
    log_searches(conf, ["<script>document.title='ran'</script>\u202e" + "a" * 300, *HOSTILE])
    monkeypatch.setattr(CrawlReader, "overview", lambda _: bad.overview)
    with serve_control_room(conf) as room:
        job = quote(bad.entries[0].id)
        hosts = (f"crawl/host?name={name}" for name in ("evil.example", quote(HOSTILE[0])))
        paths = (
            "crawl",
            "crawl/jobs",
            f"crawl/job?id={job}",
            "crawl/rounds",
            "crawl/hosts",
            "crawl/search-quality",
            *hosts,
        )
        for number, path in enumerate((*paths, f"crawl/page?url={quote(url)}")):
            size, scheme = VIEWS[number % 4]
            with open_page(chrome, size, scheme) as page:
                page.goto(room + path)
                assert too_wide(page) == 0, path
                assert faults(page, axe) == [], path
                assert "ran" not in page.title().split(), path
                assert "javascript:" not in "".join(
                    page.eval_on_selector_all("a", "all => all.map(a => new URL(a.href).protocol)")
                ), path
                messages = [each for each in page.console_lines if "404" not in each]  # type: ignore[attr-defined]
                assert messages == [], path
                assert [url for url in page.requested_urls if not url.startswith(room)] == []  # type: ignore[attr-defined]


def test_search_quality_is_shown_for_period(room: str) -> None:
    text = text_of(f"{room}crawl/search-quality")
    assert "Searches are not logged" in text
    assert text.count('aria-label="Queries without clicks"') == 1
    assert re.search(r">query 10</a></th><td[^>]*>1</td><td[^>]*>20</td><td[^>]*>100 %</td><td[^>]*>2.0</td>", text)
    assert "<dt>Searches</dt><dd>180</dd>" in text
    assert '<b aria-current="true">Last 7 days</b>' in text
    assert '<b aria-current="true">Last day</b>' in text_of(f"{room}crawl/search-quality?days=1")
    for wrong in ("0", "2", "x", "\u0664", "9" * 9999):
        assert "Last 7 days</b>" in text_of(f"{room}crawl/search-quality?days={quote(wrong)}")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("crawl/job?id=none", HTTPStatus.NOT_FOUND, "Job not found"),
        ("crawl/host?name=none.example", HTTPStatus.NOT_FOUND, "the crawl has no page and no row of this host"),
        ("crawl/host", HTTPStatus.BAD_REQUEST, "No host: enter a host name."),
        ("crawl/page?url=http://none.example/", HTTPStatus.NOT_FOUND, "no parsed page links to it"),
        ("crawl/page?url=none", HTTPStatus.BAD_REQUEST, "none is not a URL"),
        (f"crawl/host?name={HOST}&from=none", HTTPStatus.BAD_REQUEST, "none is not a URL"),
        (f"crawl/page?url=http://{'a' * 10_000}", HTTPStatus.BAD_REQUEST, "An argument has at most 10,000 characters."),
        ("crawl/nothing", HTTPStatus.NOT_FOUND, "Page not found."),
    ],
)
def test_missing_object_shows_not_found(room: str, path: str, status: HTTPStatus, message: str) -> None:
    with pytest.raises(HTTPError) as failure:
        text_of(room + path)
    assert failure.value.code == status
    assert message in failure.value.read().decode()


def test_empty_crawl_has_its_page(conf: Configuration) -> None:
    open_store(conf, WebPage).create()
    with serve_control_room(conf) as url:
        assert "No job in the log yet." in text_of(f"{url}crawl")
        for path in ("crawl/jobs", "crawl/rounds", "crawl/hosts"):
            assert "yet" in text_of(url + path)


def test_list_pagination_reaches_end(room: str) -> None:
    first = text_of(f"{room}crawl/host?name={HOST}")
    after = first.partition('rel="next"')[0].rpartition('href="')[2].rstrip('" ').replace("&amp;", "&")
    second = text_of(room + after[1:])
    seen = [text.count(f'href="/crawl/page?url=http%3A%2F%2F{HOST}%2Fp') for text in (first, second)]
    assert seen == [50, 10]
    jobs = text_of(f"{room}crawl/jobs")
    assert jobs.count("/crawl/job?id=") >= 50
    assert 'rel="next"' in jobs


def rows_read(monkeypatch: pytest.MonkeyPatch, room: str, path: str) -> int:
    """Return the number of table rows that a page reads."""
    count = 0

    def one_by_one(method: Callable[..., Any]) -> Callable[..., Any]:
        def scan(*args: Any, **more: Any) -> Iterator[Any]:
            nonlocal count
            for row in method(*args, **more):
                count += 1
                yield row

        return scan

    def many(store: EmbeddedStore[Any], keys: Any, *args: Any) -> list[Any]:
        nonlocal count
        count += len(keys)
        return get_many(store, keys, *args)

    get_many = EmbeddedStore.get_many
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedStore, "scan", one_by_one(EmbeddedStore.scan))
        patch.setattr(EmbeddedStore, "scan_cells", one_by_one(EmbeddedStore.scan_cells))
        patch.setattr(EmbeddedStore, "get_many", many)
        text_of(room + path)
    return count


def test_page_reads_constant_rows_for_larger_table(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of rows are counted, including those for statistics and batches."""
    counts = {}
    for size in (150, 600):
        conf.set("storage.crawl.id", f"of{size}")
        crawled(conf, size)
        BatchListStore(conf).set_state("b", BatchState.GENERATED, size)
        with serve_control_room(conf.copy()) as room:
            counts[size] = {path: rows_read(monkeypatch, room, path) for path in PATHS if "job?" not in path}
    assert counts[150] == counts[600]
    assert max(counts[600].values()) <= 2 * 51
    assert counts[600][f"crawl/host?name={HOST}"] >= 51


def test_many_viewers_cost_as_much_as_one(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    crawled(conf, 2)
    simulate(monkeypatch.setattr)
    reads: list[int] = []
    jobs = CrawlReader.jobs
    monkeypatch.setattr(CrawlReader, "jobs", lambda crawl, *args: reads.append(1) or jobs(crawl, *args))

    async def fingerprints() -> set[str]:
        poller = SharedPoller(
            lambda: crawl_fingerprint(lambda: CrawlReader(conf), JobProcessManager(conf.absolute("rest"), 1, 1, 1)),
            3600.0,
            ThreadLimit(4),
        )
        return {*await asyncio.gather(*(poller.latest() for _ in range(50)))}

    with ThreadPoolExecutor(1) as pool:  # Playwright runs an event loop in this thread
        assert len(pool.submit(asyncio.run, fingerprints()).result()) == 1
    assert reads == [1]


def test_script_and_style_are_packaged(room: str) -> None:
    folder = Path(__file__).parents[2] / "nutch2py" / "control_room" / "templates"
    assert text_of(f"{room}crawl/control_room.js") == (folder / "control_room.js").read_text("utf-8")
    assert (folder / "control_room.css").read_text("utf-8") in text_of(f"{room}crawl/control_room.css")


def test_missing_token_is_rejected(conf: Configuration, tmp_path: Path) -> None:
    crawled(conf, 2)
    conf.set("rest.tokens.file", str(tmp_path / "tokens"))
    token = add_token(conf, "reader", Role.READ)
    with serve_control_room(conf) as room:
        for path in (*PATHS, "crawl/events"):
            with pytest.raises(HTTPError) as failure:
                text_of(room + path)
            assert failure.value.code == HTTPStatus.UNAUTHORIZED
            assert failure.value.headers["WWW-Authenticate"].startswith("Basic")
            assert HOST not in failure.value.read().decode()
        authorized = Request(f"{room}crawl", headers={"Authorization": f"Bearer {token}"})
        with urlopen(authorized, timeout=60) as response:
            assert response.status == HTTPStatus.OK
