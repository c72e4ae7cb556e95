"""scores-solr: as ``scores``, in a Solr of its own, with words of ours."""

from __future__ import annotations

from pathlib import Path

from bench.index import beside, server
from bench.measuring import Measurement, Nutch
from bench.scores import PLUGINS, measured

ROWS = (10_000,)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure in Solr."""
    with server("solr") as (address, pid):
        nutch = Nutch(folder, runner, **PLUGINS, **{"solr.server.url": address})
        return measured(rows, nutch, "Solr", beside(pid))
