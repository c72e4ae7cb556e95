"""Pages waiting to be stored: a slow commit delays no request, and memory stays bounded."""

from __future__ import annotations

import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from nutch2py.fetcher.engine import feeder, fetch_run
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.output import page_buffer
from nutch2py.fetcher.protocols.fetch_response import FetchResponse, RenderedPage
from tests.fetcher.conftest import Crawl, item
from tests.site.server import Reply, ScriptedSite


def _asked_before_stored(crawl: Crawl, site: ScriptedSite, pages: int, wanted: int, seconds: float) -> int:
    """Fetch ``pages``; return the number requested when ``wanted`` were, or when the first was stored ``seconds``
    after its time."""
    asked, enough, counts = 0, threading.Event(), list[int]()

    def log(line: str) -> None:
        nonlocal asked
        asked += line.startswith("fetching ")
        if asked >= wanted:
            enough.set()

    def sink(_: FetchItem) -> None:
        if not counts:
            enough.wait(seconds)
            counts.append(asked)

    conf = crawl.conf.copy()
    conf.set("fetcher.threads.per.queue", "4")
    fetcher = Fetcher(conf, 20, log=log)
    fetcher.run((item(site.url(f"/{number}")) for number in range(pages)), sink)
    assert asked == pages
    return counts[0]


def test_requests_continue_while_pages_are_stored(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeder, "KEYS_PER_READ", 1000)  # rows are read in the thread that stores: all of them before
    for number in range(700):
        site.on(f"/{number}", Reply(body=b"<p>words", keep=True))
    assert _asked_before_stored(crawl, site, 700, 650, 30) >= 650


def test_pending_bytes_are_limited_by_memory(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_buffer, "MAX_BYTES", 1 << 20)
    for number in range(100):
        site.on(f"/{number}", Reply(body=b"x" * (128 << 10), keep=True))
    assert _asked_before_stored(crawl, site, 100, 100, 0.5) < 40


def test_headers_count_as_pending_bytes(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_buffer, "MAX_BYTES", 1 << 20)
    headers = [(f"X-{number}", "x" * 1000) for number in range(100)]
    for number in range(100):
        site.on(f"/{number}", Reply(body=b"x", headers=headers, keep=True))
    assert _asked_before_stored(crawl, site, 100, 100, 0.5) < 40


def test_all_received_buffers_are_counted() -> None:
    answer = FetchResponse("", content=b"c" * 1000, header_lines=[b"l" * 100] * 10, raw_request=b"r" * 1000)
    assert 3000 <= answer.memory_size < 4000
    answer.rendered = RenderedPage("", original_content=b"r" * 10_000, screenshot=b"p" * 10_000)
    assert 23_000 <= answer.memory_size < 24_000


def test_pending_pages_are_stored_when_fetch_is_stopped(
    site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, given_up = threading.Event(), threading.Event()

    class Watched(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args, **kwargs)
            if getattr(fn, "__name__", "") == "store":
                future.add_done_callback(lambda _: given_up.set())
                waits.set()
            return future

    def items() -> Iterator[FetchItem]:  # in the thread that stores, too
        yield from (item(site.url(f"/{number}")) for number in range(3))
        assert waits.wait(30)
        interrupt_main()
        given_up.wait(30)

    for number in range(3):
        site.on(f"/{number}", Reply(body=b"words", keep=True))
    monkeypatch.setattr(fetch_run, "ThreadPoolExecutor", Watched)
    monkeypatch.setattr(feeder, "KEYS_PER_READ", 3)
    monkeypatch.setattr(page_buffer, "STORE_BATCH", 3)
    conf = crawl.conf.copy()
    conf.set("fetcher.threads.per.queue", "4")
    with pytest.raises(KeyboardInterrupt):
        Fetcher(conf, 4, log=crawl.log.append).run(items(), crawl.sink)
    assert sorted(crawl.pages) == sorted(site.url(f"/{number}") for number in range(3))
