"""Runs commands on a disk with a few free pages, and judges how they end."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from tests.disks.small_disk import SmallDisk
from tests.jobs import crawl
from tests.jobs.stages import Crawl

BATCH = "test-1"
_DISK_CODES = (4, 5)
_PLUGINS = Configuration.load().get_trimmed("plugin.includes")


class Command(NamedTuple):
    """A command line, and the job before which the crawl is copied; ``OUT`` is a folder on the disk."""

    words: str
    stage: str


COMMANDS = {
    "inject": Command("inject SEEDS", "inject"),
    "inject into a table": Command("inject SEEDS", "generate"),
    "createtable": Command("createtable", "inject"),
    "generate": Command(f"generate -batchId {BATCH}", "generate"),
    "freegen": Command(f"freegen SEEDS -batchId {BATCH}", "inject"),
    "fetch": Command(f"fetch {BATCH}", "fetch"),
    "fetch to WARC": Command(f"fetch {BATCH} -warc OUT/warc", "fetch"),
    "parse": Command(f"parse {BATCH}", "parse"),
    "updatedb": Command(f"updatedb {BATCH}", "updatedb"),
    "index": Command(f"index {BATCH}", "index"),
    "index again": Command("index -all", "end"),
    "index to CSV": Command(
        f"index {BATCH} -D plugin.includes={_PLUGINS}|indexer-(csv|embedded) -D indexer.csv.outpath=OUT/csv", "index"
    ),
    "pagerank": Command("pagerank", "end"),
    "dedup": Command("dedup", "end"),
    "clean": Command("clean", "end"),
    "updatehostdb": Command("updatehostdb -linkDb", "end"),
    "hostinject": Command("hostinject HOSTS", "end"),
    "dueindex": Command("dueindex", "end"),
    "readdb -dump": Command("readdb -dump OUT/dump -text", "end"),
    "readdb -stats": Command("readdb -stats", "end"),
    "webgraph": Command("webgraph -o OUT/graph", "end"),
    "exporttable": Command("exporttable OUT/table.json.gz", "end"),
    "init": Command("init OUT/conf -agent test", "inject"),
    "importtable": Command("importtable TABLE", "inject"),
    "copytable": Command("copytable embedded:OUT/copy", "end"),
    "report": Command("report -o OUT/report.html", "end"),
    "checktable": Command("checktable", "end"),
    "search": Command("search text", "end"),
    "crawl": Command("crawl SEEDS -depth 0 -pages 20", "inject"),
}
"""Commands that can make a file."""


class Outcome(NamedTuple):
    """How a command ended with ``free`` pages: its exit code, its output, and the trouble, "" if there is none."""

    name: str
    kind: str
    free: int
    code: int
    output: str
    trouble: str


@dataclass
class Sweep:
    """Crawls before each job, and the runs of the commands on ``disk``. ``folder``: for the stages."""

    folder: Path
    disk: SmallDisk
    site: crawl.Site
    peaks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._seeds, self._hosts = self.folder / "seeds.txt", self.folder / "hosts.txt"
        self._table = self.folder / "table.json.gz"
        self._seeds.write_text("".join(f"{self.site.url}/{number}\n" for number in range(0, 60, 3)))
        self._hosts.write_text("127.0.0.1\tkey=value\n")

    def make_stages(self) -> None:
        """Crawl one round; keep the crawl as it is before each job, and at the end."""
        whole = Crawl(self.folder / "crawl", self._seeds)
        whole.folder.mkdir()
        options = _options(whole)
        of_a_batch = [[job, BATCH] for job in ("fetch", "parse", "updatedb", "index")]
        jobs = [["inject", str(self._seeds)], ["generate", "-batchId", BATCH], *of_a_batch]
        for words in jobs:
            shutil.copytree(whole.folder, self.folder / f"before-{words[0]}")
            assert main([*words, *options]) == 0
        assert main(["exporttable", str(self._table), *options]) == 0
        shutil.copytree(whole.folder, self.folder / "before-end")

    def prepare(self, name: str) -> None:
        """Copy the crawl that a command needs to the empty disk."""
        self.disk.clear()
        shutil.copytree(self.folder / f"before-{COMMANDS[name].stage}", self.disk.folder / "crawl")
        for folder in ("out", "tmp"):
            (self.disk.folder / folder).mkdir()

    def measure(self, name: str) -> int:
        """Run a command with enough space; return the pages that it needs at most."""
        if name not in self.peaks:
            self.prepare(name)
            os.sync()  # XFS gives back what it has reserved for the copied files
            before = least = self.disk.free_pages
            ended = threading.Event()

            def watch() -> None:
                nonlocal least
                while not ended.wait(0.002):
                    least = min(least, self.disk.free_pages)

            thread = threading.Thread(target=watch)
            thread.start()
            try:
                done = self._execute(name, True)
            finally:
                ended.set()
                thread.join()
            assert done.returncode in (0, 1), f"{name}: {done.returncode} {done.stderr}"
            self.peaks[name] = before - min(least, self.disk.free_pages)
        return self.peaks[name]

    def run(self, name: str, free: int, temporary_on_disk: bool) -> Outcome:
        """Run a command with ``free`` pages; if it fails, run it again with enough space."""
        self.prepare(name)
        self.disk.leave_free(free)
        done = self._execute(name, temporary_on_disk)
        trouble = find_trouble(done.returncode, done.stderr)
        self.disk.free()
        if done.returncode and not trouble:
            after = self._execute(name, temporary_on_disk)
            if after.returncode not in (0, 1):
                trouble = f"with space again it ends with {after.returncode}: {after.stderr[-500:]}"
        return Outcome(name, self.disk.kind, free, done.returncode, done.stderr, trouble)

    def _execute(self, name: str, temporary_on_disk: bool) -> subprocess.CompletedProcess[str]:
        crawled = Crawl(self.disk.folder / "crawl", self._seeds)
        places = {
            "SEEDS": str(self._seeds),
            "HOSTS": str(self._hosts),
            "TABLE": str(self._table),
        }
        words = [
            places.get(word, word).replace("OUT", str(self.disk.folder / "out"))
            for word in COMMANDS[name].words.split()
        ]
        temporary = self.disk.folder / "tmp" if temporary_on_disk else self.folder
        return subprocess.run(
            [sys.executable, "-m", "nutch2py.cli", *words, *_options(crawled)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(temporary)},
        )


def _options(crawled: Crawl) -> list[str]:
    return [word for name, value in crawled.settings.items() for word in ("-D", f"{name}={value}")]


def find_trouble(code: int, said: str) -> str:
    """Return what is wrong with the end of a command: a signal, silence, a stack trace, another exit code."""
    errors = [line for line in said.splitlines() if line.startswith("nutch2py: ")]
    if code < 0:
        return f"killed by signal {-code}"
    if "Traceback" in said or "panicked" in said:
        return f"a stack trace: {said[-1500:]}"
    if code in (0, 1):
        return ""
    if code not in _DISK_CODES:
        return f"exit code {code}: {said[-700:]}"
    return "" if len(errors) == 1 else f"{len(errors)} lines of errors: {said[-700:]}"


def draw_sizes(peak: int, count: int, drawn: random.Random) -> Iterator[int]:
    """Yield ``count`` numbers of free pages up to a little above ``peak``: one of each of as many parts."""
    top = peak + max(2, peak // 16)
    for number in range(count):
        first = top * number // count
        yield drawn.randrange(first, max(first + 1, top * (number + 1) // count))
