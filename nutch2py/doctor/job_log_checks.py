"""Checks of the job log: clock, last job and skipped URLs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, error_result, ok_result, warning_result
from nutch2py.errors import StoreError
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.jobs.monitoring.skip_reasons import iter_skipped_urls, sum_recent_counters
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.formatting import format_time
from nutch2py.table import open_store

CHECKED_ENTRIES = 500
"""Newest entries of the log that are checked."""
_MAX_AHEAD_MS = 60_000
_MIN_TIME_MS = 1_735_689_600_000  # 2025-01-01, before the first release
_KILLED_ADVICE = (
    "it was killed, the machine went down, or its disk was full. See the disk and memory checks and dmesg, then run it "
    "again"
)


def check_clock(conf: Configuration) -> Iterator[CheckResult]:
    """Check that the clock is plausible and not earlier than the job log."""
    now = int(time.time() * 1000)
    local_time = format_time(now)
    newest = max((entry.last_seen for entry in _read_entries(conf, 1)), default=0)
    if now < _MIN_TIME_MS:
        yield error_result(
            "clock",
            f"the time is {local_time}, which is before this version: set the clock, or no certificate is valid",
        )
    elif newest > now + _MAX_AHEAD_MS:
        message = f"the time is {local_time}, but the job log was written at {format_time(newest)}"
        yield warning_result("clock", f"{message}: synchronize all machines with NTP, or pages are fetched too late")
    else:
        yield ok_result("clock", local_time)


def check_last_job(conf: Configuration) -> Iterator[CheckResult]:
    """Report the result of the last job."""
    for entry in _read_entries(conf, 1):
        job = f"the last job, {entry.job}{f' of batch {entry.batch_id}' if entry.batch_id else ''}"
        if entry.state == JobState.FAILED:
            yield warning_result("jobs", f"{job}, failed: {entry.message}")
        elif entry.state == JobState.KILLED:
            yield warning_result("jobs", f"{job}, did not finish: {_KILLED_ADVICE}")
        else:
            results = {JobState.RUNNING: "is running", JobState.STOPPED: "was stopped; run it again to resume"}
            yield ok_result("jobs", f"{job}, {results.get(entry.state, 'finished')}")


def check_skipped(conf: Configuration) -> Iterator[CheckResult]:
    """Report the URLs that jobs of the last 24 hours skipped, with the settings that decide it."""
    totals = sum_recent_counters(_read_entries(conf, CHECKED_ENTRIES))
    for each in iter_skipped_urls(totals, conf):
        message = f"{each.number:,} {each}"
        yield (
            warning_result("skipped", message)
            if each.reason.is_fixable or not totals.fetched_count
            else ok_result("skipped", message)
        )


def _read_entries(conf: Configuration, limit: int) -> list[JobEntry]:
    try:
        return read_entries(open_store(conf, DerivedRow), limit)
    except StoreError:  # reported by the check of the table
        return []
