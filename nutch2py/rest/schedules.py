"""Jobs by the clock: stored with their cron expressions, and begun by one process at a time. Times are UTC."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cronsim import CronSim, CronSimError
from msgspec import Meta, Struct

from nutch2py.errors import InputError, NutchError
from nutch2py.reporting import warn
from nutch2py.rest.children import Child, Children
from nutch2py.rest.kinds import AnyRequest, Name, Request
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.state import Shelf, read

_PARTS = 5
_LATER = timedelta(hours=1)  # until a damaged schedule is looked at again
_EVERY = 1.0  # seconds between two looks at the clock


class NewSchedule(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """A job that is to begin whenever a cron expression says: minute, hour, day of month, month, day of week."""

    id: Name | None = None
    cron: Annotated[str, Meta(max_length=200)]
    job: AnyRequest
    enabled: bool = True


class Schedule(Struct, rename="camel", kw_only=True, frozen=True):
    """A stored schedule; ``by``: whose token stored it; ``next``: when it begins, ms since 1970, None for never."""

    id: str
    cron: str
    job: AnyRequest
    enabled: bool
    by: str
    next: int | None = None


class Schedules(Shelf[Schedule]):
    """The schedules of a server, in ``<rest.folder>/schedules``, without the times when they begin next."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "schedules", Schedule, "schedule", "schedules")
        self._seen: dict[str, tuple[tuple[int, int, int], Schedule]] = {}

    def current(self) -> list[Schedule]:
        """Return all schedules as :meth:`all` does, and read only those whose files have changed."""
        seen: dict[str, tuple[tuple[int, int, int], Schedule]] = {}
        for each in self.ids():
            try:
                found = self._path(each).stat()
            except (OSError, InputError):
                continue
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._seen.get(each)
            schedule = known[1] if known is not None and known[0] == stamp else read(self._path(each), Schedule)
            if schedule is not None:
                seen[each] = (stamp, schedule)
        self._seen = seen
        return [schedule for _, schedule in seen.values()]

    def store(self, new: NewSchedule, by: str) -> Schedule:
        """Store a schedule, in the place of one with its id."""
        if following(new.cron, datetime.now(UTC)) is None:
            raise InputError(f"{new.cron!r} is never")
        stored = Schedule(id=new.id or f"schedule-{secrets.token_hex(6)}", cron=new.cron, job=new.job,
                          enabled=new.enabled, by=by)  # fmt: skip
        self.put(stored.id, stored)
        return stored


def following(cron: str, moment: datetime) -> datetime | None:
    """Return the next time of a cron expression after a moment, None when there is none; InputError for no expression.

    >>> following("30 4 * * *", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T04:30:00+00:00'
    """
    try:
        if len(cron.split()) != _PARTS:  # six would be seconds
            raise CronSimError(f"{len(cron.split())} parts")
        return next(CronSim(cron, moment), None)
    except CronSimError as error:
        told = "write minute, hour, day of month, month and day of week, as in 30 4 * * 1"
        raise InputError(f"{cron!r} is no cron expression ({error}): {told}") from error


class Clock:
    """Begins the jobs of schedules, in a thread, as long as no other process does for the same folder."""

    def __init__(self, schedules: Schedules, children: Children, start: Callable[[Request, str, str], Child]) -> None:
        """``start``: begins the job of a request, for whose token, by which schedule."""
        self._schedules, self._children, self._start = schedules, children, start
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._since: dict[str, datetime] = {}
        self._began = datetime.now(UTC)

    def begin(self) -> None:
        """Begin to look at the clock."""
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        lock: int | None = None
        try:
            while not self._ended.wait(_EVERY):
                try:
                    if lock is None and self._schedules.folder.is_dir():
                        lock = only(self._schedules.folder / ".clock")
                    if lock is not None:
                        self.tick(datetime.now(UTC))
                except (OSError, NutchError) as error:
                    warn(f"schedules: {error}")
        finally:
            if lock is not None:
                os.close(lock)

    def tick(self, moment: datetime) -> list[Child]:
        """Begin what is due at a moment. What was due while no server ran is not made up for, as with cron.

        A schedule whose file is damaged, or whose job cannot begin, keeps no other waiting.
        """
        begun = []
        for schedule in self._schedules.current():
            since = self._since.get(schedule.id, self._began)
            try:
                due = following(schedule.cron, since)
                if due is None or due > moment:
                    continue
                self._since[schedule.id] = moment
                if schedule.enabled and not self._runs(schedule.id):
                    begun.append(self._start(schedule.job, schedule.by, schedule.id))
            except Refusal:  # too many jobs run: the next time is another
                continue
            except (OSError, NutchError) as error:
                if self._since.get(schedule.id) != moment:  # else its time was used up
                    self._since[schedule.id] = moment + _LATER
                warn(f"schedule {schedule.id}: {error}")
        return begun

    def _runs(self, schedule_id: str) -> bool:
        return any(child.schedule == schedule_id and child.state.alive for child in self._children.all())


def only(path: Path) -> int | None:
    """Return what shows that this process is the only one, None when it is not."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
