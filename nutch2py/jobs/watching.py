"""What is told to who watches a crawl: its job log, the figures of its table, and its overview. Nothing is scanned."""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.joblog.entry import JobEntry
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.kept import kept_figures, kept_overview
from nutch2py.joblog.overview import Overview
from nutch2py.joblog.stored import read_entries, read_entry
from nutch2py.jobs.beginning import check_crawl
from nutch2py.jobs.snapshot import snapshot
from nutch2py.table import DataStore, open_store
from nutch2py.webpage import BatchEntry, WebPage


def logged_jobs(conf: Configuration, limit: int, before: str | None) -> list[JobEntry]:
    """Return the newest entries, ``limit`` at most, of those before the entry ``before``."""
    return read_entries(_log(conf), limit, before)


def logged_job(conf: Configuration, entry_id: str) -> JobEntry | None:
    """Return one entry, None when there is none."""
    return read_entry(_log(conf), entry_id)


def figures(conf: Configuration) -> Figures | None:
    """Return the figures of the table."""
    return snapshot(_pages(conf)) or kept_figures(_log(conf))


def overview(conf: Configuration) -> Overview | None:
    """Return what jobs have seen of the crawl as a whole."""
    return kept_overview(_log(conf))


def _log(conf: Configuration) -> DataStore[BatchEntry]:
    _pages(conf)
    return open_store(conf, BatchEntry)


def _pages(conf: Configuration) -> DataStore[WebPage]:
    """Return the table; StoreError when there is no such crawl. What a killed job left is not finished by who looks."""
    store = open_store(conf, WebPage)
    check_crawl(store)
    return store
