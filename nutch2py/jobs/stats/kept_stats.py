"""Table statistics without a scan, from the statistics that the store keeps with the rows."""

from __future__ import annotations

from nutch2py.joblog.table_stats import MAX_DUE_COUNT, TableStats
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.webpage import WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore
from nutch2py.table.due_index import DueIndex, RowStatistics, TimeSpan


def get_kept_stats(store: DataStore[WebPage]) -> StatsCollector | None:
    """Return the statistics kept with the table; None if the store keeps none or a row is unreadable."""
    kept = _read_statistics(store.due_index())
    return None if kept is None or kept.unreadable else StatsCollector.from_row_statistics(kept)


def snapshot_table_stats(store: DataStore[WebPage]) -> TableStats | None:
    """Return the current statistics of a table with its due rows; None if the store keeps none."""
    index = store.due_index()
    kept = _read_statistics(index)
    if kept is None:
        return None
    now = now_ms()
    due_rows = index.count([TimeSpan(0, now)], MAX_DUE_COUNT)
    return StatsCollector.from_row_statistics(kept).to_table_stats(now, due_rows)


def _read_statistics(index: DueIndex) -> RowStatistics | None:
    return index.statistics() if index.has_statistics and not index.unavailable_reason else None
