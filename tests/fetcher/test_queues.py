from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.engine.queue_backoff import QueueBackoff
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.records.webpage import WebPage
from tests.growth import assert_linear
from tests.process_memory import peak_megabytes


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def make(conf: Configuration, **properties: object) -> tuple[FetchItemQueues, Clock]:
    for name, value in properties.items():
        conf.set(name.replace("_", "."), str(value))
    clock = Clock()
    return FetchItemQueues(conf, clock), clock


def add(queues: FetchItemQueues, queue: str, *names: str) -> None:
    for name in names:
        queues.add(FetchItem(name, name, WebPage(), queue))


def taken(queues: FetchItemQueues) -> list[str]:
    found = []
    while (item := queues.get()) is not None:
        found.append(item.url)
    return found


def test_one_page_at_a_time_and_delay_from_end(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=5)
    add(queues, "a", "a1", "a2")
    first = queues.get()
    assert first is not None
    clock.now += 60
    assert queues.get() is None  # still in progress
    queues.finish(first)
    clock.now += 4.9
    assert queues.get() is None
    assert queues.next_ready_time() == 165.0
    clock.now += 0.2
    assert taken(queues) == ["a2"]


def test_item_without_request_causes_no_delay(conf: Configuration) -> None:
    queues, _ = make(conf, fetcher_server_delay=5)
    add(queues, "a", "a1", "a2")
    first = queues.get()
    assert first is not None
    queues.finish(first, asap=True)
    assert taken(queues) == ["a2"]


def test_several_threads_use_min_delay(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=50, fetcher_server_min_delay=2, fetcher_threads_per_queue=2)
    add(queues, "a", "a1", "a2", "a3", "a4")
    one, two = queues.get(), queues.get()
    assert one is not None
    assert two is not None
    assert queues.get() is None
    queues.finish(one)
    assert queues.get() is None
    clock.now += 2
    assert taken(queues) == ["a3"]


def test_emptied_queue_keeps_delay(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=5)
    add(queues, "a", "a1")
    first = queues.get()
    assert first is not None
    queues.finish(first)
    clock.now += 3
    assert queues.get() is None
    add(queues, "a", "a2")
    assert queues.get() is None
    clock.now += 2
    assert taken(queues) == ["a2"]


def test_empty_queue_is_removed_after_delay(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=5)
    add(queues, "a", "a1")
    first = queues.get()
    assert first is not None
    queues.finish(first)
    clock.now += 6
    assert queues.get() is None
    assert queues.next_ready_time() is None
    assert not queues.queues


def test_queues_are_served_round_robin(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=0)
    add(queues, "a", "a1", "a2")
    add(queues, "b", "b1", "b2")
    order = []
    for _ in range(4):
        item = queues.get()
        assert item is not None
        order.append(item.url)
        clock.now += 0.1
        queues.finish(item)
    assert order == ["a1", "b1", "a2", "b2"]


def test_too_many_exceptions_close_queue(conf: Configuration) -> None:
    queues, _ = make(conf, fetcher_server_delay=0, fetcher_max_exceptions_per_queue=2)
    add(queues, "a", "a1", "a2", "a3", "a4")
    first = queues.get()
    assert first is not None
    backoff = QueueBackoff(conf, queues, FetchReport(), math.inf)
    assert backoff.count_exception(first) == 0
    assert backoff.count_exception(first) == 3
    assert queues.total_size == 0
    queues.finish(first)
    assert queues.add(FetchItem("a5", "a5", WebPage(), "a")) == "AboveExceptionThresholdInQueue"
    assert queues.get() is None


def test_deferred_queue_waits_and_is_dropped_at_end(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=0)
    add(queues, "a", "a1", "a2")
    for _ in range(2):
        item = queues.get()
        assert item is not None
        assert queues.defer(item, 300, retries=2) == 0
        assert queues.get() is None
        clock.now += 301
    item = queues.get()
    assert item is not None
    assert item.url == "a1"
    assert queues.defer(item, 300, retries=2) == 2
    assert queues.total_size == 0


def test_host_settings_are_applied(conf: Configuration) -> None:
    queues = FetchItemQueues(conf, Clock())
    queue = queues.get_queue("a", HostFetchSettings(3, 1500, 250))
    assert (queue.max_threads, queue.crawl_delay, queue.min_crawl_delay) == (3, 1.5, 0.25)
    assert queues.get_queue("b").max_threads == 1


def test_item_time_is_independent_of_queue_count(conf: Configuration) -> None:
    queues, _ = make(conf, fetcher_server_delay=1000)
    for number in range(5_000):
        add(queues, f"h{number}", f"{number}a", f"{number}b")
    handled = 0
    while (item := queues.get()) is not None:
        queues.finish(item)
        handled += 1
    assert handled == 5_000
    assert queues.scheduled_count == 5_000


