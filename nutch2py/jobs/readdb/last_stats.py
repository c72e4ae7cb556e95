"""Statistics of a table without reading it: those that jobs keep, or those that were counted last.

HBase keeps none (docs/design.md tells why). There the last ones stand in the derived table, with the time at which the
counting began; the job log tells what has been at work since, as far as it goes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.joblog.job_entry import JobState
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.joblog.stored_overview import load_table_stats
from nutch2py.joblog.table_stats import TableStats
from nutch2py.jobs.locking.lock_scopes import STATS_CHANGING_JOBS, STATS_JOB_NAME
from nutch2py.jobs.monitoring.batch_report import format_age
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.webpage import CrawlStatus, DerivedRow, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, open_store

KEPT_STATS_SOURCE = "kept by the jobs (-exact reads every row)"
_MAX_LOG_ENTRIES = 1_000  # entries of the job log, the newest
_KILLED_JOB_GRACE_MS = 60_000  # ms that a killed job may have lived behind its last sign of life


@dataclass(frozen=True)
class LastStats:
    """``stats`` as they were when the counting began, ``counted_at`` (ms since 1970).

    ``jobs_since``: how many jobs of each name that may have changed them were at work since then; one that still is, or was
    killed, has a name of its own. None where the job log cannot tell, as it does not go back to the counting.
    """

    stats: StatsCollector
    counted_at: int
    jobs_since: Mapping[str, int] | None

    def describe_source(self, now: int) -> str:
        """Return in words where the figures come from."""
        if self.stats.kept:
            return KEPT_STATS_SOURCE
        age = format_age(max(0, now - self.counted_at) // 1000)
        told = f"counted {format_time(self.counted_at / 1000)}, {age} ago"
        if self.jobs_since is None:
            return f"{told}; what has been at work since is not known (joblog.keep)"
        jobs = ", ".join(name if count == 1 else f"{count} {name}" for name, count in self.jobs_since.items())
        return f"{told}; at work since then: {jobs or 'no job that changes them'}"


def get_kept_stats(store: DataStore[WebPage]) -> StatsCollector | None:
    """Return the statistics that jobs keep with the table; None where they keep none, or some row cannot be read."""
    index = store.due_index()
    if not index.has_statistics or index.unavailable_reason:
        return None
    figures = index.statistics()
    return None if figures.unreadable else StatsCollector.from_table_stats(figures)


def get_last_stats(conf: Configuration, store: DataStore[WebPage]) -> LastStats:
    """Return what is known without reading a row; :class:`nutch2py.errors.StoreError` when nothing was counted yet."""
    kept = get_kept_stats(store)
    if kept is not None:
        return LastStats(kept, now_ms(), {})
    log = open_store(conf, DerivedRow)
    figures = load_table_stats(log)
    if figures is None:
        raise StoreError(f"no figures of {store.name} were counted yet: readdb -stats without -last counts them")
    return LastStats(to_stats_collector(figures), figures.counted_at, _count_jobs_since(log, figures.counted_at))


def _count_jobs_since(store: DataStore[DerivedRow], counted_at: int) -> dict[str, int] | None:
    found: Counter[str] = Counter()
    after = True  # the counting: by the order of the log, as clocks are set, and differ
    for entry in read_entries(store, _MAX_LOG_ENTRIES):
        running = entry.state == JobState.RUNNING
        until = entry.last_seen + _KILLED_JOB_GRACE_MS if entry.finish_time is None else entry.finish_time
        if entry.job == STATS_JOB_NAME and (
            entry.start_time <= counted_at <= until
            if entry.table_stats is None
            else entry.table_stats.counted_at == counted_at
        ):
            after = False
        elif entry.job in STATS_CHANGING_JOBS and (after or running or until >= counted_at):
            found[f"{entry.job} ({entry.state})" if entry.finish_time is None else entry.job] += 1
    return None if after else dict(sorted(found.items()))


def to_stats_collector(figures: TableStats) -> StatsCollector:
    """Return what was counted, from the figures that are kept of it; statuses without a name count as 0."""
    stats = StatsCollector()
    codes = {status.label: int(status) for status in CrawlStatus}
    stats.total = figures.rows
    for name, count in figures.status.items():
        stats.status[codes.get(name, 0)] += count
    stats.retries.update({int(times): count for times, count in figures.retries.items()})
    stats.protocol.update(figures.protocol)
    stats.parse.update(figures.parse)
    if figures.score is not None:
        least, mean, greatest = (each * 1000.0 for each in figures.score)
        stats.score_min, stats.score_max = round(least), round(greatest)
        stats.score_sum = round(mean * figures.rows)
    return stats
