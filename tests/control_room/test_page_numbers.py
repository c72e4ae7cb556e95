"""Numbers of the control room: each equals the table and the job log of a crawl with every kind of result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html

from nutch2py import Crawl
from nutch2py.control_room.report import CrawlSnapshot, report_data
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
        ((host, cells),) = rows_of(client.get("/crawl/hosts"), "Hosts with the most pages").items()
        assert [int(cell) for cell in cells[:3]] == [len(pages), 4, GONE + RETRIED]
        shown = client.get(f"/crawl/host?name={host}")
        facts = dict(re.findall(r"<dt>(\w+)</dt><dd>(\d+)", shown))
        assert facts == {"Pages": str(len(pages)), "Fetched": "4", "Failed": str(GONE + RETRIED)}
        assert re.search(r"Crawl delay: 0 \w+ \(fetcher.server.delay\)", shown)
        assert re.search(r"http://127\.0\.0\.1:\d+/robots\.txt", shown)
        (fetch,) = (entry for entry in crawl.jobs() if entry.job == "fetch")
        assert rows_of(client.get(f"/crawl/job?id={fetch.id}"), "Configuration")["fetcher.server.delay"] == ["0"]
        skipped = re.findall(r'<th scope="row">(\d+)</th><td class="text grow">URLs ', first)
        assert sum(map(int, skipped)) == 2 + GONE + RETRIED


def test_report_has_same_numbers(crawl: Crawl) -> None:
    rounds = report_data(CrawlSnapshot.from_crawl(crawl))["rounds"]
    assert isinstance(rounds, list)
    (each,) = rounds
    counts = [each[name] for name in ("generated", "fetched", "redirected", "gone", "failed", "not_fetched")]
    assert counts == [len(PAGES), 4, 2, GONE, RETRIED, 0]


def test_urls_that_a_round_defers_are_counted(tmp_path: Path) -> None:
    conf = settings(tmp_path, fetcher_max_pages_per_queue="2")
    with ScriptedSite() as site, Crawl(conf) as crawl:
        crawl.inject([site.url(f"/{number}") for number in range(5)])
        crawl.fetch(crawl.generate().batch_id)
        (each,) = CrawlSnapshot.from_crawl(crawl).rounds
        assert (each.generated_count, each.totals.gone_count, each.pending_count) == (5, 2, 3)
