"""What the job log tells: whether its time can be, how the last job ended, what the last crawl left out."""

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
"""Newest entries of the log that are looked at."""
_MAX_AHEAD_MS = 60_000  # ms
_MIN_TIME_MS = 1_735_689_600_000  # 2025: before this program was made
_KILLED_ADVICE = (
    "it was killed, or the machine went down, or its disk took nothing more: look above for disk and memory, and with "
    "dmesg; then run it again"
)


def check_clock(conf: Configuration) -> Iterator[CheckResult]:
    """Whether the time is one that can be."""
    now = int(time.time() * 1000)
    shown = format_time(now)
    newest = max((entry.last_seen for entry in _read_entries(conf, 1)), default=0)
    if now < _MIN_TIME_MS:
        yield error_result("clock", f"it is {shown} here, which cannot be: set the clock; no certificate is valid then")
    elif newest > now + _MAX_AHEAD_MS:
        told = f"it is {shown} here, and the job log was written at {format_time(newest)}"
        yield warning_result("clock", f"{told}: let NTP set the clocks of all machines, or pages are due too late")
    else:
        yield ok_result("clock", shown)


def check_last_job(conf: Configuration) -> Iterator[CheckResult]:
    """How the last job ended."""
    for entry in _read_entries(conf, 1):
        what = f"the last one, {entry.job}{f' of batch {entry.batch_id}' if entry.batch_id else ''}"
        if entry.state == JobState.FAILED:
            yield warning_result("jobs", f"{what}, failed: {entry.message}")
        elif entry.state == JobState.KILLED:
            yield warning_result("jobs", f"{what}, has not come to its end: {_KILLED_ADVICE}")
        else:
            how = {JobState.RUNNING: "runs", JobState.STOPPED: "was stopped, and goes on when it is run again"}
            yield ok_result("jobs", f"{what}, {how.get(entry.state, 'was done')}")


def check_skipped(conf: Configuration) -> Iterator[CheckResult]:
    """Whether the jobs of the last day left anything out, and what decides that."""
    tally = sum_recent_counters(_read_entries(conf, CHECKED_ENTRIES))
    for each in iter_skipped_urls(tally, conf):
        told = f"{each.number:,} {each}"
        yield (
            warning_result("left out", told)
            if each.reason.is_fixable or not tally.fetched_count
            else ok_result("left out", told)
        )


def _read_entries(conf: Configuration, limit: int) -> list[JobEntry]:
    try:
        return read_entries(open_store(conf, DerivedRow), limit)
    except StoreError:  # which the look at the table has told
        return []
