"""What the job log tells: whether its time can be, how the last job ended, what the last crawl left out."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nutch2py.conf import Configuration
from nutch2py.doctor.finding import Finding, bad, doubtful, good
from nutch2py.errors import StoreError
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.stored import read_entries
from nutch2py.jobs.left_out import left_out, recent
from nutch2py.pictures.words import moment
from nutch2py.table import open_store
from nutch2py.webpage import BatchEntry

ENTRIES = 500
"""Newest entries of the log that are looked at."""
_AHEAD = 60_000  # ms
_LEAST_TIME = 1_735_689_600_000  # 2025: before this program was made
_KILLED = (
    "it was killed, or the machine went down, or its disk took nothing more: look above for disk and memory, and with "
    "dmesg; then run it again"
)


def clock(conf: Configuration) -> Iterator[Finding]:
    """Whether the time is one that can be."""
    now = int(time.time() * 1000)
    shown = moment(now)
    newest = max((entry.seen for entry in _entries(conf, 1)), default=0)
    if now < _LEAST_TIME:
        yield bad("clock", f"it is {shown} here, which cannot be: set the clock; no certificate is valid then")
    elif newest > now + _AHEAD:
        told = f"it is {shown} here, and the job log was written at {moment(newest)}"
        yield doubtful("clock", f"{told}: let NTP set the clocks of all machines, or pages are due too late")
    else:
        yield good("clock", shown)


def last_job(conf: Configuration) -> Iterator[Finding]:
    """How the last job ended."""
    for entry in _entries(conf, 1):
        what = f"the last one, {entry.job}{f' of batch {entry.batch_id}' if entry.batch_id else ''}"
        if entry.state == JobState.FAILED:
            yield doubtful("jobs", f"{what}, failed: {entry.message}")
        elif entry.state == JobState.KILLED:
            yield doubtful("jobs", f"{what}, has not come to its end: {_KILLED}")
        else:
            how = {JobState.RUNNING: "runs", JobState.STOPPED: "was stopped, and goes on when it is run again"}
            yield good("jobs", f"{what}, {how.get(entry.state, 'was done')}")


def lost(conf: Configuration) -> Iterator[Finding]:
    """Whether the jobs of the last day left anything out, and what decides that."""
    tally = recent(_entries(conf, ENTRIES))
    for each in left_out(tally, conf):
        told = f"{each.number:,} {each}"
        yield doubtful("left out", told) if each.reason.ours or not tally.good else good("left out", told)


def _entries(conf: Configuration, limit: int) -> list[JobEntry]:
    try:
        return read_entries(open_store(conf, BatchEntry), limit)
    except StoreError:  # which the look at the table has told
        return []
