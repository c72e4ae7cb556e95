"""Politeness as the server sees it: gaps, concurrent requests, and the effect of failures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.engine.queue_backoff import parse_retry_after
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.queues.fetch_queues import HostFetchSettings
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url
from tests.conftest import MAP_SIZE
from tests.fetcher.conftest import BATCH, Crawl, item
from tests.site.server import Reply, ScriptedSite, Seen

PAGE = b"<html><body>hello</body></html>"
DELAY = 0.3
SLACK = 0.01  # seconds between the clocks of server and fetcher
HOSTS = ("a.one.test", "b.one.test", "a.two.test", "b.two.test")
ADDRESSES = {"a.one.test": "127.0.0.1", "b.one.test": "127.0.0.2", "a.two.test": "127.0.0.1", "b.two.test": "127.0.0.2"}
GROUPS = {
    "byHost": {host: host for host in HOSTS},
    "byDomain": {host: host.partition(".")[2] for host in HOSTS},
    "byIP": ADDRESSES,
}


@pytest.fixture
def everywhere() -> Iterator[ScriptedSite]:
    with ScriptedSite(address="0.0.0.0") as site:
        site.on("/robots.txt", Reply(404))
        yield site


def gaps(requests: list[Seen]) -> list[float]:
    """Return the seconds from the end of each request to the start of the next; negative if they overlap."""
    ordered = sorted(requests, key=lambda seen: seen.began)
    return [later.began - earlier.ended for earlier, later in pairwise(ordered)]


def pages(site: ScriptedSite) -> list[Seen]:
    return [seen for seen in site.seen if seen.path != "/robots.txt"]


@pytest.mark.parametrize(("mode", "whole"), [*((mode, "false") for mode in GROUPS), ("byHost", "true")])
def test_one_request_at_a_time_across_tasks(everywhere: ScriptedSite, tmp_path: Path, mode: str, whole: str) -> None:
    """Two fetch tasks in separate processes; all pages of a queue are in one of them."""
    names = tmp_path / "hosts.txt"
    names.write_text("".join(f"{address} {host}\n" for host, address in ADDRESSES.items()), encoding="utf-8")
    conf = Configuration.load(
        overrides={
            "http.agent.name": "probe",
            "http.hosts.file": str(names),
            "http.filter.ipaddress.exclude": "",
            "fetcher.server.delay": str(DELAY),
            "fetcher.queue.mode": mode,
            "fetcher.scrapy.whole": whole,
            "mapreduce.runner": "local",
            "storage.data.store": f"embedded:{tmp_path / 'crawldata'}",
            "storage.embedded.map.size": MAP_SIZE,
        }
    )
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for host in HOSTS:
            for number in range(3):
                everywhere.on(f"{host}/{number}", Reply(body=PAGE, hang=0.05))
                page = WebPage()
                page.markers[Mark.GENERATE] = BATCH
                batch.put(reverse_url(everywhere.url(f"/{number}", host)), page)
    result = fetch(conf, BATCH, num_tasks=2, threads=8)
    assert result.count("FetcherStatus", "SUCCESS") == 12
    assert len(pages(everywhere)) == 12
    groups: dict[str, list[Seen]] = {}
    for seen in pages(everywhere):
        groups.setdefault(GROUPS[mode][seen.host], []).append(seen)
    assert len(groups) == len(set(GROUPS[mode].values()))
    for name, requests in groups.items():
        assert min(gaps(requests)) >= DELAY - SLACK, name


def test_http_and_https_share_host_queue(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/1", Reply(body=PAGE))
    crawl(site.url("/1"), site.url("/2").replace("http:", "https:"), site.url("/3"), fetcher_server_delay=str(DELAY))
    assert min(gaps(pages(site))) >= 2 * DELAY - SLACK  # the one of https, which the site does not speak, came between


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_respected(site: ScriptedSite, crawl: Crawl, status: int) -> None:
    site.on("/busy", Reply(status, headers=[("Retry-After", "1")]))
    site.on("/next", Reply(body=PAGE))
    site.on("/other", Reply(body=PAGE))
    crawl(site.url("/busy"), site.url("/next"), site.url("/other", "a.test"))
    seen = {request.path: request for request in site.seen}
    assert seen["/next"].began - seen["/busy"].ended >= 1 - SLACK
    assert seen["/other"].began < seen["/next"].began


def test_long_retry_after_defers_server(site: ScriptedSite, crawl: Crawl) -> None:
    site.on("/busy", Reply(503, headers=[("Retry-After", "3600")]))
    crawl(site.url("/busy"), *(site.url(f"/{number}") for number in range(5)))
    assert [seen.path for seen in pages(site)] == ["/busy"]
    assert list(crawl.pages) == [site.url("/busy")]  # the rows of the others stay as they are: due
    assert crawl.report.counters["AboveMaxRetryAfter"] == 5


def test_wait_beyond_time_limit_ends_queue(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_monitor.STATUS_INTERVAL", 0.01)
    site.on("/busy", Reply(503, headers=[("Retry-After", "200")]))
    crawl.conf.set("fetcher.timelimit.mins", "1")
    messages: list[str] = []
    report = Fetcher(crawl.conf, 4, log=crawl.log.append).run(
        map(item, map(site.url, ("/busy", "/1"))), crawl.sink, messages.append
    )
    assert report.counters["HitByTimeLimit-Queues"] == 1
    assert len([text for text in messages if "1 queues, 0 active" in text]) < 100  # thousands in a minute of waiting


NOW = 1_600_000_000.0


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, "120", 120),
        (503, " 0 ", 0),
        (503, formatdate(NOW + 90, usegmt=True), 90),
        (503, formatdate(NOW - 90, usegmt=True), 0),
        (503, "soon", None),
        (503, "-5", None),
        (503, "1.5", None),
        (503, "²", None),
        (200, "120", None),
        (404, "120", None),
    ],
)
def test_retry_after_values_are_parsed(status: int, value: str, seconds: float | None) -> None:
    answer = FetchResponse("http://a.test/", status, [f"Retry-After: {value}\r\n".encode("latin-1")])
    assert parse_retry_after(answer, NOW) == seconds


def test_repeated_failures_increase_delay(site: ScriptedSite, crawl: Crawl) -> None:
    for number, reply in enumerate([500, 502, 503, 200, 500, 200]):
        site.on(f"/{number}", Reply(reply, body=PAGE))
    crawl(*(site.url(f"/{number}") for number in range(6)), fetcher_exceptions_per_queue_delay="0.2")
    found = gaps(pages(site))
    for gap, least in zip(found, (0.2, 0.4, 0.8, 0.0, 0.2), strict=True):
        assert gap >= least - SLACK
    assert found[3] < 1.6  # a success ends the row of failures, which would continue with this delay
    assert found[4] < 1.6


def test_client_errors_cause_no_delay(site: ScriptedSite, crawl: Crawl) -> None:
    for number, reply in enumerate([403, 404, 204, 200]):
        site.on(f"/{number}", Reply(reply, body=PAGE if reply != 204 else b""))
    # a queue that has to wait beyond the time limit is dropped at once
    delay = {"fetcher_exceptions_per_queue_delay": "200", "fetcher_timelimit_mins": "1"}
    crawl(*(site.url(f"/{number}") for number in range(4)), **delay)
    assert len(crawl.pages) == 4


def test_too_many_failures_defer_remaining_urls(site: ScriptedSite, crawl: Crawl) -> None:
    for number in range(10):
        site.on(f"/{number}", Reply(500))
    crawl(*(site.url(f"/{n}") for n in range(10)), fetcher_max_exceptions_per_queue="3")
    assert len(crawl.pages) == 3
    assert crawl.report.counters["AboveExceptionThresholdInQueue"] == 7


def test_pages_per_queue_are_limited(site: ScriptedSite, crawl: Crawl) -> None:
    urls = [site.url(f"/{n}", host) for host in ("a.test", "b.test") for n in range(5)]
    crawl(*urls, fetcher_max_pages_per_queue="3")
    assert len(crawl.pages) == 6
    assert crawl.report.counters["AboveMaxPagesInQueue"] == 4


def test_host_settings_are_applied(site: ScriptedSite, fetch_conf: Configuration) -> None:
    for host in ("a.test", "b.test"):
        for number in range(4):
            site.on(f"{host}/{number}", Reply(body=PAGE, hang=0.1))
    fetch_conf.set("fetcher.queue.use.host.settings", "true")
    settings = {"a.test": HostFetchSettings(crawl_delay_ms=300), "b.test": HostFetchSettings(max_threads=4)}
    urls = [site.url(f"/{number}", host) for host in settings for number in range(4)]
    done: list[FetchItem] = []
    Fetcher(fetch_conf, 8, settings.get, lambda _: None).run(map(item, urls), done.append)
    assert len(done) == 8
    assert min(gaps([seen for seen in pages(site) if seen.host == "a.test"])) >= 0.3 - SLACK
    assert min(gaps([seen for seen in pages(site) if seen.host == "b.test"])) < 0


def test_deferred_rows_are_due_again(everywhere: ScriptedSite, conf: Configuration, tmp_path: Path) -> None:
    """Rows of a fetch that ran out of time have no fetch mark; the next fetch of the batch takes them."""
    for name, value in {
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
        "fetcher.timelimit.mins": "1",
    }.items():
        conf.set(name, value)
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for number in range(4):
            everywhere.on(f"/{number}", Reply(503, headers=[("Retry-After", "100")]), Reply(body=PAGE))
            page = WebPage()
            page.markers[Mark.GENERATE] = BATCH
            batch.put(reverse_url(f"http://127.0.0.1:{everywhere.port}/{number}"), page)
    first = fetch(conf, BATCH)
    assert first.count("FetcherStatus", "HitByTimeLimit-Queues") == 3

    def fetched() -> int:
        rows = store.scan(TableQuery(frozenset({WebPage.markers})))
        return sum(page.markers.get(Mark.FETCH) == BATCH for _, page in rows)

    assert fetched() == 1
    for number in range(4):
        everywhere.on(f"/{number}", Reply(body=PAGE))
    second = fetch(conf, BATCH, resume=True)
    assert second.count("FetcherStatus", "already_fetched") == 1
    assert second.count("FetcherStatus", "SUCCESS") == 3
    assert fetched() == 4


def test_politely_waiting_fetch_reports_progress(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_monitor.STATUS_INTERVAL", 0.01)
    crawl.conf.set("fetcher.server.delay", "1.0")
    site.on("/1", Reply(body=PAGE))
    site.on("/2", Reply(body=PAGE))
    messages: list[str] = []
    Fetcher(crawl.conf, 4, log=crawl.log.append).run(
        map(item, map(site.url, ("/1", "/2"))), crawl.sink, messages.append
    )
    waiting = [text for text in messages if "1 queues, 0 active" in text]
    assert len(waiting) > 10  # some 100 but on a machine that is busy
    assert len(set(waiting)) < len(waiting)  # though there is nothing new to say


def test_fetch_waiting_only_for_table_reports_no_progress(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_monitor.STATUS_INTERVAL", 0.01)
    site.on("/1", Reply(body=PAGE))
    messages: list[str] = []
    still = False

    def hang(_: FetchItem) -> None:
        nonlocal still
        until = time.monotonic() + 20
        while not still and time.monotonic() < until:
            before = len(messages)
            time.sleep(0.5)
            still = len(messages) == before

    Fetcher(crawl.conf, 4, log=crawl.log.append).run(iter([item(site.url("/1"))]), hang, messages.append)
    assert still
