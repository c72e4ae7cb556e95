"""Groups job log entries into rounds, and computes rates and remaining times of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.mapreduce.driver import JobResult

GENERATE = "generate"
TIMED_JOBS = ("generate", "fetch", "parse", "updatedb", "index")
OTHER_TIME = "other"
"""Name of the time of a round in other jobs than :data:`TIMED_JOBS`, and between its jobs."""
UNSUCCESSFUL_STATES = frozenset({JobState.FAILED, JobState.KILLED, JobState.STOPPED})


@dataclass
class Round:
    """The jobs of one batch. ``number``: from 1 among the known rounds. ``entries``: in order of their start."""

    number: int
    batch_id: str
    entries: list[JobEntry] = field(default_factory=list)

    @property
    def start_time(self) -> int:
        """Start of the first job, in ms since 1970."""
        return self.entries[0].start_time

    @property
    def finish_time(self) -> int:
        """Last heartbeat or end of its jobs, in ms since 1970."""
        return max(map(finish_time, self.entries))

    @property
    def is_running(self) -> bool:
        """Whether a job is running."""
        return any(entry.state == JobState.RUNNING for entry in self.entries)

    @property
    def has_failed(self) -> bool:
        """Whether a job failed, was stopped or was killed."""
        return any(entry.state in UNSUCCESSFUL_STATES for entry in self.entries)

    @cached_property
    def totals(self) -> CounterTotals:
        """Summed counters of its jobs. Cached: add no entry after the first access."""
        return sum_counters(self.entries)

    def durations_by_job(self) -> dict[str, int]:
        """Return the milliseconds of each of :data:`TIMED_JOBS`; :data:`OTHER_TIME` is the rest of the round."""
        durations: Counter[str] = Counter()
        at = self.start_time
        for entry in sorted(self.entries, key=lambda entry: entry.start_time):
            end = finish_time(entry)
            durations[OTHER_TIME] += max(entry.start_time - at, 0)
            durations[entry.job if entry.job in TIMED_JOBS else OTHER_TIME] += max(end - max(entry.start_time, at), 0)
            at = max(at, end)
        return dict(+durations)

    @property
    def generated_count(self) -> int:
        """Number of rows that generate selected."""
        return self.totals.totals.count("generator", "generated")

    @property
    def pending_count(self) -> int:
        """Number of selected rows without a result: deferred to a later round, or not fetched yet."""
        return max(self.generated_count - self.totals.attempted_count, 0)


def group_rounds(entries: Sequence[JobEntry]) -> list[Round]:
    """Group entries into rounds, oldest first.

    A job on ``-all`` belongs to the last batch generated before it. Jobs without a batch belong to no round. A generate
    that selected nothing starts no round.
    """
    rounds: dict[str, Round] = {}
    last = ""
    for entry in sorted(entries, key=lambda entry: entry.id):
        if not entry.batch_id:
            continue
        if entry.job == GENERATE:
            last = entry.batch_id
        name = last or entry.batch_id if entry.batch_id.startswith("-") else entry.batch_id
        if name not in rounds:
            rounds[name] = Round(0, name)
        rounds[name].entries.append(entry)
    result = [each for each in rounds.values() if _is_round(each.entries)]
    for number, each in enumerate(result, 1):
        each.number = number
    return result


def _is_round(entries: Sequence[JobEntry]) -> bool:
    """Return whether jobs form a round: rows were selected, or another job than generate names the batch."""
    for entry in entries:
        empty = entry.state == JobState.FINISHED and not entry.counters.get("generator", {}).get("generated")
        if not entry.batch_id.startswith("-") and not (entry.job == GENERATE and empty):
            return True
    return False


def sum_counters(entries: Sequence[JobEntry]) -> CounterTotals:
    """Return the summed counters of jobs."""
    totals = CounterTotals()
    for entry in entries:
        totals.add(JobResult({group: dict(names) for group, names in entry.counters.items()}))
    return totals


def finish_time(entry: JobEntry) -> int:
    """Return the end of a job, or its last heartbeat, in ms since 1970."""
    return max(entry.last_seen if entry.finish_time is None else entry.finish_time, entry.start_time)


def rows_per_second(entry: JobEntry) -> float:
    """Return the mean rows per second since the start of the job; 0 without rows."""
    return 1000 * entry.rows / max(finish_time(entry) - entry.start_time, 1000) if entry.rows else 0.0


def remaining_ms(entry: JobEntry) -> int | None:
    """Return the estimated remaining milliseconds of a running job, None when unknown."""
    rate = rows_per_second(entry)
    if entry.state != JobState.RUNNING or entry.expected is None or not rate or entry.rows >= entry.expected:
        return None
    return round(1000 * (entry.expected - entry.rows) / rate)
