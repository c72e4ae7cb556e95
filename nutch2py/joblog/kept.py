"""What jobs that read every row keep of it for who watches: parts of the overview, and the figures, a row each.

The rows are ``m/overview/<part>`` and ``m/figures`` of the derived table. Each job writes its own part anew, so all
is bounded; who reads puts the parts together. That one cannot be written is no reason for a job to fail.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from nutch2py.errors import NutchError
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.overview import MOST_EDGES, MOST_HOSTS, Overview
from nutch2py.reporting import warn
from nutch2py.table import DataStore, Query, prefix_range
from nutch2py.webpage import BatchEntry

PARTS = "m/overview/"
FIGURES = "m/figures"
_DATA = frozenset({BatchEntry.data})
T = TypeVar("T")


def keep_part(store: DataStore[BatchEntry], part: str, overview: Overview) -> None:
    """Write what a job has seen, in the place of what it saw before. ``part``: its name."""
    _keep(store, f"{PARTS}{part}", overview)


def keep_figures(store: DataStore[BatchEntry], figures: Figures) -> None:
    """Write the figures that were counted."""
    _keep(store, FIGURES, figures)


def _keep(store: DataStore[BatchEntry], key: str, kept: Overview | Figures) -> None:
    row = BatchEntry()
    row.data = msgspec.json.encode(kept)
    try:
        store.create()
        with store.batch() as batch:
            batch.put(key, row)
    except NutchError as error:
        warn(f"what was seen of the crawl as a whole cannot be kept ({error})")


def kept_figures(store: DataStore[BatchEntry]) -> Figures | None:
    """Return the figures that were counted last, None for none."""
    row = store.get(FIGURES, _DATA) if store.exists() else None
    return None if row is None else _decoded(row, Figures)


def kept_overview(store: DataStore[BatchEntry]) -> Overview | None:
    """Return all parts as one, the newest of each thing; None when there is none."""
    if not store.exists():
        return None
    rows = (row for _, row in store.scan(Query(_DATA, prefix_range(PARTS))))
    parts = sorted((part for row in rows if (part := _decoded(row, Overview))), key=lambda part: part.made)
    if not parts:
        return None
    hosts = [part for part in parts if part.hosts]
    edges = [part.edges for part in parts if part.edges]
    histograms = {name: each for part in parts for name, each in part.histograms.items()}
    return Overview(
        made=parts[-1].made,
        hosts=hosts[-1].hosts[:MOST_HOSTS] if hosts else (),
        all_hosts=hosts[-1].all_hosts if hosts else 0,
        edges=edges[-1][:MOST_EDGES] if edges else (),
        histograms=histograms,
    )


def _decoded(row: BatchEntry, kind: type[T]) -> T | None:
    """Return what a row holds; None for bytes of another program."""
    try:
        return msgspec.json.decode(row.data or b"", type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
