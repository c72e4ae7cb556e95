"""JobEntry: a job in the log of its crawl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nutch2py.joblog.table_stats import TableStats


class JobState(StrEnum):
    """How a job is, or how it ended."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"  # by Ctrl-C or SIGTERM
    KILLED = "killed"  # it gives no sign of life, and has not said that it ended


@dataclass(frozen=True, slots=True)
class JobEntry:
    """What one job did to a crawl, or does.

    ``id`` sorts by the time at which jobs began. ``job``: the command's name; ``batch_id``: "" for none. ``start_time``,
    ``finish_time`` (None while it runs, and for one that was killed) and ``last_seen``, the last sign of life, are ms since 1970
    by the clock of ``host``. ``pid``, ``user``: whose process it was. ``exit_code``: None until it has ended;
    ``message``: why it failed, in one line, without secrets. ``rows``: rows that its step at work has done (the one
    that did most, when it has ended; 0 on Hadoop), of about ``expected``.
    ``notes``: how its tasks go in their own words while it runs, of a fetch pages a second, queues (hosts that have
    something to ask), requests under way, errors by kind and the time left, of 16 tasks at most. ``counters``: by
    group and name, of the steps that are done. ``cpu_ms``: CPU time of its process and the children that have ended,
    of tasks on Hadoop too; ``peak_bytes``: the most memory that one process of it had. ``table_stats``: of the table when
    it had ended, None when not known.
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
