"""Stores the overview and the table statistics of a crawl in the derived table.

The rows are ``m/overview/<part>`` and ``m/figures``. Each job that scans the table replaces its own part, so the size
is bounded; readers merge the parts. A failed write is a warning and does not fail the job.
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
    """Replace a part of the overview; ``part``: its name, one per job."""
    _store_row(store, f"{OVERVIEW_PREFIX}{part}", overview)


def store_table_stats(store: DataStore[DerivedRow], table_stats: TableStats) -> None:
    """Replace the stored table statistics."""
    _store_row(store, TABLE_STATS_KEY, table_stats)


def _store_row(store: DataStore[DerivedRow], key: str, value: Overview | TableStats) -> None:
    row = DerivedRow()
    row.data = msgspec.json.encode(value)
    try:
        store.create()
        with store.batch() as batch:
            batch.put(key, row)
    except NutchError as error:
        warn(f"cannot store the overview of the crawl ({error}): the control room shows the one before")


def load_table_stats(store: DataStore[DerivedRow]) -> TableStats | None:
    """Return the stored table statistics, or None."""
    row = store.get(TABLE_STATS_KEY, _DATA) if store.exists() else None
    return None if row is None else decode_stored(row.data or b"", TableStats)


def load_overview(store: DataStore[DerivedRow]) -> Overview | None:
    """Merge the stored parts, the newest of each kind; return None without any."""
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
        page_kinds={kind: counts for part in parts for kind, counts in part.page_kinds.items()},
    )
