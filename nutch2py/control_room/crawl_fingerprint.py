"""Fingerprint of a crawl for the live updates of the control room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import NutchError
from nutch2py.rest.job_control.job_processes import JobProcessManager

_JOBS_CHECKED = 20


def crawl_fingerprint(open_reader: Callable[[], CrawlReader], jobs: JobProcessManager) -> str:
    """Return a fingerprint of the newest jobs and their progress; a different fingerprint means a change.

    A job that fails before its first log entry shows only in its process.
    """
    processes = [(job.id, str(job.state)) for job in jobs.all()[:_JOBS_CHECKED]]
    try:
        with open_reader() as crawl:
            entries = crawl.jobs(_JOBS_CHECKED)
    except NutchError as error:  # no crawl yet, or its store is unavailable: the page reports it
        entries, problem = [], type(error).__name__
    else:
        problem = ""
    state = repr(
        (
            problem,
            processes,
            [(each.id, each.state, each.rows, each.expected, each.notes, each.finish_time) for each in entries],
        )
    )
    return hashlib.blake2b(state.encode(), digest_size=9).hexdigest()
