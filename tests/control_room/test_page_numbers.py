"""Numbers of the control room: each equals the table and the job log of a crawl with every kind of result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lxml import html

from nutch2py import Crawl
from nutch2py.control_room.report import CrawlSnapshot, report_data
from nutch2py.fetcher.engine import fetch_monitor
from nutch2py.joblog import job_recorder
from nutch2py.records.webpage import CrawlStatus, WebPage
from tests.rest.conftest import Client, running, settings
from tests.site.server import Reply, ScriptedSite

PAGES = {
    **{f"/ok{number}": Reply(body=b"<p>words") for number in range(4)},
    "/moved": Reply(301, headers=[("Location", "/target")]),
    "/found": Reply(302, headers=[("Location", "/target")]),
    "/forbidden1": Reply(403),
    "/forbidden2": Reply(403),
    "/teapot": Reply(418),
    "/login": Reply(401),
    "/none": Reply(404),
    "/gone": Reply(410),
    "/many": Reply(429),
    "/error1": Reply(500),
    "/error2": Reply(502),
    "/busy": Reply(503),
    "/cut": Reply(reset=True),
    "/secret": Reply(body=b"<p>denied"),
}
FAILURES = {
    "forbidden (403)": 2,
    "other HTTP status": 1,
    "login required (401)": 1,
    "not found (404)": 1,
    "gone (410, 400)": 1,
    "too many requests (429)": 1,
    "server error (5xx)": 3,
    "connection closed": 1,
    "denied by robots.txt": 1,
}
RETRIED = 2 + 1 + 1 + 3 + 1
GONE = 4


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """Yield a crawl of one round over all pages, whose last job is a reader."""
    conf = settings(tmp_path, fetcher_timelimit_mins="1", fetcher_backoff_exception_delay="0")
    with ScriptedSite() as site, Crawl(conf) as crawl:
        site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /secret\n", content_type="text/plain"))
        for path, reply in PAGES.items():
            site.on(path, reply)
        crawl.inject([site.url(path) for path in PAGES])
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        crawl.parse(batch)
        crawl.updatedb(batch)
        crawl.updatehostdb()
        crawl.stats(exact=True)
        yield crawl


def rows_of(page: str, label: str) -> dict[str, list[str]]:
    """Return the cells of a table by the head of their row; ``label``: its accessible name."""
    (region,) = html.fromstring(page).xpath(f'//div[@aria-label="{label}"]')
    return {row.xpath("string(th)"): row.xpath("td/text()") for row in region.xpath(".//tbody/tr")}


def test_numbers_equal_table_and_job_log(crawl: Crawl, tmp_path: Path) -> None:
    pages = [page for _, page in crawl.pages(fields={WebPage.status, WebPage.retries_since_fetch})]
    status = Counter(CrawlStatus(page.status) for page in pages)
    retried = sum(page.retries_since_fetch > 0 and page.status != CrawlStatus.GONE for page in pages)
    assert (status[CrawlStatus.FETCHED], status[CrawlStatus.GONE], retried) == (4, GONE, RETRIED)
    stats = crawl.table_stats()
    assert stats is not None
    assert stats.rows == len(pages)
    with running(settings(tmp_path, fetcher_server_delay="7")) as server:  # not the delay of the crawl
        client = Client(server)
        first = client.get("/crawl")
        assert f"{len(pages)} pages of 1 host, 21 % fetched." in first
        assert "The last job, updatehostdb, finished" in first
        values = {name: int(cells[0]) for name, cells in rows_of(first, "Values of: Fetch failures").items()}
        assert values == FAILURES
        ((_, outcome),) = rows_of(first, "Values of: Outcome by round").items()
        assert [int(cell) for cell in outcome] == [4, 2, GONE, RETRIED]
        ((_, cells),) = rows_of(client.get("/crawl/rounds"), "Rounds").items()
        generated, *results = (int(cell) for cell in cells[3:9])
        assert (generated, results) == (len(PAGES), [4, 2, GONE, RETRIED, 0])
        check_activity(client.get("/crawl/activity"))
        check_rounds(client.get("/crawl/rounds"), status, crawl)
        check_kinds(client.get("/crawl/hosts"), crawl)
        ((host, cells),) = rows_of(client.get("/crawl/hosts"), "Hosts with the most pages").items()
        assert [int(cell) for cell in cells[:3]] == [len(pages), 4, GONE + RETRIED]
        shown = client.get(f"/crawl/host?name={host}")
        facts = dict(re.findall(r"<dt>(\w+)</dt><dd>(\d+)", shown))
        assert facts == {"Pages": str(len(pages)), "Fetched": "4", "Failed": str(GONE + RETRIED)}
        causes = rows_of(shown, "URLs that were not fetched").values()
        assert sum(int(cells[0]) for cells in causes) == sum(FAILURES.values())
        assert re.search(r"Crawl delay: 0 \w+ \(fetcher.server.delay\)", shown)
        assert re.search(r"http://127\.0\.0\.1:\d+/robots\.txt", shown)
        (fetch,) = (entry for entry in crawl.jobs() if entry.job == "fetch")
        assert rows_of(client.get(f"/crawl/job?id={fetch.id}"), "Configuration")["fetcher.server.delay"] == ["0"]
        lines = html.fromstring(first).xpath('//div[@aria-label="Skipped"]//tbody/tr')
        skipped = [int(line.xpath("string(th)")) for line in lines if line.xpath("string(td)").startswith("URLs ")]
        assert sum(skipped) == 2 + GONE + RETRIED


def check_activity(page: str) -> None:
    """Compare throughput, errors over time and the matrix of failures with the failures of the crawl."""
    outcome = [4, 2, GONE, RETRIED]
    ((_, throughput),) = rows_of(page, "Values of: Throughput").items()
    assert [int(cell) for cell in throughput[1:]] == outcome
    ((_, errors),) = rows_of(page, "Values of: Errors over time").items()
    assert sum(map(int, errors[1:])) == sum(FAILURES.values())
    (region,) = html.fromstring(page).xpath('//div[@aria-label="Failures by host and reason"]')
    (cells,) = [row.xpath("*") for row in region.xpath(".//tbody/tr")]
    heads = [head.xpath("string()") for head in region.xpath(".//thead//th")]
    shown = {head: cell.xpath("string()") for head, cell in zip(heads, cells, strict=True)}
    assert (shown["Host"], int(shown["URLs"])) == ("127.0.0.1", sum(FAILURES.values()))
    assert shown["HTTP 403"] == str(FAILURES["forbidden (403)"])
    counted = [shown[head] for head in heads[2:-1]]
    assert sum(int(count or 0) for count in counted) == sum(FAILURES.values())
    assert "4 fetched, 2 redirected, 4 gone or forbidden, 8 failed" in page
    ((slow, times),) = rows_of(page, "Slowest hosts").items()
    responses = len(PAGES) - 2  # without robots.txt and the connection that was cut
    assert (slow, int(times[1])) == ("127.0.0.1", responses)
    assert f"All {responses} responses: 0 B – 1 KiB." in page


def check_kinds(page: str, crawl: Crawl) -> None:
    """Compare content types, languages and freshness with the fetched rows."""
    fetched = [row for _, row in crawl.pages() if row.status == CrawlStatus.FETCHED]
    types = Counter(row.content_type for row in fetched)
    assert {name: int(count) for name, (count,) in rows_of(page, "Values of: Content type").items()} == types
    languages = Counter((row.metadata.get("language") or b"unknown").decode() for row in fetched)
    assert {name: int(count) for name, (count,) in rows_of(page, "Values of: Language").items()} == languages
    assert re.search(rf"Freshness</figcaption><p class=\"none\">All {len(fetched)} pages: 7 d and more\.", page), page


def check_rounds(page: str, status: Counter[CrawlStatus], crawl: Crawl) -> None:
    """Compare coverage, key numbers and the time of the round with table and job log."""
    redirected = status[CrawlStatus.REDIR_TEMP] + status[CrawlStatus.REDIR_PERM]
    pending = status.total() - status[CrawlStatus.FETCHED] - redirected - status[CrawlStatus.GONE]
    parts = [status[CrawlStatus.FETCHED], redirected, status[CrawlStatus.GONE], pending]
    ((_, cells),) = rows_of(page, "Values of: Coverage by round").items()
    assert [int(cell) for cell in cells] == parts
    tiles = dict(re.findall(r"<dt>([\w ]+)</dt><dd>([\d,]+)", page))
    names = ("Known", "Fetched", "Redirected", "Gone", "Not fetched yet")
    assert [int(tiles[name]) for name in names] == [status.total(), *parts]
    ((_, frontier),) = [*rows_of(page, "Values of: Frontier over time").items()][-1:]
    assert int(frontier[0]) == pending
    (batch,) = CrawlSnapshot.from_crawl(crawl).rounds
    ((_, seconds),) = rows_of(page, "Values of: Time of each round").items()
    assert sum(map(float, seconds)) == pytest.approx((batch.finish_time - batch.start_time) / 1000, abs=0.02)
    durations = {entry.job: entry.finish_time - entry.start_time for entry in batch.entries if entry.finish_time}
    assert float(seconds[1]) == pytest.approx(durations["fetch"] / 1000, abs=0.02)


def test_report_has_same_numbers(crawl: Crawl) -> None:
    rounds = report_data(CrawlSnapshot.from_crawl(crawl))["rounds"]
    assert isinstance(rounds, list)
    (each,) = rounds
    counts = [each[name] for name in ("generated", "fetched", "redirected", "gone", "failed", "not_fetched")]
    assert counts == [len(PAGES), 4, 2, GONE, RETRIED, 0]


def test_queues_of_running_fetch_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_recorder, "MIN_UPDATE_INTERVAL", 0.05)
    monkeypatch.setattr(fetch_monitor, "STATUS_INTERVAL", 0.05)
    conf = settings(tmp_path, fetcher_server_delay="2", fetcher_threads_per_queue="1")
    with ScriptedSite() as site, Crawl(conf) as crawl, ThreadPoolExecutor(1) as pool:
        site.on("/0", Reply(404))
        crawl.inject([site.url(f"/{number}") for number in range(2)])
        batch = crawl.generate().batch_id
        fetching = pool.submit(lambda: Crawl(conf).fetch(batch))
        while not (shown := [each for entry in crawl.jobs() for each in entry.queues if each.last_status]):
            assert not fetching.done()
        with running(settings(tmp_path)) as server:
            ((host, cells),) = rows_of(Client(server).get("/crawl"), "Fetch queues").items()
        (queue,) = shown
        assert (host, queue.queue, queue.active, queue.delay_ms) == ("127.0.0.1", "127.0.0.1", 0, 2000)
        assert queue.waiting == 1
        assert queue.reason == "crawl delay"
        assert queue.last_status in ("200", "404")
        assert queue.next_request > 0
        assert (cells[2], cells[4]) == ("2 s", "crawl delay")
    (entry,) = (each for each in crawl.jobs() if each.job == "fetch")
    assert entry.queues == ()


def test_urls_that_a_round_defers_are_counted(tmp_path: Path) -> None:
    conf = settings(tmp_path, fetcher_max_pages_per_queue="2")
    with ScriptedSite() as site, Crawl(conf) as crawl:
        crawl.inject([site.url(f"/{number}") for number in range(5)])
        crawl.fetch(crawl.generate().batch_id)
        (each,) = CrawlSnapshot.from_crawl(crawl).rounds
        assert (each.generated_count, each.totals.gone_count, each.pending_count) == (5, 2, 3)
