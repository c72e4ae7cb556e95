"""The end of a fetch: hosts that hold it are left for a later round, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_reader import CrawlReader
from nutch2py.fetcher.engine import fetch_monitor
from nutch2py.fetcher.engine.fetch_tail import HELD_COUNTER, TAIL_COUNTER, FetchTail
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.records.webpage import WebPage
from tests.fetcher.conftest import loopback
from tests.fetcher.test_queues import add, make
from tests.site.server import Reply, ScriptedSite

FIELDS = frozenset({WebPage.fetch_time, WebPage.status, WebPage.retries_since_fetch})


def test_host_with_failing_robots_txt_is_left_for_a_later_round(
    site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_monitor, "STATUS_INTERVAL", 0.1)
    conf = loopback(
        tmp_path,
        storage_data_store=f"embedded:{tmp_path / 'crawldata'}",
        http_robots_503_defer_visits_delay="40000",
        http_robots_503_defer_visits_retries="1",
    )
    for name in "abc":
        for number in range(3):
            site.on(f"{name}.test/{number}", Reply(body=b"<p>words"))
    site.on("c.test/robots.txt", Reply(500))
    held = {site.url(f"/{number}", "c.test") for number in range(3)}
    with Crawl(conf) as crawl:
        crawl.inject([site.url(f"/{number}", f"{name}.test") for name in "abc" for number in range(3)])
        counters = fetch_round(crawl)
        assert (counters["SUCCESS"], counters[HELD_COUNTER]) == (6, 3)
        left = {url for url, page in crawl.pages(fields=FIELDS) if is_new(page)}
        assert left == held
        assert held_hosts(crawl) == {f"{HELD_COUNTER} c.test": 3}
        site.on("c.test/robots.txt", Reply(404))
        assert fetch_round(crawl)["SUCCESS"] == 3


def fetch_round(crawl: Crawl) -> dict[str, int]:
    batch = crawl.generate().batch_id
    counters = crawl.fetch(batch).group("FetcherStatus")
    crawl.parse(batch)
    crawl.updatedb(batch)
    return counters


def is_new(page: WebPage) -> bool:
    return page.status <= 1 and page.retries_since_fetch == 0


def held_hosts(crawl: CrawlReader) -> dict[str, int]:
    return dict(next(each for each in crawl.jobs() if each.job == "fetch").counters["fetch_hosts"])


def make_tail(conf: Configuration, hosts: int, **properties: object) -> tuple[FetchTail, FetchState, object]:
    """Return a tail over ``hosts`` queues of two pages, of which those but the first are complete."""
    queues, clock = make(conf, **properties)
    for number in range(hosts):
        add(queues, f"h{number}", f"http://h{number}.test/1", f"http://h{number}.test/2")
    state = FetchState(FetchOptions.from_conf(conf, 1), lambda _: None, queues)
    tail = FetchTail(conf, state, lambda: True, queues.close_queue_by_id, lambda: None)
    for number in range(1, hosts):
        queues.close_queue_by_id(f"h{number}")
    return tail, state, clock


@pytest.mark.parametrize(
    ("hosts", "delay", "limit", "dropped"),
    [(2, 31, 30, 2), (2, 29, 30, 0), (1, 31, 30, 0), (2, 3000, -1, 0), (2, 1, 0, 2)],
)
def test_only_held_hosts_beside_complete_ones_are_left(
    conf: Configuration, hosts: int, delay: float, limit: int, dropped: int
) -> None:
    tail, state, _ = make_tail(conf, hosts, fetcher_hold_seconds=limit, fetcher_tail_seconds=-1)
    state.queues.delay_queue(FetchItem("", "", WebPage(), "h0"), delay)
    tail.check()
    assert state.report.counters[HELD_COUNTER] == dropped
    assert state.queues.total_size == 2 - dropped


def test_host_is_not_held_by_its_own_delay_or_an_active_request(conf: Configuration) -> None:
    tail, state, _ = make_tail(conf, 2, fetcher_server_delay=3000)
    item = state.queues.get()
    assert item is not None
    state.queues.finish(item)
    tail.check()
    state.queues.delay_queue(item, 9000)
    state.active_requests = 1
    tail.check()
    assert not state.report.counters


@pytest.mark.parametrize(("hosts", "dropped"), [(10, 2), (9, 0)])
def test_last_hosts_have_a_limited_time(conf: Configuration, hosts: int, dropped: int) -> None:
    tail, state, clock = make_tail(conf, hosts, fetcher_tail_seconds=60)
    clock.now += 100  # type: ignore[attr-defined]
    tail.check()
    clock.now += 99  # type: ignore[attr-defined]
    tail.check()
    assert state.queues.total_size == 2
    clock.now += 2  # type: ignore[attr-defined]
    tail.check()
    assert state.report.counters[TAIL_COUNTER] == dropped
