"""What jobs that read every row keep of it for who watches: parts of the overview, and the figures, a row each.

The rows are ``m/overview/<part>`` and ``m/figures`` of the derived table. Each job writes its own part anew, so all
is bounded; who reads puts the parts together. That one cannot be written is no reason for a job to fail.
"""

from __future__ import annotations

import msgspec

from nutch2py.errors import NutchError
from nutch2py.joblog.crawl_overview import MAX_EDGES, MAX_HOSTS, Overview
from nutch2py.joblog.stored_json import decode_stored
from nutch2py.joblog.table_stats import TableStats
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.reporting import warn
from nutch2py.table import DataStore, TableQuery, prefix_range

OVERVIEW_PREFIX = "m/overview/"
TABLE_STATS_KEY = "m/figures"
_DATA = frozenset({DerivedRow.data})


def store_overview_part(store: DataStore[DerivedRow], part: str, overview: Overview) -> None:
    """Write what a job has seen, in the place of what it saw before. ``part``: its name."""
    _store_row(store, f"{OVERVIEW_PREFIX}{part}", overview)


def store_table_stats(store: DataStore[DerivedRow], table_stats: TableStats) -> None:
    """Write the figures that were counted."""
    _store_row(store, TABLE_STATS_KEY, table_stats)


def _store_row(store: DataStore[DerivedRow], key: str, kept: Overview | TableStats) -> None:
    row = DerivedRow()
    row.data = msgspec.json.encode(kept)
    try:
        store.create()
        with store.batch() as batch:
            batch.put(key, row)
    except NutchError as error:
        warn(f"what was seen of the crawl as a whole cannot be kept ({error})")


def load_table_stats(store: DataStore[DerivedRow]) -> TableStats | None:
    """Return the figures that were counted last, None for none."""
    row = store.get(TABLE_STATS_KEY, _DATA) if store.exists() else None
    return None if row is None else decode_stored(row.data or b"", TableStats)


def load_overview(store: DataStore[DerivedRow]) -> Overview | None:
    """Return all parts as one, the newest of each thing; None when there is none."""
    if not store.exists():
        return None
    rows = (row for _, row in store.scan(TableQuery(_DATA, prefix_range(OVERVIEW_PREFIX))))
    parts = sorted(
        (part for row in rows if (part := decode_stored(row.data or b"", Overview))), key=lambda part: part.counted_at
    )
    if not parts:
        return None
    hosts = [part for part in parts if part.hosts]
    edges = [part.edges for part in parts if part.edges]
    histograms = {name: each for part in parts for name, each in part.histograms.items()}
    return Overview(
        counted_at=parts[-1].counted_at,
        hosts=hosts[-1].hosts[:MAX_HOSTS] if hosts else (),
        host_count=hosts[-1].host_count if hosts else 0,
        edges=edges[-1][:MAX_EDGES] if edges else (),
        histograms=histograms,
    )
