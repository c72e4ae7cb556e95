"""due-hbase: generate with 10,000 rows due of ROWS in HBase, by index and by scan; the cost of updating the index."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.due import DUE, build
from bench.measuring import Cost, Measurement, Nutch
from bench.services import service
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store

ROWS = (100_000, 1_000_000)
_RUNS = (
    ("index, exact check", "exact", "1"),
    ("index, sample", "sample", "1"),
    ("index, exact check, again", "exact", "1"),
    ("index, sample, again", "sample", "1"),
    ("scan", "exact", "0"),
    ("scan, again", "exact", "0"),
)
"""Name, ``hbase.due.check`` and ``generate.due.share`` of each generate."""


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure writing a table without and with the index, generate by index and by scan, and dueindex."""
    found: list[Measurement] = []

    def note(work: str, run: Callable[[], Cost]) -> None:
        cost, servers = hbase.cost_of(run)
        found.append(Measurement(work, rows, cost, "rows", servers=servers))
        message = f"{cost.wall:.1f} s, {cost.cpu - servers:.1f} CPU s, servers {servers:.1f}"
        print(f"  {work}: {message}", file=sys.stderr, flush=True)

    with service("hbase", "due", folder / "hbase") as hbase:
        settings = {"storage.data.store": hbase.address}
        for keeps in ("false", "true"):
            conf = Configuration.load(overrides={**settings, "hbase.due.index": keeps, "storage.crawl.id": keeps})
            word = "with" if keeps == "true" else "without"
            note(f"writing {rows:,} rows {word} the index", lambda conf=conf: _built(conf, rows))  # type: ignore[misc]
        open_store(conf, WebPage).due_index().record_full_scan(rows)
        nutch = Nutch(folder, runner, **settings, **{"hbase.due.index": "true", "storage.crawl.id": "true"})
        for number, (name, check, share) in enumerate(_RUNS):
            # Another clock, so that the rows marked by the previous run are available again.
            words = ["-adddays", f"{number / 1000}", "-D", "crawl.gen.delay=0"]
            words += ["-D", f"generate.due.share={share}", "-D", f"hbase.due.check={check}"]
            words += ["-D", "hbase.due.exact.share=1"]
            note(f"generate {DUE:,} due of {rows:,}, {name}", lambda words=words: nutch("generate", *words))  # type: ignore[misc]
        note(f"dueindex of {rows:,}", lambda: nutch("dueindex"))
    return found


def _built(conf: Configuration, rows: int) -> Cost:
    started, before = time.monotonic(), time.process_time()
    build(conf, rows)
    return Cost(time.process_time() - before, time.monotonic() - started, 0, 0)
