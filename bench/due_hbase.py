"""due-hbase: generate with 10,000 rows due of ROWS in HBase, by index and by scan; what keeping the index costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.due import DUE, build
from bench.hbase import SERVICES, server_seconds
from bench.measuring import Cost, Measurement, Nutch
from nutch2py.conf import Configuration
from nutch2py.table import open_store
from nutch2py.webpage import WebPage

ROWS = (100_000, 1_000_000)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure writing a table without the index and with it, generate by index and by scan, and dueindex."""
    instance = f"bench-due-{os.getpid()}"
    options = ["hbase", "--instance", instance, "--data", str(folder / "hbase")]
    started = subprocess.run([SERVICES, "start", *options], stdout=subprocess.PIPE, text=True, check=True)
    found: list[Measurement] = []

    def note(work: str, run: Callable[[], Cost]) -> None:
        before = sum(server_seconds(instance).values())
        cost = run()
        servers = sum(server_seconds(instance).values()) - before
        found.append(Measurement(work, rows, replace(cost, cpu=cost.cpu + servers), "rows", servers=servers))
        print(f"  {work}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s, servers {servers:.1f}", file=sys.stderr, flush=True)

    try:
        settings = {"storage.data.store": started.stdout.strip()}
        for keeps in ("false", "true"):
            conf = Configuration.load(overrides={**settings, "hbase.due.index": keeps, "storage.crawl.id": keeps})
            word = "with" if keeps == "true" else "without"
            note(f"writing {rows:,} rows {word} the index", lambda conf=conf: _built(conf, rows))  # type: ignore[misc]
        open_store(conf, WebPage).due_index().looked(rows)
        nutch = Nutch(folder, runner, **settings, **{"hbase.due.index": "true", "storage.crawl.id": "true"})
        for number, (name, share) in enumerate((("index", "1"), ("index, again", "1"), ("scan", "0"))):
            # with another clock, so that the rows that the one before has marked are free again
            words = ["-adddays", f"{number / 1000}", "-D", f"generate.due.share={share}", "-D", "crawl.gen.delay=0"]
            note(f"generate {DUE:,} due of {rows:,}, {name}", lambda words=words: nutch("generate", *words))  # type: ignore[misc]
        note(f"dueindex of {rows:,}", lambda: nutch("dueindex"))
    finally:
        subprocess.run([SERVICES, "remove", *options], check=True, stdout=sys.stderr)
    return found


def _built(conf: Configuration, rows: int) -> Cost:
    began, before = time.monotonic(), time.process_time()
    build(conf, rows)
    return Cost(time.process_time() - before, time.monotonic() - began, 0, 0)
