"""runners: generate, updatedb, pagerank of ROWS rows on local, hadoop (a temporary cluster), spark; two tasks each."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from bench import pagerank, updatedb
from bench.inject import write_seeds
from bench.measuring import Measurement, Nutch, cpu_seconds
from bench.services import Service, service
from nutch2py.conf.configuration import Configuration

ROWS = (200_000,)
_TASKS = {"mapreduce.job.maps": "2", "mapreduce.job.reduces": "2", "mapreduce.spark.master": "local[2]"}


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure on every available runner, on copies of the same tables; a record is a row, a page or a link."""
    nutch = Nutch(folder)
    nutch("inject", str(write_seeds(rows, folder)))
    (folder / "crawldata").rename(folder / "injected")
    for build, name in ((updatedb.build, "parsed"), (pagerank.build, "linked")):
        build(Configuration.load(overrides=nutch.settings), rows)
        (folder / "crawldata").rename(folder / name)
    measured = _measure(rows, folder, "local")
    if shutil.which("java") and shutil.which("mvn"):
        with service("hadoop") as hadoop:
            settings = {
                "mapreduce.hadoop.home": hadoop.address,
                "mapreduce.package": str(folder / "package.tar.gz"),
                "storage.embedded.shared": "true",
            }
            on_yarn = Nutch(folder, "hadoop", **settings)
            on_yarn("package")
            shutil.copytree(folder / "injected", folder / "crawldata")
            on_yarn("readdb", "-stats")  # the node unpacks the package once
            shutil.rmtree(folder / "crawldata")
            measured += _measure(rows, folder, "hadoop", settings, hadoop)
    if shutil.which("java") and importlib.util.find_spec("pyspark"):
        measured += _measure(rows, folder, "spark")
    else:
        print("spark: skipped, pyspark is not installed", file=sys.stderr)
    return measured


def _measure(
    rows: int, folder: Path, runner: str, settings: dict[str, str] | None = None, hadoop: Service | None = None
) -> list[Measurement]:
    nutch = Nutch(folder, runner, **_TASKS, **(settings or {}))
    found = []
    for table, words, records, unit in (
        ("injected", ("generate", "-topN", str(rows // 10), "-batchId", "bench"), rows, "rows"),
        ("parsed", ("updatedb", updatedb.BATCH), rows * (updatedb.LINKS + 1), "pages and links"),
        ("linked", ("pagerank", "-iterations", "5", "-D", "pagerank.method=mapreduce"), rows * pagerank.LINKS, "links"),
    ):
        shutil.copytree(folder / table, folder / "crawldata")
        servers = [] if hadoop is None else [*hadoop.processes().values()]
        before = cpu_seconds(servers)  # includes tasks that YARN has waited for
        cost = nutch(*words, servers=servers)
        cost = replace(cost, cpu=cost.cpu + cpu_seconds(servers) - before)
        shutil.rmtree(folder / "crawldata")
        print(f"{words[0]} on {runner}: {cost}", file=sys.stderr, flush=True)
        found.append(Measurement(f"{words[0]} on {runner}", records, cost, unit))
    return found
