"""Decides whether a job that is logged as running is dead: a dead job cannot log its end."""

from __future__ import annotations

import os

from nutch2py.joblog.job_entry import JobState, StoredJobEntry
from nutch2py.support.clock import now_ms
from nutch2py.support.process_identity import ProcessIdentity, process_start_time

SILENT_LEASES = 10
"""Leases without a heartbeat after which a job of another machine counts as killed; clocks may differ."""
OWN_RUNNING_IDS: set[str] = set()
"""Ids of the jobs that run in this process."""


def is_dead(stored: StoredJobEntry, held_tokens: frozenset[str] | None) -> bool:
    """Return whether a job in state ``running`` is dead.

    A local job is dead if its process is gone; a remote job if its lock is gone or its heartbeat is too old.
    """
    entry = stored.entry
    if entry.state != JobState.RUNNING:
        return False
    process = ProcessIdentity(entry.host, stored.machine, entry.pid, stored.started)
    if process.is_local():
        if entry.pid == os.getpid():
            return stored.started != process_start_time(entry.pid) or entry.id not in OWN_RUNNING_IDS
        return process.has_exited()
    if stored.token and held_tokens is not None and stored.token not in held_tokens:
        return True
    return now_ms() - entry.last_seen > SILENT_LEASES * stored.lease * 1000
