"""runners: generate, updatedb, pagerank of ROWS rows on local, hadoop (a cluster of its own), spark; two tasks each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import pagerank, updatedb
from bench.inject import write_seeds
from bench.measuring import Cost, Measurement, Nutch
from nutch2py.conf import Configuration

ROWS = (200_000,)
_SERVICES = Path(__file__).resolve().parent.parent / "scripts" / "services"
_TASKS = {"mapreduce.job.maps": "2", "mapreduce.job.reduces": "2", "mapreduce.spark.master": "local[2]"}


@contextmanager
def _cluster(folder: Path) -> Iterator[tuple[dict[str, str], int]]:
    """Start a Hadoop; give the properties of jobs there, and its process id."""
    name = ["hadoop", "--instance", f"bench-{os.getpid()}"]
    started = subprocess.run([_SERVICES, "start", *name], stdout=subprocess.PIPE, text=True, check=True)
    home = Path(started.stdout.strip())
    pid = int((home.parent / "run" / "cluster.pid").read_text())
    settings = {
        "mapreduce.hadoop.home": str(home),
        "mapreduce.package": str(folder / "package.tar.gz"),
        "storage.embedded.shared": "true",
    }
    try:
        yield settings, pid
    finally:
        subprocess.run([_SERVICES, "remove", *name], check=True)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended: of YARN, the tasks."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure on every runner that is there, on copies of the same tables; a record is a row, a page or a link."""
    nutch = Nutch(folder)
    nutch("inject", str(write_seeds(rows, folder)))
    (folder / "crawldata").rename(folder / "injected")
    for build, name in ((updatedb.build, "parsed"), (pagerank.build, "linked")):
        build(Configuration.load(overrides=nutch.settings), rows)
        (folder / "crawldata").rename(folder / name)
    measured = _measure(rows, folder, "local")
    if shutil.which("java") and shutil.which("mvn"):
        with _cluster(folder) as (settings, pid):
            on_yarn = Nutch(folder, "hadoop", **settings)
            on_yarn("package")
            shutil.copytree(folder / "injected", folder / "crawldata")
            on_yarn("readdb", "-stats")  # the node unpacks the package once
            shutil.rmtree(folder / "crawldata")
            measured += _measure(rows, folder, "hadoop", settings, (pid,))
    if shutil.which("java") and importlib.util.find_spec("pyspark"):
        measured += _measure(rows, folder, "spark")
    else:
        print("spark: left out, there is no pyspark", file=sys.stderr)
    return measured


def _measure(
    rows: int, folder: Path, runner: str, settings: dict[str, str] | None = None, servers: tuple[int, ...] = ()
) -> list[Measurement]:
    nutch = Nutch(folder, runner, **_TASKS, **(settings or {}))
    found = []
    for table, words, records, unit in (
        ("injected", ("generate", "-topN", str(rows // 10), "-batchId", "bench"), rows, "rows"),
        ("parsed", ("updatedb", updatedb.BATCH), rows * (updatedb.LINKS + 1), "pages and links"),
        ("linked", ("pagerank", "-iterations", "5", "-D", "pagerank.method=mapreduce"), rows * pagerank.LINKS, "links"),
    ):
        shutil.copytree(folder / table, folder / "crawldata")
        before = sum(map(_cpu, servers))
        cost: Cost = nutch(*words, servers=servers)
        cost = replace(cost, cpu=cost.cpu + sum(map(_cpu, servers)) - before)
        shutil.rmtree(folder / "crawldata")
        print(f"{words[0]} on {runner}: {cost}", file=sys.stderr, flush=True)
        found.append(Measurement(f"{words[0]} on {runner}", records, cost, unit))
    return found
