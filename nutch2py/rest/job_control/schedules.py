"""Scheduled jobs: stored with cron expressions in UTC, and started by one process at a time."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from cronsim import CronSim, CronSimError
from msgspec import Meta, Struct

from nutch2py.errors import InputError, NutchError
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessManager
from nutch2py.rest.job_control.job_requests import AnyJobRequest, Identifier, JobRequest
from nutch2py.rest.state_dir import JsonStore, StoreQuota, read_json
from nutch2py.support.file_locks import try_file_lock
from nutch2py.support.reporting import warn

_CRON_FIELDS = 5
_RETRY_DELAY = timedelta(hours=1)  # until a failing schedule is tried again
_TAKEOVER_GRACE = timedelta(minutes=1)  # a server that takes over starts jobs due within this time
_MAX_CLOCK_SETBACK = timedelta(hours=3)  # as with cron: after a larger setback the clock was wrong before
_MAX_MISSED_RUNS = 1000  # limit for counting
_TICK_SECONDS = 1.0
FileStamp = tuple[int, int, int]
"""Modification time (ns since 1970), size and inode of a file."""


class NewSchedule(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """A job with a cron expression: minute, hour, day of month, month, day of week."""

    id: Identifier | None = None
    cron: Annotated[str, Meta(max_length=200)]
    job: AnyJobRequest
    enabled: bool = True


class StoredSchedule(Struct, rename="camel", kw_only=True, frozen=True):
    """A stored schedule. ``created_by``: name of the caller's token. ``next_run``: ms since 1970, None for never."""

    id: str
    cron: str
    job: AnyJobRequest
    enabled: bool
    created_by: str
    next_run: int | None = None


class ScheduleTiming(Struct, rename="camel", kw_only=True, frozen=True):
    """Id, time and author of a schedule: they stay in memory, while its job with up to 10,000 seeds does not."""

    id: str
    cron: str
    enabled: bool
    created_by: str


MissedRunCallback = Callable[[ScheduleTiming, str], None]
"""Called with a schedule and the reason why its job did not start."""


class ScheduleStore(JsonStore[StoredSchedule]):
    """The schedules of a server, in ``<rest.folder>/schedules``, without their next run."""

    old_keys: Mapping[str, str] = MappingProxyType({"by": "createdBy"})

    def __init__(self, directory: Path, quota: StoreQuota) -> None:
        super().__init__(directory / "schedules", StoredSchedule, "schedule", "schedules", quota)
        self._cache: dict[str, tuple[FileStamp, ScheduleTiming]] = {}

    def list_with_stamps(self) -> list[tuple[ScheduleTiming, FileStamp]]:
        """Return the timing of all schedules with the stamps of their files; only changed files are read."""
        current: dict[str, tuple[FileStamp, ScheduleTiming]] = {}
        for each in self.ids():
            try:
                status = self._path(each).stat()
            except (OSError, InputError):
                continue
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            cached = self._cache.get(each)
            if cached is not None and cached[0] == stamp:
                schedule: ScheduleTiming | None = cached[1]
            elif self._read(each) is not None:  # the whole file is valid
                schedule = read_json(self._path(each), ScheduleTiming, self.old_keys)
            else:
                schedule = None
            if schedule is not None:
                current[each] = (stamp, schedule)
        self._cache = current
        return [(schedule, stamp) for stamp, schedule in current.values()]

    def store(self, new: NewSchedule, created_by: str) -> StoredSchedule:
        """Store a schedule, replacing one with its id."""
        if next_run_time(new.cron, datetime.now(UTC)) is None:
            raise InputError(f"the cron expression {new.cron!r} never matches")
        stored = StoredSchedule(
            id=new.id or f"schedule-{secrets.token_hex(6)}",
            cron=new.cron,
            job=new.job,
            enabled=new.enabled,
            created_by=created_by,
        )
        self.put(stored.id, stored)
        return stored


def next_run_time(cron: str, moment: datetime) -> datetime | None:
    """Return the first time after ``moment`` that matches, None for none; raise InputError for an invalid expression.

    >>> next_run_time("30 4 * * *", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T04:30:00+00:00'
    """
    return next(_run_times(cron, moment), None)


def _run_times(cron: str, moment: datetime) -> Iterator[datetime]:
    """Yield the times after ``moment`` that match a cron expression."""
    try:
        if len(cron.split()) != _CRON_FIELDS:  # CronSim reads a sixth field as seconds
            raise CronSimError(f"{len(cron.split())} fields")
        yield from CronSim(cron, moment)
    except CronSimError as error:
        usage = "use minute, hour, day of month, month and day of week, as in 30 4 * * 1"
        raise InputError(f"invalid cron expression {cron!r} ({error}): {usage}") from error


