"""size-hbase: the same as size in HBase, its servers' CPU counted, what is due by its index; 5,000,000 by option."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.hbase import SERVICES, server_seconds
from bench.measuring import Measurement
from bench.size import sizes

ROWS = (100_000, 1_000_000)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure over a table in an HBase of its own."""
    instance, data = f"bench-size-{os.getpid()}", folder / "hbase"
    options = ["hbase", "--instance", instance, "--data", str(data)]
    started = subprocess.run([SERVICES, "start", *options], stdout=subprocess.PIPE, text=True, check=True)
    settings = {"storage.data.store": started.stdout.strip(), "hbase.due.index": "true"}
    try:
        return sizes(rows, folder, runner, data, settings, lambda: sum(server_seconds(instance).values()))
    finally:
        subprocess.run([SERVICES, "remove", *options], check=True, stdout=sys.stderr)
