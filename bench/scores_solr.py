"""scores-solr: like ``scores``, in a temporary Solr with our term fields."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measurement, Nutch
from bench.scores import PLUGINS, measured
from bench.services import service

ROWS = (10_000,)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure in Solr."""
    with service("solr") as solr:
        nutch = Nutch(folder, runner, **PLUGINS, **{"solr.server.url": solr.address})
        return measured(rows, nutch, "Solr", solr.cost_of)
