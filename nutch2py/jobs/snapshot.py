"""A snapshot of a crawl's table that costs no scan: the figures that the store keeps beside the rows."""

from __future__ import annotations

from nutch2py.joblog.figures import MOST_DUE, Figures, Spread
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.table import DataStore
from nutch2py.table.clock import now_ms
from nutch2py.table.due import Span
from nutch2py.webpage import CrawlStatus, WebPage


def status_name(status: int) -> str:
    """Return the name of a status as ``readdb -stats`` prints it: ``status_fetched``; ``null`` for any other."""
    return CrawlStatus(status).label if status in [*CrawlStatus] else "null"


def snapshot(store: DataStore[WebPage]) -> Figures | None:
    """Return the figures of a table as they are now; None where the store keeps none."""
    index = store.due_index()
    if not index.counts or index.trouble:
        return None
    kept = index.figures()
    now = now_ms()
    return figures_of(StatsCollector.of_figures(kept), now, index.count([Span(0, now)], MOST_DUE))


def figures_of(stats: StatsCollector, made: int, due: int | None = None) -> Figures:
    """Return what was counted."""
    status: dict[str, int] = {}
    for code, count in sorted(stats.status.items()):
        status[status_name(code)] = status.get(status_name(code), 0) + count
    score = None
    if stats.score_min is not None and stats.score_max is not None:
        sums = stats.score_min, stats.score_sum / stats.total, stats.score_max
        score = Spread(*(each / 1000.0 for each in sums))
    retries = {str(times): count for times, count in sorted(stats.retries.items())}
    return Figures(made, stats.total, status, retries, dict(stats.protocol), dict(stats.parse), score, due)
