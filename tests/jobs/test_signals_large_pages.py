"""SIGINT and SIGTERM while a job handles its worst row: ended soon, with the code that says so, and to be run again.

The rows are pages of a megabyte, of 60,000 links or 150,000 words, and an archive whose parse takes all the time it is
given. A fetch of pages that drip is stopped in ``test_signals.py``.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from tests.counted_kills import Kills, strike
from tests.jobs import crawl
from tests.jobs.hostile import Commands
from tests.processes import wait_until
from tests.site.hostile.server import TRICKS, HostileServer
from tests.site.hosts import HOSTS, web

GIANTS = ("html-links", "html-words", "html-same-link")
JOBS = {
    "inject": ("inject", "seeds"),
    "generate": ("generate", "-batchId", "b"),
    "fetch": ("fetch", "b"),
    "parse": ("parse", "b"),
    "updatedb": ("updatedb", "b"),
    "index": ("index", "b"),
    "dedup": ("dedup",),
    "pagerank": ("pagerank",),
    "generate-again": ("generate", "-batchId", "c"),
}
SETTINGS = {
    "parser.timeout": "10",  # more than the pages take on a machine that is busy
    "db.max.outlinks.per.page": "-1",
    "storage.embedded.map.size": str(1 << 30),
    "fetcher.server.delay": "0.2",
    "http.timeout": "30000",
}
SOON = 10.0  # seconds
_ENDS = re.compile(r"finished at|IndexingJob: done\.")
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def cells(folder: Path) -> dict[str, dict[str, bytes]]:
    return crawl.table(Configuration.load(overrides={"storage.data.store": f"embedded:{folder / 'table'}"}))


def copied(folder: Path, to: Path) -> Commands:
    """Return commands over a copy of a crawl."""
    commands = Commands(to, SETTINGS)
    for path in folder.iterdir():
        if path.is_dir() and path.name != "tmp":
            shutil.copytree(path, to / path.name)
        elif path.is_file() and path.name != "log":
            shutil.copy(path, to)
    return commands


class Stages:
    """A crawl as it is before and after each job, made as far as a test needs it."""

    def __init__(self, folder: Path, seeds: list[str]) -> None:
        self._folder = folder
        Commands(folder / "0", SETTINGS)
        (folder / "0" / "seeds").write_text("\n".join(seeds))
        self._seconds: list[float] = []

    def around(self, job: str) -> tuple[Path, float, dict[str, dict[str, bytes]]]:
        """Return the folder of the crawl before a job, how many seconds it takes, and the cells after it."""
        names = list(JOBS)
        number = names.index(job)
        for done in range(len(self._seconds), number + 1):
            commands = copied(self._folder / str(done), self._folder / str(done + 1))
            self._seconds.append(commands.run(*JOBS[names[done]]))
        return self._folder / str(number), self._seconds[number], cells(self._folder / str(number + 1))


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    tricks = tuple(trick for trick in TRICKS if trick.name in GIANTS)
    with HostileServer(tricks) as server, web() as served:
        server.prepare()
        seeds = [*server.seeds(), served.url(HOSTS[0], "/doc/endless"), served.url(HOSTS[1], "/p/0.html")]
        yield Stages(tmp_path_factory.mktemp("giants"), seeds)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize("job", [job for job in JOBS if job != "generate"])
def test_interrupted_job_on_large_pages_is_completed_by_rerun(
    job: str, runner: str, number: signal.Signals, stages: Stages, tmp_path: Path
) -> None:
    words = (*JOBS[job], "-r", runner)
    before, seconds, expected = stages.around(job)
    slow: list[float] = []
    with Kills(f"{job} on {runner} with {number.name}", 1, 0.2) as kills:
        for attempt, moment in enumerate(kills.moments()):
            commands = copied(before, tmp_path / str(attempt))
            process = commands.start(*words)
            wait_for(commands, process, "/doc/endless" if job == "parse" else "starting")
            time.sleep(0.5 if job == "parse" else moment * seconds)
            began = time.monotonic()
            # Ctrl-C goes to all processes of a terminal, the signal of an administrator to one
            hit = strike(process, number, group=number == signal.SIGINT)
            took = time.monotonic() - began
            if not kills.count(hit and process.returncode != 0):
                continue
            commands.assert_nothing_left(process.pid)
            # Python takes its handlers away when it ends: to a shell, which sees 128 and the signal, it is the same
            late = -number if _ENDS.search(commands.log()) else None
            assert process.returncode in (SIGNALS[number], late), commands.log()[-2000:]
            assert "Traceback" not in commands.log()
            slow.append(took)
            commands.run(*words)
            assert different(cells(commands.folder), expected) == {}
    assert min(slow) < SOON


def different(found: dict[str, dict[str, bytes]], expected: dict[str, dict[str, bytes]]) -> dict[str, object]:
    """Return what differs by row and column, in short: rows are pages of a megabyte."""
    return {
        f"{key} {column}": (str(was)[:300], str(should)[:300])
        for key in found.keys() | expected.keys()
        for column in found.get(key, {}).keys() | expected.get(key, {}).keys()
        if (was := found.get(key, {}).get(column)) != (should := expected.get(key, {}).get(column))
    }


def wait_for(commands: Commands, process: subprocess.Popen[bytes], sign: str) -> None:
    """Wait until the log has a sign, or the command has ended."""
    wait_until(lambda: sign in commands.log() or process.poll() is not None)
