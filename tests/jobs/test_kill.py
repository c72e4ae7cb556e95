"""Every job, killed with SIGKILL at random moments and run again: the table ends as if it had never been killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nutch2py.conf import Configuration
from tests.jobs import crawl

KILLS = int(os.environ.get("NUTCH2PY_KILLS", "20"))
BATCH = "test-2"
JOBS = {
    "inject": ["inject", "SEEDS"],
    "generate": ["generate", "-topN", "20", "-batchId", BATCH],
    "fetch": ["fetch", BATCH],
    "parse": ["parse", BATCH],
    "updatedb": ["updatedb", BATCH],
    "index": ["index", BATCH],
}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with crawl.site() as url:
        yield url


class Crawl:
    """A crawl folder, and commands run over it as processes of their own."""

    def __init__(self, folder: Path, seeds: Path) -> None:
        self.folder, self.seeds = folder, seeds

    @property
    def conf(self) -> Configuration:
        store = {"storage.data.store": f"embedded:{self.folder}"}
        return Configuration.load(overrides={**crawl.SETTINGS, **store})

    def start(self, words: list[str], runner: str) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own."""
        settings = {**crawl.SETTINGS, "storage.data.store": f"embedded:{self.folder}", "mapreduce.runner": runner}
        options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
        words = [str(self.seeds) if word == "SEEDS" else word for word in words]
        command = [sys.executable, "-m", "nutch2py.cli", *words, *options]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, cwd=self.folder.parent
        )

    def run(self, words: list[str], runner: str = "inline") -> float:
        """Run a command to its end; return its seconds."""
        started = time.monotonic()
        process = self.start(words, runner)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
        return time.monotonic() - started

    def kill(self, words: list[str], runner: str, after: float) -> None:
        """Run a command and kill it, and all that it started, after some seconds."""
        process = self.start(words, runner)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)


Before = Callable[[str], tuple[Crawl, dict[str, dict[str, bytes]]]]


@pytest.fixture(scope="module")
def before(site: str, tmp_path_factory: pytest.TempPathFactory) -> Before:
    """Give, for a job, the crawl as it is before that job of the second round, and the table after it."""
    folder = tmp_path_factory.mktemp("kill")
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"{site}/{number}\n" for number in range(0, 60, 3)))
    made: dict[str, tuple[Crawl, dict[str, dict[str, bytes]]]] = {}
    current = Crawl(folder / "crawldata", seeds)

    def note(job: str) -> None:
        copy = folder / f"before-{job}"
        shutil.copytree(current.folder, copy) if current.folder.exists() else copy.mkdir()
        current.run(JOBS[job])
        made[job] = Crawl(copy, seeds), crawl.table(current.conf)

    note("inject")
    for words in (
        ["generate", "-topN", "8", "-batchId", "test-1"],
        ["fetch", "test-1"],
        ["parse", "test-1"],
        ["updatedb", "test-1"],
    ):
        current.run(words)
    for job in ("generate", "fetch", "parse", "updatedb", "index"):
        note(job)
    return made.__getitem__


@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize("job", JOBS)
def test_killed_and_run_again(job: str, runner: str, before: Before, tmp_path: Path) -> None:
    start, expected = before(job)
    chance = random.Random(f"{job} {runner}")

    def fresh(number: int) -> Crawl:
        folder = tmp_path / f"crawldata-{number}"
        shutil.copytree(start.folder, folder)
        return Crawl(folder, start.seeds)

    whole = fresh(0).run(JOBS[job], runner)
    for number in range(1, KILLS // 2 + 1):
        killed = fresh(number)
        killed.kill(JOBS[job], runner, chance.uniform(0.1, 1.05) * whole)
        killed.run(JOBS[job], runner)
        assert crawl.table(killed.conf) == expected, f"kill {number} of {job} on {runner}"
        shutil.rmtree(killed.folder)
