"""Read-only monitoring queries without a table scan: job log, table statistics, overview."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.joblog.job_log_store import read_entries, read_entry
from nutch2py.joblog.stored_overview import load_overview, load_table_stats
from nutch2py.joblog.table_stats import TableStats
from nutch2py.jobs.job_context import require_crawl_table
from nutch2py.jobs.stats.kept_stats import snapshot_table_stats
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import DataStore, open_store


def list_job_entries(conf: Configuration, limit: int, before: str | None) -> list[JobEntry]:
    """Return up to ``limit`` newest entries; with ``before`` only entries older than that id."""
    return read_entries(_open_log_store(conf), limit, before)


def get_job_entry(conf: Configuration, entry_id: str) -> JobEntry | None:
    """Return one entry, or None if it does not exist."""
    return read_entry(_open_log_store(conf), entry_id)


def get_table_stats(conf: Configuration) -> TableStats | None:
    """Return the table statistics, or None if unknown."""
    return snapshot_table_stats(_open_table(conf)) or load_table_stats(_open_log_store(conf))


def get_overview(conf: Configuration) -> Overview | None:
    """Return the overview, or None without one."""
    return load_overview(_open_log_store(conf))


def _open_log_store(conf: Configuration) -> DataStore[DerivedRow]:
    _open_table(conf)
    return open_store(conf, DerivedRow)


def _open_table(conf: Configuration) -> DataStore[WebPage]:
    """Return the table; raise StoreError if it does not exist. Interrupted journals of killed jobs stay unapplied."""
    store = open_store(conf, WebPage)
    require_crawl_table(store)
    return store
