"""The Python interface within a program: its folder, threads, signals, callbacks, and the cleanup of jobs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from nutch2py import Configuration, Crawl, Progress
from nutch2py.table.embedded.storage import table_files
from tests.jobs.crawl import properties, seeds, site

RUNNERS = ("inline", "local")


@pytest.fixture(scope="module")
def site_url() -> Iterator[str]:
    with site() as url:
        yield url


@pytest.mark.parametrize("runner", RUNNERS)
def test_relative_paths_resolve_against_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site_url: str, runner: str
) -> None:
    monkeypatch.chdir(tmp_path)
    where = {"index.embedded.path": "relative/index", "storage.data.store": "embedded:relative/tables"}
    with Crawl(Configuration.load(), {**properties(), **where}) as crawl:
        crawl.inject([f"{site_url}/0"])
        batch = crawl.generate().batch_id
        for job in (crawl.fetch, crawl.parse, crawl.updatedb):
            job(batch)
        crawl.conf.set("mapreduce.runner", runner)
        crawl.index(batch)
        assert crawl.search("text").total == 1
        monkeypatch.chdir("/")
        assert [url for url, _ in crawl.pages()] != []
    assert sorted(path.name for path in (tmp_path / "relative").iterdir()) == ["index", "tables"]
    assert [path.name for path in tmp_path.iterdir()] == ["relative"]


def test_close_releases_everything_jobs_opened(tmp_path: Path, site_url: str) -> None:
    with Crawl(f"embedded:{tmp_path}", properties()) as crawl:
        crawl.inject(seeds(site_url))
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        assert crawl.page(f"{site_url}/0") is not None
        assert [files for files in table_files.list_open() if files.path.is_relative_to(tmp_path)]
    gc.collect()  # some of what a job made refers to itself
    assert [files for files in table_files.list_open() if files.path.is_relative_to(tmp_path)] == []
    assert crawl.page(f"{site_url}/0") is not None  # it can be used again
    crawl.close()


def test_job_restores_process_state(tmp_path: Path, site_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def state() -> list[Any]:
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
        streams = [sys.stdin, sys.stdout, sys.stderr]
        return [Path.cwd(), dict(os.environ), list(sys.path), handlers, streams]

    monkeypatch.setattr(sys, "argv", ["program", "--spark", "--mapper"])  # words of mrjob's jobs, too
    before, during = state(), []
    with Crawl(f"embedded:{tmp_path}", properties(), on_line=lambda _: during.append(state()[:3])) as crawl:
        crawl.inject([f"{site_url}/0"])
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        crawl.parse(batch)
    assert state() == before
    assert during
    assert all(each == before[:3] for each in during)


def test_sigterm_handler_of_program_is_kept(tmp_path: Path) -> None:
    got: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        got.append(number)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        sent = [False]

        def send(_: Progress) -> None:
            if not sent[0]:
                sent[0] = True
                os.kill(os.getpid(), signal.SIGTERM)

        with Crawl(f"embedded:{tmp_path}", properties(), on_progress=send) as crawl:
            assert crawl.inject(["http://example.org/"]).count("injector", "urls_new") == 1
        assert got == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, before)


class CallbackError(Exception):
    """Raised by a callback of these tests."""


@pytest.mark.parametrize("callback", ["on_line", "on_progress", "on_warning"])
@pytest.mark.parametrize("runner", RUNNERS)
def test_callback_exception_is_raised(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], callback: str, runner: str
) -> None:
    def fail(_: object) -> None:
        raise CallbackError(callback)

    settings = {**properties(runner), "partition.url.mode": "bogus"}
    with Crawl(f"embedded:{tmp_path}", properties()) as crawl:
        crawl.inject(["http://example.org/"])
    failing: dict[str, Any] = {callback: fail}
    with Crawl(f"embedded:{tmp_path}", settings, **failing) as crawl, pytest.raises(CallbackError, match=callback):
        crawl.generate()
    assert capfd.readouterr() == ("", "")


def test_threads_have_separate_callbacks(tmp_path: Path, site_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    said: dict[str, list[str]] = {"one": [], "two": []}
    titles: dict[str, set[str]] = {"one": set(), "two": set()}
    found: dict[str, int] = {}
    start = threading.Barrier(2)

    def run(name: str) -> None:
        with Crawl(
            f"embedded:{tmp_path / name}",
            properties(),
            on_line=said[name].append,
            on_progress=lambda progress: titles[name].add(progress.title),
        ) as crawl:
            start.wait()
            crawl.inject(seeds(site_url))
            crawl.generate(batch_id=name)
            for job in (crawl.fetch, crawl.parse, crawl.updatedb, crawl.index):
                job(name)
            found[name] = crawl.search("text").total

    threads = [threading.Thread(target=run, args=(name,)) for name in said]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"one": 16, "two": 16}
    assert capfd.readouterr() == ("", "")
    for name, other in (("one", "two"), ("two", "one")):
        assert f"FetcherJob: batchId: {name}" in said[name]
        assert f"FetcherJob: batchId: {other}" not in said[name]
        assert {"InjectorJob", f"FetcherJob {name}", f"ParserJob {name}"} <= titles[name]
        assert not [title for title in titles[name] if other in title]


def test_jobs_run_next_to_event_loop(tmp_path: Path, site_url: str) -> None:
    async def main() -> int:
        crawl = Crawl(f"embedded:{tmp_path}", properties())
        await asyncio.to_thread(crawl.inject, seeds(site_url))
        batch = await asyncio.to_thread(crawl.generate, top_n=3)
        fetched = await asyncio.to_thread(crawl.fetch, batch.batch_id)
        await asyncio.to_thread(crawl.close)
        return fetched.count("FetcherStatus", "SUCCESS") + fetched.count("FetcherStatus", "MOVED")

    assert asyncio.run(main()) == 3
