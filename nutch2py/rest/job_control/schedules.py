"""Jobs by the clock: stored with their cron expressions, and begun by one process at a time. Times are UTC."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated

from cronsim import CronSim, CronSimError
from msgspec import Meta, Struct

from nutch2py.errors import InputError, NutchError
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control.job_processes import JobProcess, JobProcessManager
from nutch2py.rest.job_control.job_requests import AnyJobRequest, Identifier, JobRequest
from nutch2py.rest.state_dir import JsonStore, read_json
from nutch2py.support.reporting import warn

_CRON_FIELDS = 5
_RETRY_DELAY = timedelta(hours=1)  # until a damaged schedule is looked at again
_TAKEOVER_GRACE = timedelta(minutes=1)  # by which a server that takes over begins what is due
_MAX_CLOCK_SETBACK = timedelta(hours=3)  # as with cron: by more, the clock was wrong before
_MAX_MISSED_RUNS = 1000  # that are counted
_TICK_SECONDS = 1.0  # seconds between two looks at the clock
FileStamp = tuple[int, int, int]
"""Of a file: when it was changed (ns since 1970), its size, its number."""


class NewSchedule(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """A job that is to begin whenever a cron expression says: minute, hour, day of month, month, day of week."""

    id: Identifier | None = None
    cron: Annotated[str, Meta(max_length=200)]
    job: AnyJobRequest
    enabled: bool = True


class StoredSchedule(Struct, rename="camel", kw_only=True, frozen=True):
    """A stored schedule; ``created_by``: whose token stored it; ``next_run``: when it begins, ms since 1970, None for never."""

    id: str
    cron: str
    job: AnyJobRequest
    enabled: bool
    created_by: str
    next_run: int | None = None


MissedRunCallback = Callable[[StoredSchedule, str], None]
"""Is told why the job of a schedule did not begin when it was due."""


class ScheduleStore(JsonStore[StoredSchedule]):
    """The schedules of a server, in ``<rest.folder>/schedules``, without the times when they begin next."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "schedules", StoredSchedule, "schedule", "schedules")
        self._cache: dict[str, tuple[FileStamp, StoredSchedule]] = {}

    def list_with_stamps(self) -> list[tuple[StoredSchedule, FileStamp]]:
        """Return all schedules as :meth:`all` does, each with the stamp of its file; only what has changed is read."""
        seen: dict[str, tuple[FileStamp, StoredSchedule]] = {}
        for each in self.ids():
            try:
                found = self._path(each).stat()
            except (OSError, InputError):
                continue
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._cache.get(each)
            schedule = (
                known[1] if known is not None and known[0] == stamp else read_json(self._path(each), StoredSchedule)
            )
            if schedule is not None:
                seen[each] = (stamp, schedule)
        self._cache = seen
        return [(schedule, stamp) for stamp, schedule in seen.values()]

    def store(self, new: NewSchedule, created_by: str) -> StoredSchedule:
        """Store a schedule, in the place of one with its id."""
        if next_run_time(new.cron, datetime.now(UTC)) is None:
            raise InputError(f"{new.cron!r} is never")
        stored = StoredSchedule(id=new.id or f"schedule-{secrets.token_hex(6)}", cron=new.cron, job=new.job,
                          enabled=new.enabled, created_by=created_by)  # fmt: skip
        self.put(stored.id, stored)
        return stored


def next_run_time(cron: str, moment: datetime) -> datetime | None:
    """Return the next time of a cron expression after a moment, None when there is none; InputError for no expression.

    >>> following("30 4 * * *", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T04:30:00+00:00'
    """
    return next(_run_times(cron, moment), None)


def _run_times(cron: str, moment: datetime) -> Iterator[datetime]:
    """Yield the times of a cron expression after a moment."""
    try:
        if len(cron.split()) != _CRON_FIELDS:  # six would be seconds
            raise CronSimError(f"{len(cron.split())} parts")
        yield from CronSim(cron, moment)
    except CronSimError as error:
        told = "write minute, hour, day of month, month and day of week, as in 30 4 * * 1"
        raise InputError(f"{cron!r} is no cron expression ({error}): {told}") from error


def _run_times_between(cron: str, after: datetime, until: datetime) -> list[datetime]:
    return [*takewhile(lambda due: due <= until, islice(_run_times(cron, after), _MAX_MISSED_RUNS))]


