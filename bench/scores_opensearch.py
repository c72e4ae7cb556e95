"""scores-opensearch: like ``scores``, in an OpenSearch: with the shipped index, and with all fields in ``_source``."""

from __future__ import annotations

import json
from pathlib import Path

from bench.measuring import Measurement, Nutch
from bench.scores import PLUGINS, measured
from bench.services import service
from nutch2py.conf.configuration import data_dir

ROWS = (10_000,)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure in OpenSearch."""
    definition = json.loads((data_dir("schema") / "elastic" / "index.json").read_text(encoding="utf-8"))
    del definition["mappings"]["_source"]
    whole = folder / "whole.json"
    whole.write_text(json.dumps(definition), encoding="utf-8")
    found = []
    with service("opensearch") as opensearch:
        for name, more in (("OpenSearch", {}), ("OpenSearch, all in _source", {"elastic.index.file": str(whole)})):
            (place := folder / str(len(more))).mkdir()
            given = {"elastic.host": opensearch.address, "elastic.index": f"bench{len(more)}", **more}
            found += measured(rows, Nutch(place, runner, **PLUGINS, **given), name, opensearch.cost_of)
    return found
