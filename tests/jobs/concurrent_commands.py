"""Runs commands of one crawl concurrently, each as a process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry
from nutch2py.mapreduce.lock_check import LOCKS_KEY, LockHolder, decode_holders
from nutch2py.records.cells import encode_float
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, MetadataKey, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.counted_kills import strike
from tests.jobs import crawl
from tests.small_http import Answering, QuietServer

A, B = "a-1", "b-2"


def holders(lists: BatchListStore) -> list[LockHolder]:
    row = lists.store.get(LOCKS_KEY, {DerivedRow.data})
    return decode_holders(row.data if row is not None else None)


def wait_for(true: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def make_batch(conf: Configuration, batch: str, *urls: str, **marks: str) -> None:
    """Put a batch into the table, its list and its state."""
    store, lists = open_store(conf, WebPage), BatchListStore(conf)
    store.create()
    lists.set_state(batch, BatchState.GENERATED, len(urls))
    with store.batch() as rows, lists.store.batch() as entries:
        for number, url in enumerate(urls):
            page = WebPage()
            page.fetch_interval = 1000
            page.markers = {Mark.DISTANCE: "0", Mark.GENERATE: batch, **marks}
            rows.put(reverse_url(url), page)
            put_list_entry(entries, batch, "00000", number, reverse_url(url))


class SlowPages(Answering):
    """Answers robots.txt at once, and pages when it is let."""

    def serve(self) -> None:
        if self.path != "/robots.txt":
            self.server.asked.append(self.path)  # type: ignore[attr-defined]
            self.server.let.wait(60)  # type: ignore[attr-defined]
        body = b"" if self.path == "/robots.txt" else b"<html><title>T</title><p>text</p></html>"
        self.answer(200, body)


class SlowSite(QuietServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SlowPages)
        self.asked: list[str] = []
        self.let = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def slow_site() -> Iterator[SlowSite]:
    """Serve pages that come when ``let`` is set."""
    server = SlowSite()
    try:
        yield server
    finally:
        server.let.set()
        server.shutdown()
        server.server_close()


class Commands:
    """Commands over one crawl, as processes."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        for name, value in crawl.SETTINGS.items():
            conf.set(name, value)
        conf.set("http.timeout", 300_000)  # a held request stays held on a slow machine, too

    def start(self, *words: str) -> subprocess.Popen[str]:
        names = {*crawl.SETTINGS, "storage.data.store", "storage.crawl.id", "index.embedded.path", "http.timeout"}
        options = [word for name in names for word in ("-D", f"{name}={self.conf.get(name, '')}")]
        command = [sys.executable, "-m", "nutch2py.cli", *words, *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        _, errors = process.communicate(timeout=120)
        return process.returncode, errors


def beside_a_fetch(conf: Configuration, slow: SlowSite) -> None:
    """Hold a fetch of batch A at a slow server; run other jobs meanwhile; kill it, and fetch again."""
    commands = Commands(conf)
    make_batch(conf, A, f"{slow.url}/1")
    make_batch(conf, B, f"{slow.url}/2")
    make_batch(conf, "c", "http://localhost:1/3")
    fetch = commands.start("fetch", A)
    try:
        wait_for(lambda: slow.asked)
        for words in (["fetch", A], ["parse", A], ["updatedb", A], ["index", A], ["fetch", "-all"]):
            code, errors = commands.run(*words)
            assert (code, f"fetch {A} is running on " in errors) == (6, True), (words, errors)
        code, errors = commands.run("fetch", B)
        assert (code, "both would send requests to 127.0.0.1" in errors) == (6, True), errors
        assert commands.run("fetch", "c")[0] == 0
        assert commands.run("readdb", "-batches")[0] == 0
        assert slow.asked == ["/1"]
        assert strike(fetch)
    finally:
        strike(fetch)
        fetch.communicate()
    slow.let.set()
    code, errors = commands.run("fetch", A)
    assert code == 0, errors
    assert slow.asked == ["/1", "/1"]
    assert holders(BatchListStore(conf)) == []


def generates_at_once(conf: Configuration) -> None:
    """Start several generates together: those not rejected run one after the other, and no row has two batches."""
    commands = Commands(conf)
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for number in range(40):
            page = WebPage()
            page.fetch_interval, page.score, page.markers = 1000, 1.0, {Mark.DISTANCE: "0"}
            batch.put(reverse_url(f"http://a.example/{number}"), page)
    names = ["g-1", "g-2", "g-3"]
    running = [commands.start("generate", "-batchId", name, "-topN", "15") for name in names]
    ended = [
        (name, process.communicate(timeout=120)[1], process.returncode)
        for name, process in zip(names, running, strict=True)
    ]
    assert {code for _, _, code in ended} <= {0, 6}, ended
    done = [name for name, _, code in ended if code == 0]
    assert done
    lists, seen = BatchListStore(conf), set()
    for name in done:
        keys = set(lists.iter_row_keys(name))
        assert keys
        assert not keys & seen
        seen |= keys
        rows = store.get_many(sorted(keys), {WebPage.markers})
        assert {row.markers.get(Mark.GENERATE) for row in rows if row is not None} == {name}
    assert [state.batch_id for state in lists.list_records()] == done


def updates_at_once(conf: Configuration) -> None:
    """Update two batches that link to one row concurrently; run the rejected one again: no link is lost."""
    commands = Commands(conf)
    target = "http://t.example/"
    for batch in (A, B):
        urls = [f"http://{batch}.example/{number}" for number in range(30)]
        make_batch(conf, batch, *urls)
        with open_store(conf, WebPage).batch() as rows:
            for url in urls:
                page = WebPage({}, frozenset())
                page.status, page.score, page.outlinks = CrawlStatus.FETCHED, 1.0, {target: url}
                page.metadata[MetadataKey.CASH] = encode_float(1.0)
                page.markers[Mark.FETCH] = page.markers[Mark.PARSE] = batch
                rows.put(reverse_url(url), page)
    running = {batch: commands.start("updatedb", batch) for batch in (A, B)}
    ended = {batch: (process.communicate(timeout=120)[1], process.returncode) for batch, process in running.items()}
    assert {code for _, code in ended.values()} <= {0, 6}, ended
    for batch, (_, code) in ended.items():
        if code:
            assert commands.run("updatedb", batch)[0] == 0
    row = open_store(conf, WebPage).get(reverse_url(target))
    assert row is not None
    assert len(row.inlinks) == 60
    assert row.score == pytest.approx(60.0)
    assert holders(BatchListStore(conf)) == []