class Scheduler:
    """Begins the jobs of schedules, in a thread, as long as no other process does for the same folder.

    The file that it holds locked has the time of its last look, by which the next server knows what nobody began.
    """

    def __init__(
        self,
        schedules: ScheduleStore,
        jobs: JobProcessManager,
        start_job: Callable[[JobRequest, str, str], JobProcess],
        on_missed: MissedRunCallback,
    ) -> None:
        """``start_job``: begins the job of a request, for whose token, by which schedule."""
        self._schedules, self._jobs, self._start_job, self._on_missed = schedules, jobs, start_job, on_missed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._last_runs: dict[str, tuple[FileStamp, datetime]] = {}
        self._last_tick = datetime.now(UTC)

    def start(self) -> None:
        """Begin to look at the clock."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        lock: int | None = None
        try:
            while not self._stopped.wait(_TICK_SECONDS):
                try:
                    if lock is None and self._schedules.directory.is_dir():
                        lock = acquire_leader_lock(self._schedules.directory / ".clock")
                        if lock is not None:
                            looked = datetime.fromtimestamp(os.fstat(lock).st_mtime, UTC)
                            self.take_over(looked, datetime.now(UTC))
                    if lock is not None:
                        self.tick(datetime.now(UTC))
                        os.utime(lock)
                except (OSError, NutchError) as error:
                    warn(f"schedules: {error}")
        finally:
            if lock is not None:
                os.close(lock)

    def take_over(self, last_tick: datetime, now: datetime) -> None:
        """Go on at a moment, where the last look was at another one; what was due long before is said to be missed."""
        self._last_tick, self._last_runs = now, {}
        for schedule, stamp in self._schedules.list_with_stamps():
            since = min(now, max(last_tick, _modified_time(stamp)))
            late = max(since, now - _TAKEOVER_GRACE)
            self._last_runs[schedule.id] = stamp, late
            if not schedule.enabled:
                continue
            with suppress(InputError):
                times = _run_times_between(schedule.cron, since, late)
                if times:
                    told = f"{len(times)}{' or more' if len(times) == _MAX_MISSED_RUNS else ''} times, first {times[0]:%F %RZ}"
                    self._on_missed(schedule, f"no server ran when it was due: {told}")

    def tick(self, now: datetime) -> list[JobProcess]:
        """Begin what is due at a moment. What was due while no server ran is not made up for, as with cron.

        A schedule whose file is damaged, or whose job cannot begin, keeps no other waiting. A clock that was set back
        by more than some hours was wrong before; by less, no job begins a second time.
        """
        if now < self._last_tick - _MAX_CLOCK_SETBACK:
            warn(f"schedules: the clock was set back from {self._last_tick:%Y-%m-%dT%H:%M:%SZ}")
            self._last_runs, self._last_tick = {}, now
        before, self._last_tick = self._last_tick, now
        begun = []
        for schedule, stamp in self._schedules.list_with_stamps():
            known, since = self._last_runs.get(schedule.id, (None, now))
            if known != stamp:  # it was stored since the last look
                since = min(now, max(before, _modified_time(stamp)))
                self._last_runs[schedule.id] = stamp, since
            try:
                due = next_run_time(schedule.cron, since)
                if due is None or due > now:
                    continue
                self._last_runs[schedule.id] = stamp, now
                if schedule.enabled and self._is_startable(schedule, due):
                    begun.append(self._start_job(schedule.job, schedule.created_by, schedule.id))
            except HttpError as error:  # too many jobs run: the next time is another
                self._on_missed(schedule, str(error))
            except (OSError, NutchError) as error:
                if self._last_runs[schedule.id][1] != now:  # else its time was used up
                    self._last_runs[schedule.id] = stamp, now + _RETRY_DELAY
                self._on_missed(schedule, str(error))
        return begun

    def _is_startable(self, schedule: StoredSchedule, due: datetime) -> bool:
        """Tell whether nobody has begun what is due, and its job before has ended."""
        jobs = [child for child in self._jobs.all() if child.schedule == schedule.id]
        if any(child.start_time >= due.timestamp() * 1000 for child in jobs):  # a server that was killed behind it
            return False
        if any(child.state.is_alive for child in jobs):
            self._on_missed(schedule, "its job before runs still")
            return False
        return True


def _modified_time(stamp: FileStamp) -> datetime:
    return datetime.fromtimestamp(stamp[0] / 1e9, UTC)


def acquire_leader_lock(path: Path) -> int | None:
    """Return what shows that this process is the only one, None when it is not."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
