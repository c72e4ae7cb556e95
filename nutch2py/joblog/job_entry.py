"""Entry of the job log: state, times, resources and counters of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.joblog.table_stats import TableStats


class JobState(StrEnum):
    """State of a job."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"  # by Ctrl-C or SIGTERM
    KILLED = "killed"  # without heartbeat, and without a logged end


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job of a crawl. Times are ms since 1970 by the clock of ``host``.

    Attributes:
        id: Identifier; sorts by start time.
        job: Name of the command.
        crawl_id: Identifier of the crawl, "" for none.
        batch_id: Batch of the job, "" for none.
        state: State of the job.
        start_time: Start of the job.
        finish_time: End of the job; None while it runs and for a killed job.
        last_seen: Last heartbeat.
        host: Machine of the process.
        pid: Process id.
        user: User of the process.
        exit_code: Exit code; None until the end.
        message: Cause of a failure, in one line, without secrets.
        rows: Rows processed by the current step; after the end by the step with the most rows. 0 on Hadoop.
        expected: Estimated number of rows.
        notes: Progress lines of up to 16 running tasks. Those of a fetch have pages per second, active queues,
            requests in progress, errors by kind and the remaining time.
        counters: By group and name, summed over the finished steps.
        cpu_ms: CPU time of the process and its finished children, and of tasks on Hadoop.
        peak_bytes: Peak memory of the largest process.
        table_stats: Table statistics at the end of the job; None if unknown.
        queues: Up to 20 fetch queues of a running fetch that will take longest; empty on Hadoop.
        properties: Properties of the job that differ from the shipped defaults, without secrets; None if unknown.
    """

    id: str
    job: str
    crawl_id: str
    batch_id: str
    state: JobState
    start_time: int
    finish_time: int | None
    last_seen: int
    host: str
    pid: int
    user: str
    exit_code: int | None = None
    message: str = ""
    rows: int = 0
    expected: int | None = None
    notes: tuple[str, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cpu_ms: int = 0
    peak_bytes: int = 0
    table_stats: TableStats | None = None
    properties: Mapping[str, str] | None = None
    queues: tuple[QueueState, ...] = ()


class StoredJobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row: the entry, and the identity of its process and lock for liveness checks.

    Attributes:
        entry: The entry.
        token: Lock token, "" for none.
        machine: Machine id of the process.
        started: Start time of the process, as the system reports it.
        lease: Lease of the lock in seconds.
    """

    entry: JobEntry
    token: str = ""
    machine: str = ""
    started: str = ""
    lease: float = 60.0
