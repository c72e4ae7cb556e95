"""The entries of the job log, put together: what belongs to a round, how fast a job is, how far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.mapreduce.driver import JobResult

GENERATE = "generate"
UNSUCCESSFUL_STATES = frozenset({JobState.FAILED, JobState.KILLED, JobState.STOPPED})


@dataclass
class Round:
    """What jobs did to one batch: ``number`` from 1 on among those that are known, ``entries`` as they began."""

    number: int
    batch_id: str
    entries: list[JobEntry] = field(default_factory=list)

    @property
    def start_time(self) -> int:
        """When the first of its jobs began, ms since 1970."""
        return self.entries[0].start_time

    @property
    def finish_time(self) -> int:
        """The last sign of life of its jobs, ms since 1970."""
        return max(map(finish_time, self.entries))

    @property
    def is_running(self) -> bool:
        """Whether one of its jobs runs."""
        return any(entry.state == JobState.RUNNING for entry in self.entries)

    @property
    def has_failed(self) -> bool:
        """Whether one of its jobs has not come to its end."""
        return any(entry.state in UNSUCCESSFUL_STATES for entry in self.entries)

    @cached_property
    def totals(self) -> CounterTotals:
        """What its jobs have counted; no entry is added once this was asked for."""
        return sum_counters(self.entries)

    @property
    def generated_count(self) -> int:
        """How many rows generate chose."""
        return self.totals.totals.count("generator", "generated")


def group_rounds(entries: Sequence[JobEntry]) -> list[Round]:
    """Return the rounds that entries tell of, the oldest first.

    What was done to ``-all`` belongs to the batch that was made last before it; jobs of no batch to no round. A
    generate that found nothing due makes no round.
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
    found = [each for each in rounds.values() if _is_round(each.entries)]
    for number, each in enumerate(found, 1):
        each.number = number
    return found


def _is_round(entries: Sequence[JobEntry]) -> bool:
    """Tell whether jobs are a round: rows were chosen, or more than a generate was done to the batch itself."""
    for entry in entries:
        empty = entry.state == JobState.FINISHED and not entry.counters.get("generator", {}).get("generated")
        if not entry.batch_id.startswith("-") and not (entry.job == GENERATE and empty):
            return True
    return False


def sum_counters(entries: Sequence[JobEntry]) -> CounterTotals:
    """Return the sums of what jobs have counted."""
    tally = CounterTotals()
    for entry in entries:
        tally.add(JobResult({group: dict(names) for group, names in entry.counters.items()}))
    return tally


def finish_time(entry: JobEntry) -> int:
    """Return when a job ended, or its last sign of life, ms since 1970."""
    return max(entry.last_seen if entry.finish_time is None else entry.finish_time, entry.start_time)


def rows_per_second(entry: JobEntry) -> float:
    """Return rows a second, over all of the job's time so far; 0 when it has done none."""
    return 1000 * entry.rows / max(finish_time(entry) - entry.start_time, 1000) if entry.rows else 0.0


def remaining_ms(entry: JobEntry) -> int | None:
    """Return the milliseconds that a running job still needs at its rate, None when nothing tells."""
    speed = rows_per_second(entry)
    if entry.state != JobState.RUNNING or entry.expected is None or not speed or entry.rows >= entry.expected:
        return None
    return round(1000 * (entry.expected - entry.rows) / speed)
