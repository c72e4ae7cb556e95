"""size-hbase: like size in HBase, with its servers' CPU and the due index; 5,000,000 by option."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measurement
from bench.services import service
from bench.size import sizes

ROWS = (100_000, 1_000_000)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure over a table in a temporary HBase."""
    data = folder / "hbase"
    with service("hbase", "size", data) as hbase:
        settings = {"storage.data.store": hbase.address, "hbase.due.index": "true"}
        return sizes(rows, folder, runner, data, settings, hbase.used)
