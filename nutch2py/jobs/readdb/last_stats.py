"""Table statistics without a table scan: those kept with the table, or the last counted ones.

The HBase store keeps no statistics (see docs/design.md). There the last counted ones are in the derived table, with the
start time of the count. The job log lists the jobs that ran since then, as far as it goes back.
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
from nutch2py.jobs.locking.lock_scopes import STATS_CHANGING_JOBS, STATS_JOB_NAME
from nutch2py.jobs.monitoring.batch_report import format_age
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.jobs.stats.kept_stats import get_kept_stats
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, open_store

KEPT_STATS_SOURCE = "kept by the jobs (-exact reads every row)"
_MAX_LOG_ENTRIES = 1_000  # newest entries of the job log
_KILLED_JOB_GRACE_MS = 60_000  # ms that a killed job may have run after its last heartbeat


@dataclass(frozen=True)
class LastStats:
    """The last counted statistics.

    Attributes:
        stats: The statistics.
        counted_at: Start of the count, ms since 1970.
        jobs_since: Number of later jobs by name that may have changed the statistics. Running and killed jobs have
            their state in the name. None if the job log does not go back to the count.
    """

    stats: StatsCollector
    counted_at: int
    jobs_since: Mapping[str, int] | None

    def describe_source(self, now: int) -> str:
        """Return the source of the statistics as text."""
        if self.stats.kept:
            return KEPT_STATS_SOURCE
        age = format_age(max(0, now - self.counted_at) // 1000)
        source = f"counted {format_time(self.counted_at / 1000)}, {age} ago"
        if self.jobs_since is None:
            return f"{source}; jobs since then are unknown (joblog.keep)"
        jobs = ", ".join(name if count == 1 else f"{count} {name}" for name, count in self.jobs_since.items())
        return f"{source}; jobs since then: {jobs or 'none that changes them'}"


def get_last_stats(conf: Configuration, store: DataStore[WebPage]) -> LastStats:
    """Return the statistics that are available without a scan; raise StoreError if none were counted yet."""
    kept = get_kept_stats(store)
    if kept is not None:
        return LastStats(kept, now_ms(), {})
    log = open_store(conf, DerivedRow)
    table_stats = load_table_stats(log)
    if table_stats is None:
        raise StoreError(f"no statistics of {store.name} were counted yet: run readdb -stats without -last")
    return LastStats(
        StatsCollector.from_table_stats(table_stats),
        table_stats.counted_at,
        _count_jobs_since(log, table_stats.counted_at),
    )


def _count_jobs_since(store: DataStore[DerivedRow], counted_at: int) -> dict[str, int] | None:
    found: Counter[str] = Counter()
    after = True  # after the count, by the order of the log: clocks differ and may be set
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