def test_item_time_is_independent_of_queue_length(conf: Configuration) -> None:
    def work(pages: list[FetchItem]) -> None:
        queues, _ = make(conf, fetcher_server_delay=0, fetcher_max_pages_per_queue=-1)
        for item in pages:
            queues.add(item)
        assert queues.total_size == len(pages)
        seen = []
        while (item := queues.get()) is not None:
            if len(seen) % 3 == 1:
                queues.defer(item, 0, len(pages))
                item = queues.get()
                assert item is not None
            seen.append(item.url)
            queues.finish(item)
        assert seen == [item.url for item in pages]

    row = WebPage()
    shape = {"one queue": lambda length: [FetchItem(f"{n}", f"{n}", row, "h") for n in range(length)]}
    assert_linear(work, shape, 60_000)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("byHost", "www.example.org"), ("byDomain", "example.org"), ("byIP", "127.0.0.9")],
)
def test_queue_key_of_url_depends_on_mode(conf: Configuration, tmp_path: object, mode: str, expected: str) -> None:
    hosts = f"{tmp_path}/hosts"
    with open(hosts, "w", encoding="utf-8") as out:  # noqa: PTH123
        out.write("127.0.0.9 www.example.org\n")
    conf.set("fetcher.queue.mode", mode)
    conf.set("http.hosts.file", hosts)
    assert QueueIdResolver(conf).get_queue_id("http://WWW.example.org:8080/x") == expected


def test_unknown_mode_is_rejected(conf: Configuration) -> None:
    conf.set("fetcher.queue.mode", "byColour")
    with pytest.raises(ConfigurationError, match="byHost"):
        QueueIdResolver(conf)


def _fill(number: int) -> tuple[int, int, float]:
    """Fetch one page of each queue and add another; return queues held, pages taken, and memory in MB."""
    clock, page, conf = Clock(), WebPage(), Configuration.load()
    queues = FetchItemQueues(conf, clock)
    backoff = QueueBackoff(conf, queues, FetchReport(), math.inf)
    for n in range(number):
        queues.add(FetchItem(f"{n}a", f"http://h{n}.example.org/a", page, f"h{n}.example.org"))
        item = queues.get()
        assert item is not None
        backoff.count_exception(item)
        queues.finish(item)
    held = len(queues.queues)
    for n in range(number):
        queues.add(FetchItem(f"{n}b", f"http://h{n}.example.org/b", page, f"h{n}.example.org"))
    assert queues.get() is None  # every server is still to be left alone
    clock.now += 3600
    return held, len(taken(queues)), peak_megabytes()


def test_many_stateful_queues_use_bounded_memory() -> None:
    number = 60_000
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        held, pages, memory = pool.submit(_fill, number).result(120)
    print(f"{memory:.0f} MB for {number:,} queues")
    assert held == pages == number
    assert memory < 110  # 37 MB without queues


def test_mostly_failing_or_slow_server_is_dropped(conf: Configuration) -> None:
    queues, clock = make(conf, fetcher_server_delay=0)
    report = FetchReport()
    conf.set("fetcher.max.trouble.per.queue", "100")
    backoff = QueueBackoff(conf, queues, report, math.inf)
    add(queues, "bad", *(f"b{n}" for n in range(50)))
    add(queues, "good", *(f"g{n}" for n in range(50)))
    for number in range(40):
        for item in (queues.get(), queues.get()):
            if item is None:
                continue
            queues.finish(item)
            if item.queue_id == "bad" or number % 10 == 9:  # the good one is slow now and then
                backoff.add_slow_seconds(item, 15.0)
        clock.now += 16
    assert report.counters == {"AboveMaxTroubleInQueue": 50 - 7}
    assert report.host_failures.counts == report.counters
    assert queues.add(FetchItem("b", "b", WebPage(), "bad")) == "AboveExceptionThresholdInQueue"
    assert len(taken(queues)) > 0


def test_unlimited_hosts_use_bounded_memory(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.fetcher.queues.fetch_queues.MAX_IDLE_QUEUES", 100)
    monkeypatch.setattr("nutch2py.fetcher.queues.fetch_queues.MAX_COUNTED_QUEUES", 200)
    queues, clock = make(
        conf, fetcher_server_delay=0, fetcher_max_exceptions_per_queue=2, fetcher_max_pages_per_queue=3
    )
    backoff = QueueBackoff(conf, queues, FetchReport(), math.inf)
    add(queues, "large", "l1", "l2")
    for number in range(1000):
        add(queues, f"h{number}", "a", "b")
        for _ in range(3):
            item = queues.get()
            if item is not None:
                queues.finish(item)
                if item.queue_id != "large":
                    backoff.count_exception(item, is_server_failure=number % 2 == 0)
        clock.now += 6
        queues.get()
    assert len(queues.queues) <= 110
    assert len(queues.idle_queue_ids) <= 100
    assert len(queues.page_counts) <= 200
    assert [queues.add(FetchItem("l", "l", WebPage(), "large")) for _ in range(2)] == ["", "AboveMaxPagesInQueue"]


def test_unresolvable_host_has_no_queue(conf: Configuration) -> None:
    with pytest.raises(ValueError, match="a host of 400 characters"):
        QueueIdResolver(conf).get_queue_id(f"http://{'a.' * 200}/")
