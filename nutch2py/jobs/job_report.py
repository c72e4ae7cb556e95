"""What the command ``jobs`` prints of the job log."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nutch2py.conf import Configuration
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.jobs.job_lines import clock, elapsed
from nutch2py.jobs.watching import logged_job, logged_jobs
from nutch2py.reporting import say


def print_jobs(conf: Configuration, most: int, as_json: bool = False) -> int:
    """Print the newest entries, a line each, the newest first.

    Columns, between tabs: id, job, batch, state, when it began, how long it took, rows done of those expected, exit
    code, why it failed; ``-`` for what is not known or not there. As JSON one object a line: :class:`JobEntry`.
    """
    for entry in logged_jobs(conf, most, None):
        say(_json(entry) if as_json else "\t".join(_columns(entry)))
    return 0


def print_job(conf: Configuration, entry_id: str, as_json: bool = False) -> int:
    """Print all of one entry, a line for each thing, or as JSON; exit code 1 when there is none."""
    entry = logged_job(conf, entry_id)
    if entry is None:
        say(f"{entry_id} not found")
        return 1
    for line in [_json(entry)] if as_json else _lines(entry):
        say(line)
    return 0


def _json(entry: JobEntry) -> str:
    return msgspec.json.encode(entry).decode()


def _seconds(entry: JobEntry) -> float:
    """Return how long a job took, or has taken up to its last sign of life."""
    return max(0, (entry.seen if entry.ended is None else entry.ended) - entry.begun) / 1000


def _rows(entry: JobEntry) -> str:
    return str(entry.done) if entry.expected is None else f"{entry.done}/{entry.expected}"


def _columns(entry: JobEntry) -> list[str]:
    code = "-" if entry.exit_code is None else str(entry.exit_code)
    took = elapsed(_seconds(entry))
    begun = clock(entry.begun / 1000)
    return [
        entry.id,
        entry.job,
        entry.batch_id or "-",
        entry.state,
        begun,
        took,
        _rows(entry),
        code,
        entry.message or "-",
    ]


def _lines(entry: JobEntry) -> Iterator[str]:
    yield f"id:\t{entry.id}"
    yield f"job:\t{entry.job}"
    yield f"crawl:\t{entry.crawl_id or '-'}"
    yield f"batch:\t{entry.batch_id or '-'}"
    yield f"state:\t{entry.state}"
    yield f"began:\t{clock(entry.begun / 1000)}"
    if entry.ended is not None:
        yield f"ended:\t{clock(entry.ended / 1000)}"
    if entry.state in (JobState.RUNNING, JobState.KILLED):
        yield f"seen:\t{clock(entry.seen / 1000)}"
    yield f"time:\t{_seconds(entry):.1f} s"
    yield f"cpu:\t{entry.cpu_ms / 1000:.1f} s"
    yield f"memory:\t{entry.peak_bytes / 2**20:.0f} MiB"
    yield f"process:\t{entry.pid} on {entry.host}, of {entry.user}"
    yield f"rows:\t{_rows(entry)}"
    for note in entry.notes:
        yield f"now:\t{note}"
    if entry.exit_code is not None:
        yield f"exit code:\t{entry.exit_code}"
    if entry.message:
        yield f"message:\t{entry.message}"
    for group, names in sorted(entry.counters.items()):
        for name, amount in sorted(names.items()):
            yield f"{group} {name}:\t{amount}"
    if entry.figures is not None:
        yield f"rows of the table:\t{entry.figures.rows}"
        for name, count in entry.figures.status.items():
            yield f"status {name}:\t{count}"
        if entry.figures.due is not None:
            yield f"due:\t{entry.figures.due}"
