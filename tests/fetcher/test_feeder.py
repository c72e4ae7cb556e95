"""The feeder: bounded memory, every page once and in order, and no host that blocks the others."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.engine.feeder import QueueFeeder, RowSource
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.queues import spill as spill_module
from nutch2py.fetcher.queues.fetch_queues import FetchItemQueues
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.queues.spill import Spill
from nutch2py.records.webpage import WebPage
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.fetcher.conftest import item
from tests.site.server import ScriptedSite

CAPACITY = 100


class Table:
    """Rows by key; counts reads. ``gone``: predicate of URLs with deleted rows."""

    def __init__(self, urls: Iterable[str], gone: Callable[[str], bool] = lambda _: False) -> None:
        self.urls, self.gone = list(urls), gone
        self.named = self.read = self.reads = 0

    def rows(self) -> RowSource:
        return RowSource(self._names(), self.read_rows)

    def _names(self) -> Iterator[tuple[str, str]]:
        for url in self.urls:
            self.named += 1
            yield reverse_url(url), url

    def read_rows(self, keys: Sequence[str]) -> list[FetchItem]:
        self.reads += 1
        self.read += len(keys)
        urls = [unreverse_url(key) for key in keys]
        return [FetchItem(key, url, WebPage()) for key, url in zip(keys, urls, strict=True) if not self.gone(url)]


class Run:
    """A run without a network: requests finish when ``ends`` returns true for their host."""

    def __init__(
        self,
        table: Table,
        capacity: int = CAPACITY,
        deadline: float = float("inf"),
        source: RowSource | None = None,
        **properties: str,
    ) -> None:
        values = {"fetcher.server.delay": "0", "http.agent.name": "probe"}
        conf = Configuration.load(overrides=values | {name.replace("_", "."): v for name, v in properties.items()})
        self.table, self.now = table, 0.0
        self.queues = FetchItemQueues(conf, lambda: self.now)
        self.state = FetchState(FetchOptions(threads=10, deadline=deadline), lambda _: None, self.queues)
        self.pool = ThreadPoolExecutor(1)
        self.rejected: list[str] = []
        self.feeder = QueueFeeder(
            self.state,
            source or table.rows(),
            capacity,
            QueueIdResolver(conf),
            None,
            self.pool,
            lambda each, _: self.rejected.append(each.url),
            self._added,
        )
        self.most = 0
        self.taken: dict[str, list[str]] = defaultdict(list)

    def _added(self) -> None:
        self.most = max(self.most, self.queues.total_size)

    async def until(self, ends: Callable[[str], bool], enough: Callable[[], bool]) -> None:
        """Take ready items and finish them until ``enough``, or until all are done."""
        feeding = asyncio.ensure_future(self.feeder.feed())
        stuck = time.monotonic() + 60
        try:
            while not enough():
                assert time.monotonic() < stuck, f"{self.queues.total_size} wait, {self.table.named} are named"
                taken = self.queues.get()
                if taken is not None:
                    self.taken[taken.queue_id].append(taken.url)
                    if ends(taken.queue_id):
                        self.queues.finish(taken)
                        self.feeder.on_request_done(taken)
                elif feeding.done():
                    feeding.result()
                    return
                else:
                    self.feeder.wake()
                await asyncio.sleep(0)
        finally:
            feeding.cancel()
            self.feeder.close()
            self.pool.shutdown()

    def count(self, kind: str) -> int:
        return sum(len(urls) for host, urls in self.taken.items() if host.startswith(kind))


def mixed(giants: int, pages: int, honest: int, each: int) -> list[str]:
    """Yield the pages of some large and many small hosts, the large ones first where possible."""
    urls = [f"http://giant{number}.test/{page}" for page in range(pages) for number in range(giants)]
    small = [f"http://honest{number}.test/{page}" for page in range(each) for number in range(honest)]
    half = len(urls) // 2
    return [*urls[:half], *small[: len(small) // 2], *urls[half:], *small[len(small) // 2 :]]


@pytest.mark.parametrize("giants", [1, 3, 20, CAPACITY // 2])
def test_silent_hosts_do_not_block_others(giants: int) -> None:
    table = Table(mixed(giants, 20_000 // giants, 150, 8))
    run = Run(table)
    asyncio.run(run.until(lambda host: host.startswith("honest"), lambda: run.count("honest") == 150 * 8))
    assert run.count("honest") == 150 * 8
    assert run.count("giant") == giants  # all of them hang
    assert run.most <= CAPACITY
    assert table.read <= CAPACITY + giants + 150 * 8  # rows of spilled keys are not read


@pytest.mark.parametrize("giants", [0, 1, 3, 40, 3 * CAPACITY])
def test_every_page_is_fed_once_in_host_order(giants: int) -> None:
    urls = mixed(giants, 6000 // max(1, giants), 60, 20)
    table = Table(urls)
    run = Run(table)
    asyncio.run(run.until(lambda _: True, lambda: False))
    expected: dict[str, list[str]] = defaultdict(list)
    for url in urls:
        expected[url.split("/")[2]].append(url)
    assert run.taken == expected
    assert run.most <= CAPACITY
    assert not run.state.is_feeding
    assert table.reads < len(urls) / (5 if giants < CAPACITY else 0.9)  # several rows in one read


def test_missing_rows_do_not_end_others() -> None:
    table = Table(mixed(2, 3000, 10, 10), gone=lambda url: int(url.rsplit("/", 1)[1]) % 1000 > 5)
    run = Run(table)
    asyncio.run(run.until(lambda _: True, lambda: False))
    assert Counter({host[:5]: run.count(host[:5]) for host in run.taken}) == {"giant": 2 * 18, "hones": 10 * 6}


def test_spilled_items_are_dropped_when_queue_closes() -> None:
    run = Run(Table(mixed(1, 3000, 10, 10)))

    def ends(host: str) -> bool:
        if host.startswith("giant") and run.count("giant") == 200:
            run.state.report.counters["dropped"] += run.queues.close_queue(FetchItem("", "", WebPage(), host))
        return True

    asyncio.run(run.until(ends, lambda: False))
    counters = run.state.report.counters
    assert (run.count("giant"), run.count("honest")) == (200, 100)
    assert counters["dropped"] + counters["AboveExceptionThresholdInQueue"] == 2800


def test_host_over_page_limit_is_not_spilled() -> None:
    table = Table(mixed(1, 3000, 10, 10))
    run = Run(table, fetcher_max_pages_per_queue="90")
    asyncio.run(run.until(lambda _: True, lambda: False))
    assert (run.count("giant"), run.count("honest")) == (90, 100)
    assert run.state.report.counters["AboveMaxPagesInQueue"] == 2910
    assert table.read <= 90 + 100 + CAPACITY


@pytest.mark.parametrize("limit", ["HitByTimeLimit-QueueFeeder", "hitByThrougputThreshold"])
@pytest.mark.parametrize("is_reading", [False, True])
def test_limit_counts_spilled_and_loading_items(limit: str, is_reading: bool) -> None:
    table = Table(mixed(1, 3000, 0, 0))
    reading, over = threading.Event(), threading.Event()
    read, taken = table.read_rows, 0

    def wait_for_the_limit(keys: Sequence[str]) -> list[FetchItem]:
        if is_reading and table.reads > 3:
            reading.set()
            assert over.wait(60)
        return read(keys)

    def look() -> bool:
        nonlocal taken
        if not over.is_set() and (reading.is_set() if is_reading else run.count("giant") == 100):
            if limit == "hitByThrougputThreshold":
                run.state.is_stopped = True
            else:
                object.__setattr__(run.state.options, "deadline", 0.0)
            taken = run.count("giant")
            run.state.report.counters["dropped"] += run.queues.drop_all()
            over.set()
            run.feeder.wake()
        return False

    table.read_rows = wait_for_the_limit  # type: ignore[method-assign]
    run = Run(table, deadline=time.time() + 3600)
    asyncio.run(run.until(lambda _: True, look))
    counters = run.state.report.counters
    assert taken == run.count("giant") > 0
    assert counters["dropped"] + counters[limit] == 3000 - taken


def test_invalid_url_is_rejected_at_any_position() -> None:
    table = Table([])
    bad = "http://" + "h" * 300 + ".test/"
    names = [*((f"k{n}", f"http://giant0.test/{n}") for n in range(500)), ("bad", bad)]
    rows = RowSource(iter(names), lambda keys: [FetchItem(key, dict(names)[key], WebPage()) for key in keys])
    table.rows = lambda: rows  # type: ignore[method-assign]
    run = Run(table)
    asyncio.run(run.until(lambda _: True, lambda: False))
    assert (run.rejected, run.count("giant")) == ([bad], 500)


class _Enough(Exception):
    pass


def test_other_hosts_are_fetched_while_one_waits(site: ScriptedSite, fetch_conf: Configuration) -> None:
    fetch_conf.set("fetcher.queue.depth.multiplier", "2")
    fetch_conf.set("fetcher.server.delay", "3600")
    urls = [
        *(site.url(f"/{number}", "a.test") for number in range(2000)),
        *(site.url("/", f"{c}.test") for c in "bcdefg"),
    ]
    table, done = Table(urls), set()

    def sink(found: FetchItem) -> None:
        done.add(found.url)
        if len(done) == 7:
            raise _Enough

    options = FetchOptions(threads=4, deadline=time.time() + 60)  # only when it fails
    with pytest.raises(_Enough):
        Fetcher(fetch_conf, options=options, log=lambda _: None).run(table.rows(), sink)
    assert done == {urls[0], *urls[2000:]}
    assert table.read <= 2 * 8 + 6


def test_available_items_are_not_prefetched(fetch_conf: Configuration) -> None:
    taken = 0

    def items() -> Iterator[FetchItem]:
        nonlocal taken
        for number in range(5000):
            taken += 1
            yield item(f"http://a.test:1/{number}")

    run = Run(Table([]), source=RowSource.from_items(items()))
    asyncio.run(run.until(lambda _: False, lambda: run.queues.total_size == CAPACITY - 1))
    assert taken == CAPACITY


# -- keys on disk


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 64]))
def test_spilled_keys_keep_order(seed: int, chunk: int) -> None:
    draw = random.Random(seed)
    expected: dict[str, deque[str]] = defaultdict(deque)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill_module, "CHUNK_KEYS", chunk)
        keys = Spill()
        for number in range(400):
            queue = f"q{draw.randrange(4)}"
            what = draw.random()
            if what < 0.7:
                key = draw.choice(["", "\n", "\0", "é", "\udcff", "k" * 9000]) + str(number)
                keys.append(queue, key)
                expected[queue].append(key)
            elif what < 0.8:
                keys.prepend(queue, [f"b{number}", f"c{number}"])
                expected[queue].extendleft([f"c{number}", f"b{number}"])
            elif what < 0.98:
                most = draw.randrange(12)
                assert keys.take(queue, most) == [
                    expected[queue].popleft() for _ in range(min(most, len(expected[queue])))
                ]
            else:
                assert keys.drop(queue) == len(expected.pop(queue, ()))
            assert keys.total_keys == sum(map(len, expected.values()))
            assert set(keys.queue_ids) == {name for name, left in expected.items() if left}
        keys.close()


def test_full_disk_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other open files, such as WARC files, are closed after the keys; closing these again raises nothing."""
    monkeypatch.setattr("tempfile.TemporaryFile", lambda prefix: Path("/dev/full").open("w+b"))  # noqa: SIM115
    keys = Spill()
    with pytest.raises(OSError, match="No space"):
        keys.prepend("q", [f"key-{number}" for number in range(100_000)])
    keys.close()


def test_spilled_keys_use_no_memory() -> None:
    keys = Spill()
    for number in range(200_000):
        keys.append(f"q{number % 3}", f"org.example.h{number % 3}:http/{number}")
    held = sum(len(each.head) + len(each.tail) for each in keys.queues.values())
    places = sum(len(each.chunk_offsets) for each in keys.queues.values())
    assert held <= 3 * 64
    assert places <= 200_000 / 64
    assert keys.take("q1", 2) == ["org.example.h1:http/1", "org.example.h1:http/4"]
    keys.close()