def _run_times_between(cron: str, after: datetime, until: datetime) -> list[datetime]:
    return [*takewhile(lambda due: due <= until, islice(_run_times(cron, after), _MAX_MISSED_RUNS))]


class Scheduler:
    """Starts scheduled jobs in a thread, in one process per state directory.

    The modification time of its lock file is the time of the last tick, from which the next server computes
    missed runs.
    """

    def __init__(
        self,
        schedules: ScheduleStore,
        jobs: JobProcessManager,
        start_job: Callable[[JobRequest, str, str], JobProcess],
        on_missed: MissedRunCallback,
    ) -> None:
        """``start_job``: called with the request, the name of the token and the id of the schedule."""
        self._schedules, self._jobs, self._start_job, self._on_missed = schedules, jobs, start_job, on_missed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._last_runs: dict[str, tuple[FileStamp, datetime]] = {}
        self._last_tick = datetime.now(UTC)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        lock: int | None = None
        try:
            while not self._stopped.wait(_TICK_SECONDS):
                try:
                    if lock is None and self._schedules.directory.is_dir():
                        lock = try_file_lock(self._schedules.directory / ".clock")
                        if lock is not None:
                            last_tick = datetime.fromtimestamp(os.fstat(lock).st_mtime, UTC)
                            self.take_over(last_tick, datetime.now(UTC))
                    if lock is not None:
                        self.tick(datetime.now(UTC))
                        os.utime(lock)
                except (OSError, NutchError) as error:
                    warn(f"schedules: {error}")
        finally:
            if lock is not None:
                os.close(lock)

    def take_over(self, last_tick: datetime, now: datetime) -> None:
        """Continue after ``last_tick`` of another server; report runs due long before ``now`` as missed."""
        self._last_tick, self._last_runs = now, {}
        for schedule, stamp in self._schedules.list_with_stamps():
            since = min(now, max(last_tick, _modified_time(stamp)))
            late = max(since, now - _TAKEOVER_GRACE)
            self._last_runs[schedule.id] = stamp, late
            if not schedule.enabled:
                continue
            with suppress(InputError):
                missed = _run_times_between(schedule.cron, since, late)
                if missed:
                    count = f"{len(missed)}{' or more' if len(missed) == _MAX_MISSED_RUNS else ''}"
                    runs = "run" if len(missed) == 1 else "runs"
                    reason = f"missed {count} {runs} since {missed[0]:%F %RZ}: no server was running"
                    self._on_missed(schedule, reason)

    def tick(self, now: datetime) -> list[JobProcess]:
        """Start the jobs that are due at ``now``; return them. Missed runs are not made up for, as with cron.

        A damaged schedule or a job that cannot start delays no other. If the clock is set back by up to
        ``_MAX_CLOCK_SETBACK``, no job starts twice; after more, it counts as wrong before.
        """
        if now < self._last_tick - _MAX_CLOCK_SETBACK:
            warn(f"schedules: the clock was set back from {self._last_tick:%Y-%m-%dT%H:%M:%SZ}")
            self._last_runs, self._last_tick = {}, now
        last_tick, self._last_tick = self._last_tick, now
        started = []
        for schedule, stamp in self._schedules.list_with_stamps():
            known, since = self._last_runs.get(schedule.id, (None, now))
            if known != stamp:  # stored since the last tick
                since = min(now, max(last_tick, _modified_time(stamp)))
                self._last_runs[schedule.id] = stamp, since
            try:
                due = next_run_time(schedule.cron, since)
                if due is None or due > now:
                    continue
                self._last_runs[schedule.id] = stamp, now
                if schedule.enabled and self._is_startable(schedule, due):
                    job = self._schedules.get(schedule.id).job
                    started.append(self._start_job(job, schedule.created_by, schedule.id))
            except HttpError as error:  # too many jobs are running: skip this run
                self._on_missed(schedule, str(error))
            except (OSError, NutchError) as error:
                if self._last_runs[schedule.id][1] != now:  # this run is not marked as done
                    self._last_runs[schedule.id] = stamp, now + _RETRY_DELAY
                self._on_missed(schedule, str(error))
        return started

    def _is_startable(self, schedule: ScheduleTiming, due: datetime) -> bool:
        """Return whether no server has started this run, and the last job of the schedule has ended."""
        jobs = [job for job in self._jobs.all() if job.schedule == schedule.id]
        if any(job.start_time >= due.timestamp() * 1000 for job in jobs):  # by a server killed just after
            return False
        if any(job.state.is_alive for job in jobs):
            self._on_missed(schedule, "the last job of the schedule is still running")
            return False
        return True


def _modified_time(stamp: FileStamp) -> datetime:
    return datetime.fromtimestamp(stamp[0] / 1e9, UTC)
