"""Slow servers block neither other requests nor the end of a fetch; tiny chunks use no extra memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from itertools import repeat

import pytest

from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.protocols.response_body import BodyDecoder
from tests.fetcher.conftest import Crawl
from tests.site.server import Reply, ScriptedSite

PAGES = 5
SLOW = ("b.test", "c.test", "d.test")


def until_asked(site: ScriptedSite, path: str, pieces: int) -> Iterator[bytes]:
    """Continue until a path is requested, or until so many chunks are sent."""
    for _ in range(pieces):
        if site.gets(path):
            return
        yield b"x"


@pytest.mark.parametrize(("most", "waits"), [("200", False), ("0", True), ("1", True)])
def test_long_request_releases_its_thread(site: ScriptedSite, crawl: Crawl, most: str, waits: bool) -> None:
    last = f"/{PAGES - 1}"
    for page in range(PAGES):
        site.on(f"/{page}", Reply(body=b"<p>words"))
    for host in SLOW:  # if none waits for another, they continue until the last honest page is requested
        pieces = until_asked(site, last, 20 if waits else 600)
        site.on(f"{host}/slow", Reply(length=False, pieces=pieces, pause=0.05))
    urls = [site.url("/slow", host) for host in SLOW] + [site.url(f"/{page}", "a.test") for page in range(PAGES)]
    crawl(*urls, threads=2, fetcher_threads_slow=most, fetcher_threads_slow_after="0.2")
    last_request = next(seen.began for seen in site.seen if seen.path == last)
    slow = [seen for seen in site.seen if seen.path == "/slow"]
    assert len(slow) == len(SLOW)
    if waits:
        assert min(seen.ended for seen in slow) < last_request
    else:
        assert all(seen.ended > last_request for seen in slow)
    assert {page.status for page in crawl.pages.values()} == {2}


def test_body_in_tiny_chunks_uses_memory_of_its_bytes() -> None:
    pieces = [bytes((n & 255, n >> 8 & 255)) for n in range(1 << 16)]
    tracemalloc.start()
    try:
        body = BodyDecoder("", 1 << 20)
        for piece in pieces:
            body.feed(bytes(bytearray(piece)))  # a buffer of its own each, as libcurl passes it
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body.content() == b"".join(pieces)
    assert size < 2 * len(body.content())


def test_time_limit_ends_running_requests(site: ScriptedSite, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow page stays due, and earlier pages are kept."""
    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_monitor.STATUS_INTERVAL", 0.05)
    monkeypatch.setattr("nutch2py.fetcher.engine.fetch_limits.GRACE_SECONDS", 0.2)
    site.on("/slow", Reply(length=False, pieces=repeat(b"x"), pause=0.05))
    site.on("/robots-drip", Reply(body=b"<p>words"))
    site.on("c.test/robots.txt", Reply(length=False, pieces=repeat(b"x"), pause=0.05))
    site.on("/good", Reply(body=b"<p>words"))
    good = site.url("/good", "a.test")
    urls = [good, site.url("/slow", "b.test"), site.url("/robots-drip", "c.test"), site.url("/slow", "d.test")]
    options = FetchOptions(threads=2, deadline=time.time() + 1)
    conf = crawl.conf.copy()
    conf.set("http.time.limit", "300")
    crawl.run(conf, *urls, options=options)
    assert set(crawl.pages) == {good}
    assert crawl.report.hit_by_time_limit == 3
