"""Pages and documents for the tests of this package."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.records.cells import ParseStatus
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

ALL_INDEXES = [
    "embedded",
    pytest.param("solr", marks=pytest.mark.server("solr_server")),
    pytest.param("elastic", marks=pytest.mark.server("opensearch_server")),
]
"""Parameters of a fixture that gives each kind of index."""


def page(**values: Any) -> WebPage:
    """Return a successfully parsed page with ``values``."""
    made = WebPage()
    made.parse_status = ParseStatus(1)
    made.status = 2
    for name, value in values.items():
        setattr(made, name, value)
    return made


def doc(doc_id: str, **fields: str | list[str]) -> NutchDocument:
    """Return a document with an id and fields."""
    made = NutchDocument()
    made.add("id", doc_id)
    for name, value in fields.items():
        for one in [value] if isinstance(value, str) else value:
            made.add(name, one)
    return made


def recorded_rows(recording: Path) -> Iterator[tuple[str, dict[bytes, dict[bytes, bytes]]]]:
    """Yield key and cells of the recorded table as of after its last job."""
    with gzip.open(recording / "dumps" / "round5-index.jsonl.gz", "rt", encoding="utf-8") as dump:
        for line in dump:
            row = json.loads(line)
            cells: dict[bytes, dict[bytes, bytes]] = {}
            for column, (value, _) in row["cells"].items():
                family, _, qualifier = column.partition(":")
                cells.setdefault(family.encode(), {})[qualifier.encode()] = base64.b64decode(value)
            yield row["row"], cells
