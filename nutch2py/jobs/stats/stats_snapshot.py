"""Table statistics without a scan, from the statistics that the store keeps with the rows."""

from __future__ import annotations

from nutch2py.joblog.table_stats import MAX_DUE_COUNT, ScoreSummary, TableStats
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore
from nutch2py.table.due_index import TimeSpan


def get_status_name(status: int) -> str:
    """Return the name of a status as ``readdb -stats`` prints it: ``status_fetched``; ``null`` for any other."""
    return CrawlStatus(status).label if status in [*CrawlStatus] else "null"


def snapshot_table_stats(store: DataStore[WebPage]) -> TableStats | None:
    """Return the current statistics of a table; None if the store keeps none."""
    index = store.due_index()
    if not index.has_statistics or index.unavailable_reason:
        return None
    kept = index.statistics()
    now = now_ms()
    return to_table_stats(StatsCollector.from_table_stats(kept), now, index.count([TimeSpan(0, now)], MAX_DUE_COUNT))


def to_table_stats(stats: StatsCollector, counted_at: int, due_rows: int | None = None) -> TableStats:
    """Convert collected counts."""
    status: dict[str, int] = {}
    for code, count in sorted(stats.status.items()):
        status[get_status_name(code)] = status.get(get_status_name(code), 0) + count
    score = None
    if stats.score_min is not None and stats.score_max is not None:
        sums = stats.score_min, stats.score_sum / stats.total, stats.score_max
        score = ScoreSummary(*(each / 1000.0 for each in sums))
    retries = {str(times): count for times, count in sorted(stats.retries.items())}
    return TableStats(
        counted_at, stats.total, status, retries, dict(stats.protocol), dict(stats.parse), score, due_rows
    )
