"""A small table with every kind of page, next to a simulated job log and overview of ten million rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_reader import CrawlReader
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Host, Mark, MetadataKey, ProtocolStatusCode, WebPage
from nutch2py.search.search_log.logged_search import LoggedClick, LoggedSearch, new_search_id
from nutch2py.search.search_log.search_log_store import LogRow, open_log_store, write_rows
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_host, reverse_url
from tests.control_room.simulated_job_log import entries, overview

HOST = "www.harbour.example"
DAY = 86_400_000


def crawled(conf: Configuration, pages: int = 60) -> None:
    """Create the tables: one host with pages that link to each other."""
    store, hosts = open_store(conf, WebPage), open_store(conf, Host)
    store.create()
    hosts.create()
    now = int(time.time() * 1000)
    with store.batch() as batch:
        for number in range(pages):
            batch.put(reverse_url(f"http://{HOST}/p{number}"), made(number, now))
    with hosts.batch() as batch:
        for name in (HOST, *(f"h{number:05d}.example" for number in range(pages))):
            host = Host()
            host.metadata["p"], host.metadata["f"], host.metadata["q_cd"] = b"60", b"41", b"2500"
            batch.put(reverse_host(name), host)


def made(number: int, now: int) -> WebPage:
    """Return a row; the status depends on ``number``: gone, failed and so on."""
    page = WebPage()
    page.title, page.score, page.page_rank = f"Tide tables of day {number}", 1 / (number + 1), 0.4
    page.fetch_time, page.fetch_interval = now + (10 - number) * DAY, 30 * 86400
    page.prev_fetch_time, page.content_type, page.batch_id = now - 20 * DAY, "text/html", entries()[3].batch_id
    page.content, page.text = b"<p>tides</p>", "tides"
    page.status = (CrawlStatus.FETCHED, CrawlStatus.FETCHED, CrawlStatus.GONE, CrawlStatus.UNFETCHED, 0)[number % 5]
    code = (ProtocolStatusCode.SUCCESS, ProtocolStatusCode.SUCCESS, ProtocolStatusCode.NOTFOUND,
            ProtocolStatusCode.EXCEPTION)[min(number % 5, 3)]  # fmt: skip
    page.protocol_status = ProtocolStatus(code, ("connection refused",) if number % 5 == 3 else ())
    page.retries_since_fetch = 2 if number % 5 == 3 else 0
    page.parse_status = ParseStatus(1, 0)
    page.inlinks = {f"http://{HOST}/p{other}": f"day {other}" for other in range(min(number, 120))}
    page.outlinks = {f"http://other{other}.example/": "elsewhere" for other in range(3)}
    page.markers[Mark.INJECT] = "y"
    page.markers[Mark.UPDATEDB] = page.markers[Mark.INDEX] = entries()[3].batch_id
    page.markers[Mark.DISTANCE] = str(number % 7)
    if number == 7:
        page.markers[Mark.GENERATE] = entries()[0].batch_id
        page.metadata[MetadataKey.DUPLICATE] = b"00ff example.harbour.www:http/p1"
    return page


def log_searches(conf: Configuration, queries: Sequence[str]) -> None:
    """Log each query without hits, without clicks, and with a click on its second hit."""
    rows = []
    for query in queries:
        for suffix, total, position in ((" none", 0, 0), (" unclicked", 20, 0), ("", 20, 2)):
            search_id, ids = new_search_id(), [f"org.a:http/{number}" for number in range(min(total, 10))]
            search = LoggedSearch(query=query + suffix, total=total, start=0, shown=len(ids), ids=ids)
            rows.append(LogRow(search_id, 0, search))
            if position:
                rows.append(LogRow(search_id, position, LoggedClick(position=position, dwell_ms=9000)))
    store = open_log_store(conf)
    store.create()
    write_rows(store, rows)


def simulate(put: Callable[[Any, str, Any], object], log: Sequence[JobEntry] | None = None) -> None:
    """Make all readers report ten million rows; ``put`` sets an attribute as ``monkeypatch.setattr`` does."""
    given = list(entries() if log is None else log)

    def jobs(_: CrawlReader, limit: int = 100, before: str | None = None) -> list[JobEntry]:
        return [each for each in given if before is None or each.id < before][:limit]

    def job(_: CrawlReader, entry_id: str) -> JobEntry | None:
        return next((each for each in given if each.id == entry_id), None)

    seen = overview()
    put(CrawlReader, "jobs", jobs)
    put(CrawlReader, "job", job)
    put(CrawlReader, "table_stats", lambda _: next(each.table_stats for each in given if each.table_stats))
    put(CrawlReader, "overview", lambda _: seen)
