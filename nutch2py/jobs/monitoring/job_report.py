"""Prints the job log for the command ``jobs``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.monitoring.crawl_queries import get_job_entry, list_job_entries
from nutch2py.jobs.nutch_log_lines import format_duration, format_time
from nutch2py.support.reporting import print_output


def print_jobs(conf: Configuration, limit: int, as_json: bool = False) -> int:
    """Print the newest entries, one per line, newest first.

    Columns, separated by tabs: id, job, batch, state, start, duration, rows of expected rows, exit code, message;
    ``-`` for unknown or none. As JSON one :class:`JobEntry` object per line.
    """
    for entry in list_job_entries(conf, limit, None):
        print_output(_to_json(entry) if as_json else "\t".join(_to_columns(entry)))
    return 0


def print_job(conf: Configuration, entry_id: str, as_json: bool = False) -> int:
    """Print one entry, one line per field, or as JSON; return exit code 1 if it does not exist."""
    entry = get_job_entry(conf, entry_id)
    if entry is None:
        print_output(f"{entry_id} not found")
        return 1
    for line in [_to_json(entry)] if as_json else _to_lines(entry):
        print_output(line)
    return 0


def _to_json(entry: JobEntry) -> str:
    return msgspec.json.encode(entry).decode()


def _duration_seconds(entry: JobEntry) -> float:
    """Return the duration of a job in seconds, for an unfinished job up to its last heartbeat."""
    return max(0, (entry.last_seen if entry.finish_time is None else entry.finish_time) - entry.start_time) / 1000


def _format_rows(entry: JobEntry) -> str:
    return str(entry.rows) if entry.expected is None else f"{entry.rows}/{entry.expected}"


def _to_columns(entry: JobEntry) -> list[str]:
    code = "-" if entry.exit_code is None else str(entry.exit_code)
    duration = format_duration(_duration_seconds(entry))
    start = format_time(entry.start_time / 1000)
    return [
        entry.id,
        entry.job,
        entry.batch_id or "-",
        entry.state,
        start,
        duration,
        _format_rows(entry),
        code,
        entry.message or "-",
    ]


def _to_lines(entry: JobEntry) -> Iterator[str]:
    yield f"id:\t{entry.id}"
    yield f"job:\t{entry.job}"
    yield f"crawl:\t{entry.crawl_id or '-'}"
    yield f"batch:\t{entry.batch_id or '-'}"
    yield f"state:\t{entry.state}"
    yield f"began:\t{format_time(entry.start_time / 1000)}"
    if entry.finish_time is not None:
        yield f"ended:\t{format_time(entry.finish_time / 1000)}"
    if entry.state in (JobState.RUNNING, JobState.KILLED):
        yield f"seen:\t{format_time(entry.last_seen / 1000)}"
    yield f"time:\t{_duration_seconds(entry):.1f} s"
    yield f"cpu:\t{entry.cpu_ms / 1000:.1f} s"
    yield f"memory:\t{entry.peak_bytes / 2**20:.0f} MiB"
    yield f"process:\t{entry.pid} on {entry.host}, of {entry.user}"
    yield f"rows:\t{_format_rows(entry)}"
    for note in entry.notes:
        yield f"now:\t{note}"
    if entry.exit_code is not None:
        yield f"exit code:\t{entry.exit_code}"
    if entry.message:
        yield f"message:\t{entry.message}"
    for group, names in sorted(entry.counters.items()):
        for name, amount in sorted(names.items()):
            yield f"{group} {name}:\t{amount}"
    if entry.table_stats is not None:
        yield f"rows of the table:\t{entry.table_stats.rows}"
        for name, count in entry.table_stats.status.items():
            yield f"status {name}:\t{count}"
        if entry.table_stats.due is not None:
            yield f"due:\t{entry.table_stats.due}"
