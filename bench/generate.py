"""generate: the best tenth of ROWS injected rows, URLs filtered and normalized."""

from __future__ import annotations

from pathlib import Path

from bench.inject import write_seeds
from bench.measuring import Measurement, Nutch

ROWS = (10_000, 100_000, 1_000_000)
AIMS = {100_000: 6.0}


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py generate -topN ROWS/10``; a record is a row read."""
    nutch = Nutch(folder, runner)
    nutch("inject", str(write_seeds(rows, folder)))
    cost = nutch("generate", "-topN", str(rows // 10), "-batchId", "bench")
    return [Measurement(f"generate {rows // 10:,} of {rows:,}", rows, cost, "rows", AIMS.get(rows))]
