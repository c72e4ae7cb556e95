"""A ``crawl`` stopped at any point and run again ends like an undisturbed one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.job_log_store import KEY_PREFIX
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.fetch.address_recheck import ADDRESS_FILTER_PREFIX
from nutch2py.jobs.monitoring.lock_report import unlock
from nutch2py.table import TableQuery
from tests.crawl_loop.test_crawl_command import OPTIONS, SETTINGS, in_table, page
from tests.jobs.stages import state
from tests.processes import HEEDING, wait_until
from tests.site.server import Reply, ScriptedSite

JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "index", "pagerank", "dedup", "updatehostdb", "clean")
_BATCH = re.compile(r"\b\d{10}-\d+\b")


class Watch:
    """Notes the jobs of crawls; keeps the current folder as it is before each, locks of a crawl at work included."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.jobs: list[str] = []
        self.copies: Path | None = None
        for name in JOBS:
            patch.setattr(Crawl, name, self._noted(name, getattr(Crawl, name)))

    def _noted(self, name: str, job: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(job)
        def noted(*words: Any, **named: Any) -> Any:
            if self.copies is not None:
                shutil.copytree(Path.cwd(), self.copies / str(len(self.jobs)))
            self.jobs.append(name)
            return job(*words, **named)

        return noted

    def run(self, words: list[str], where: Path, copies: Path | None = None) -> int:
        """Run a command in a folder."""
        self.jobs, self.copies = [], copies
        before = Path.cwd()
        os.chdir(where)
        try:
            return main(words)
        finally:
            os.chdir(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def moved(site: ScriptedSite) -> Iterator[list[str]]:
    """A site with duplicates, of which a seed leads to another host, and on to a third: the words of the command."""
    with ScriptedSite(address="127.0.0.2") as second, ScriptedSite(address="127.0.0.3") as third:
        for other in (second, third):
            other.on("/robots.txt", Reply(404))
        site.on("/", page("/a", "/b", text="harbour"))
        site.on("/a", page("/b", text="the same"))
        site.on("/b", page("/", text="lighthouse"))
        site.on("/old", Reply(301, headers=[("Location", second.url("/hop"))]))
        second.on("/hop", Reply(302, headers=[("Location", third.url("/home"))]))
        third.on("/home", page("/more", text="tide"))
        third.on("/more", page(text="the same"))
        yield ["crawl", site.url("/"), site.url("/old"), *OPTIONS]


def configuration(folder: Path) -> Configuration:
    return Configuration.load(overrides={**SETTINGS, "storage.data.store": f"embedded:{folder / 'crawldata'}"})


def left(folder: Path) -> dict[str, Any]:
    """Return table, notes and documents, with the n-th batch that rows name called so; and what else is left of it."""
    conf = configuration(folder)
    found = state(conf)
    text = repr(sorted(found.items()))
    # in the order of the rows: two batches of one second have their ids in any order
    for number, each in enumerate(dict.fromkeys(_BATCH.findall(text))):
        text = text.replace(each, f"batch {number}")
    lists = BatchListStore(conf)
    others = {key: entry.state for key, entry in lists.store.scan(TableQuery(None)) if not key.startswith(KEY_PREFIX)}
    return {"crawl": re.sub(r"('(?:tstamp|date|lastModified)': )[^,}]*", r"\1", text), "derived": others}


def last_of_each(jobs: list[str]) -> list[int]:
    """Return the places of the last job of each kind, and of the index job of the last round."""
    last = {name: place for place, name in enumerate(jobs)}
    return sorted({*last.values(), max(place for place in range(last["index"]) if jobs[place] == "index")})


def stopped_at(
    places: Callable[[list[str]], Iterable[int]],
    words: list[str],
    folder: Path,
    patch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Crawl, and resume from before some of the jobs; at the end check that no work is left."""
    watch = Watch(patch)
    (folder / "whole").mkdir()
    assert watch.run(words, folder / "whole", folder) == 0
    whole, jobs = left(folder / "whole"), watch.jobs
    assert jobs[-5:] == ["pagerank", "dedup", "updatehostdb", "index", "clean"]
    kept = {key for key in whole["derived"] if not key.startswith(("m/overview/", ADDRESS_FILTER_PREFIX))}
    assert kept == {"run/jobs", "run/indexed", "m/pagerank"}
    for place in places(jobs):
        assert watch.run(words, folder / str(place)) == 0, (place, jobs[place])
        assert left(folder / str(place)) == whole, (place, jobs[place])
    capsys.readouterr()
    assert watch.run(words, folder / str(place)) == 1
    assert "No URL is due" in capsys.readouterr().out
    assert {"pagerank", "index"}.isdisjoint(watch.jobs)


def test_crawl_stopped_in_last_round_or_later_completes(
    moved: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_at(last_of_each, moved, folder, monkeypatch, capsys)


def test_crawl_stopped_at_any_job_completes(
    moved: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_at(lambda jobs: range(1, len(jobs)), moved, folder, monkeypatch, capsys)


def test_second_crawl_is_rejected_and_first_continues(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go = threading.Event()

    def slowly() -> Iterator[bytes]:
        while not go.is_set():
            yield b"word "

    site.on("/", Reply(pieces=slowly(), pause=0.05, length=False))
    words = ["crawl", site.url("/"), *OPTIONS]
    command = [sys.executable, "-c", HEEDING, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as first:
        wait_until(lambda: site.gets("/") == 1 or first.poll() is not None)
        assert main(words) == 6
        assert main(["readdb", "-locks", *OPTIONS]) == 0
        go.set()
        said = first.communicate(timeout=120)[0]
    assert first.returncode == 0, said
    out, err = capsys.readouterr()
    assert f"crawl is running on {os.uname().nodename} (process {first.pid})" in err
    assert "resuming batch" not in out
    assert [line.split("\t")[1] for line in out.splitlines() if "\talive\t" in line] == ["crawl", "fetch"]
    assert site.gets("/") == 1
    assert in_table(folder) == {site.url("/")}


def test_pages_fetched_of_open_batches_count_in_run(
    site: ScriptedSite, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.on("/", page(*(f"/{number}" for number in range(8))))
    for number in range(8):
        site.on(f"/{number}", page())
    watch, words = Watch(monkeypatch), ["crawl", site.url("/"), *OPTIONS, "-pages", "3"]
    (folder / "whole").mkdir()
    assert watch.run(words, folder / "whole", folder) == 0
    assert len(in_table(folder / "whole")) == 3
    second = [place for place, job in enumerate(watch.jobs) if job == "fetch"][1]
    for place, expected in ((second, 1 + 3), (second + 1, 3 + 3)):  # the batch is to be fetched; was fetched
        assert watch.run(words, folder / str(place)) == 0
        assert len(in_table(folder / str(place))) == expected


def test_interrupted_batch_keeps_planned_size(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/", page("/a", "/b", "/c"))
    for path in ("/a", "/b", "/c"):
        site.on(path, page())
    words = ["crawl", site.url("/"), *OPTIONS]
    assert main([*words, "-pages", "1"]) == 0
    lists = BatchListStore(configuration(folder))
    lists.set_state("1600000000-1", BatchState.GENERATING)
    assert main([*words, "-pages", "2"]) == 0
    assert len(in_table(folder)) == 3
    assert main(words) == 0
    lists.set_state("1600000000-2", BatchState.GENERATING)
    capsys.readouterr()
    assert main(words) == 1
    assert "No URL is due" in capsys.readouterr().out
    assert lists.list_records() == []


def test_seed_fetched_later_is_followed(site: ScriptedSite, folder: Path) -> None:
    with ScriptedSite(address="127.0.0.2") as other:
        other.on("/robots.txt", Reply(404))
        other.on("/home", page())
        site.on("/", page())
        site.on("/old", Reply(301, headers=[("Location", other.url("/home"))]))
        assert main(["crawl", site.url("/"), site.url("/old"), *OPTIONS, "-D", "generate.max.count=1"]) == 0
        assert in_table(folder) == {site.url("/"), other.url("/home")}


def test_unindexed_pages_are_indexed_when_index_is_configured(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/", page(text="harbour"))
    words = ["crawl", site.url("/"), *OPTIONS]
    assert main([*words, "-index", "none"]) == 0
    assert main([*words, "-index", "none"]) == 1
    assert main(words) == 0
    assert "1 document in the index" in capsys.readouterr().out


def test_crawl_with_lost_lock_starts_no_further_job(
    site: ScriptedSite, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parse = Crawl.parse

    def robbed(crawl: Crawl, *words: Any, **named: Any) -> Any:
        unlock(crawl.conf, all_locks=True, force=True)
        return parse(crawl, *words, **named)

    monkeypatch.setattr(Crawl, "parse", robbed)
    site.on("/", page(text="harbour"))
    words = ["crawl", site.url("/"), *OPTIONS]
    assert main([*words, "-D", "crawl.lock.lease=0.001"]) == 6
    assert "another job has taken it" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert [batch.state for batch in Crawl(configuration(folder)).batches()] == ["parsed"]
