"""A crawl as it is before each job of its second round, and jobs run over it as processes that can be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nutch2py.conf import Configuration
from tests.jobs import crawl

BATCH = "test-2"
JOBS = {
    "inject": ["inject", "SEEDS"],
    "generate": ["generate", "-topN", "20", "-batchId", BATCH],
    "fetch": ["fetch", BATCH],
    "parse": ["parse", BATCH],
    "updatedb": ["updatedb", BATCH],
    "index": ["index", BATCH],
}
Table = dict[str, dict[str, bytes]]


class Crawl:
    """A crawl, its seeds, and commands run over it. ``settings`` are properties beside those of every test crawl."""

    def __init__(self, folder: Path, seeds: Path, **settings: str) -> None:
        self.folder, self.seeds = folder, seeds
        store = {"storage.data.store": f"embedded:{folder}"}
        self.settings = {
            **crawl.SETTINGS,
            **store,
            **{name.replace("__", "."): value for name, value in settings.items()},
        }

    @property
    def conf(self) -> Configuration:
        """The configuration that commands get."""
        return Configuration.load(overrides=self.settings)

    def start(self, words: list[str], runner: str = "inline") -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own."""
        settings = {**self.settings, "mapreduce.runner": runner}
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
        _, errors = process.communicate(timeout=300)
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


Stages = Callable[[str], tuple[Crawl, Table]]


def make_stages(site: str, folder: Path) -> Stages:
    """Crawl; give, for a job, the crawl as it is before that job of the second round, and the table after it."""
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"{site}/{number}\n" for number in range(0, 60, 3)))
    made: dict[str, tuple[Crawl, Table]] = {}
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
