"""cycle: inject to index of ROWS pages of a local nginx; alternating with the original if NUTCH2PY_BENCH_NUTCH is set.

The variable names ``runtime/local`` of a built Nutch 1 or 2. Each of our jobs is followed by the original's, so that
both run in the same conditions. A fixed job before each measures the load of the machine by its CPU seconds. CPU
seconds of servers, such as HBase's, are added when ``NUTCH2PY_BENCH_SERVERS`` lists their process ids.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.fetch import BATCH, site
from bench.measuring import SETTINGS, CommandError, Cost, Measurement, Nutch, cpu_seconds, cycle_settings, run

ROWS = (10_000,)
THREADS = "100"
_JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "invertlinks", "index")
_NO_JOB_OF_OURS = "invertlinks"
"""A job of Nutch 1 only; updatedb does the same here and in Nutch 2."""
_CALIBRATION = """
import hashlib, re
text, words = "the quick brown fox jumps over the lazy dog " * 200, {}
for turn in range(60):
    for word in re.findall(r"[a-z]+", text):
        words[word + str(turn)] = words.get(word, 0) + len(hashlib.md5(word.encode()).hexdigest())
"""
"""Dictionaries, regular expressions and digests: constant work of 0.1 to 0.2 CPU seconds."""

Words = tuple[str, ...]


def calibration() -> float:
    """Return the current CPU seconds of the fixed job."""
    return run([sys.executable, "-c", _CALIBRATION]).cpu


class Original:
    """A built Nutch of either line: ``folder`` is its ``runtime/local``."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.command = folder / "bin" / "nutch"
        if not self.command.is_file():
            raise CommandError(f"NUTCH2PY_BENCH_NUTCH: {folder} has no bin/nutch: set it to runtime/local of a build")
        jars = [jar.name for jar in (folder / "lib").glob("apache-nutch-*.jar")]
        self.line = 2 if any(name.startswith("apache-nutch-2") for name in jars) else 1
        self.name = f"Nutch {self.line}"
        self._work = work
        work.mkdir()

    def words(self, job: str, urls: Path) -> Words:
        """Return the arguments of a job after ``bin/nutch`` without properties; none when this line lacks the job."""
        if self.line == 2:
            batch = {"generate": ("-batchId", BATCH), "fetch": (BATCH, "-threads", THREADS), "index": ("-all",)}
            return () if job == _NO_JOB_OF_OURS else (str(urls),) if job == "inject" else batch.get(job, (BATCH,))
        database, segments = str(self._work / "crawldb"), self._work / "segments"
        made = sorted(segments.iterdir()) if segments.is_dir() else []
        segment = str(made[-1]) if made else ""
        return {
            "inject": (database, str(urls)),
            "generate": (database, str(segments)),
            "fetch": (segment, "-threads", THREADS),
            "parse": (segment,),
            "updatedb": (database, segment),
            "invertlinks": (str(self._work / "linkdb"), segment),
            "index": (database, "-linkdb", str(self._work / "linkdb"), segment),
        }[job]

    def __call__(self, job: str, urls: Path, hosts: Path) -> Cost | None:
        """Run a job; return None when it does not exist."""
        words = self.words(job, urls)
        if not words:
            return None
        settings = {
            **SETTINGS,
            "plugin.includes": f"{SETTINGS['plugin.includes']}|indexer-csv",
            "fetcher.server.delay": "0",
            "fetcher.parse": "false",
            "http.robots.agents": SETTINGS["http.agent.name"],
        }
        options = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
        java = f"{os.environ.get('NUTCH_OPTS', '')} -Djdk.net.hosts.file={hosts}".strip()
        return run(["env", f"NUTCH_OPTS={java}", str(self.command), job, *options, *words], folder=self._work)


def ours(folder: Path, runner: str, hosts: Path, **settings: str) -> Callable[[str, Path], Cost | None]:
    """Return a function that runs one of our jobs, given its name and the seeds, and returns its cost."""
    nutch = Nutch(folder, runner, **{**cycle_settings(folder, hosts), **settings})

    def job(name: str, urls: Path) -> Cost | None:
        words: dict[str, Words] = {
            "inject": (str(urls),),
            "generate": ("-batchId", BATCH),
            "fetch": (BATCH, "-threads", THREADS),
            "index": ("-all",),
        }
        return None if name == _NO_JOB_OF_OURS else nutch(name, *words.get(name, (BATCH,)))

    return job


def servers() -> list[int]:
    """Return the process ids in ``NUTCH2PY_BENCH_SERVERS``, separated by spaces or commas."""
    return [int(each) for each in os.environ.get("NUTCH2PY_BENCH_SERVERS", "").replace(",", " ").split()]


def in_turns(
    names: Sequence[str],
    jobs: Sequence[Callable[[str], Cost | None]],
    rows: int,
    used: Callable[[], float] = lambda: cpu_seconds(servers()),
) -> list[Measurement]:
    """Run each job of a cycle for each of the programs ``names``; add a line with the sum of each.

    ``used`` returns the CPU seconds of servers so far.
    """
    found: list[Measurement] = []
    sums = {name: Cost(0.0, 0.0, 0, 0) for name in names}
    of_all = dict.fromkeys(names, 0.0)
    for job in _JOBS:
        for name, call in zip(names, jobs, strict=True):
            speed, before = calibration(), used()
            cost = call(job)
            if cost is None:
                continue
            of_servers = used() - before
            cost = replace(cost, cpu=cost.cpu + of_servers)
            sums[name], of_all[name] = sums[name] + cost, of_all[name] + of_servers
            found.append(Measurement(f"{job}, {name}", rows, cost, "pages", None, of_servers, speed))
    return found + [
        Measurement(f"cycle, {name}", rows, cost, "pages", servers=of_all[name]) for name, cost in sums.items()
    ]


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure our cycle, and the original's when it is configured."""
    seeds, hosts = folder / "seeds", folder / "hosts.txt"
    (folder / "ours").mkdir()
    run_ours = ours(folder / "ours", runner, hosts)
    names, jobs = [f"nutch2py, {runner}"], [lambda job: run_ours(job, seeds)]
    built = os.environ.get("NUTCH2PY_BENCH_NUTCH", "")
    if built:
        original = Original(Path(built).resolve(), folder / "original")
        names.append(original.name)
        jobs.append(lambda job: original(job, seeds, hosts))
    with site(rows, folder):
        seeds.mkdir()
        shutil.copy(folder / "all_urls.txt", seeds)
        return in_turns(names, jobs, rows)
