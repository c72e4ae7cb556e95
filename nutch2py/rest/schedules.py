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
from nutch2py.reporting import warn
from nutch2py.rest.children import Child, Children
from nutch2py.rest.kinds import AnyRequest, Name, Request
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.state import Shelf, read

_PARTS = 5
_LATER = timedelta(hours=1)  # until a damaged schedule is looked at again
_LATE = timedelta(minutes=1)  # by which a server that takes over begins what is due
_SET_BACK = timedelta(hours=3)  # as with cron: by more, the clock was wrong before
_MOST_MISSED = 1000  # that are counted
_EVERY = 1.0  # seconds between two looks at the clock
Stamp = tuple[int, int, int]
"""Of a file: when it was changed (ns since 1970), its size, its number."""


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


Missed = Callable[[Schedule, str], None]
"""Is told why the job of a schedule did not begin when it was due."""


class Schedules(Shelf[Schedule]):
    """The schedules of a server, in ``<rest.folder>/schedules``, without the times when they begin next."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "schedules", Schedule, "schedule", "schedules")
        self._seen: dict[str, tuple[Stamp, Schedule]] = {}

    def stamped(self) -> list[tuple[Schedule, Stamp]]:
        """Return all schedules as :meth:`all` does, each with the stamp of its file; only what has changed is read."""
        seen: dict[str, tuple[Stamp, Schedule]] = {}
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
        return [(schedule, stamp) for stamp, schedule in seen.values()]

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
    return next(_times(cron, moment), None)


def _times(cron: str, moment: datetime) -> Iterator[datetime]:
    """Yield the times of a cron expression after a moment."""
    try:
        if len(cron.split()) != _PARTS:  # six would be seconds
            raise CronSimError(f"{len(cron.split())} parts")
        yield from CronSim(cron, moment)
    except CronSimError as error:
        told = "write minute, hour, day of month, month and day of week, as in 30 4 * * 1"
        raise InputError(f"{cron!r} is no cron expression ({error}): {told}") from error


def _times_between(cron: str, after: datetime, until: datetime) -> list[datetime]:
    return [*takewhile(lambda due: due <= until, islice(_times(cron, after), _MOST_MISSED))]


class Clock:
    """Begins the jobs of schedules, in a thread, as long as no other process does for the same folder.

    The file that it holds locked has the time of its last look, by which the next server knows what nobody began.
    """

    def __init__(
        self, schedules: Schedules, children: Children, start: Callable[[Request, str, str], Child], missed: Missed
    ) -> None:
        """``start``: begins the job of a request, for whose token, by which schedule."""
        self._schedules, self._children, self._start, self._missed = schedules, children, start, missed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._since: dict[str, tuple[Stamp, datetime]] = {}
        self._looked = datetime.now(UTC)

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

    def take_over(self, looked: datetime, moment: datetime) -> None:
        """Go on at a moment, where the last look was at another one; what was due long before is said to be missed."""
        self._looked, self._since = moment, {}
        for schedule, stamp in self._schedules.stamped():
            since = min(moment, max(looked, _time_of(stamp)))
            late = max(since, moment - _LATE)
            self._since[schedule.id] = stamp, late
            if not schedule.enabled:
                continue
            with suppress(InputError):
                times = _times_between(schedule.cron, since, late)
                if times:
                    told = (
                        f"{len(times)}{' or more' if len(times) == _MOST_MISSED else ''} times, first {times[0]:%F %RZ}"
                    )
                    self._missed(schedule, f"no server ran when it was due: {told}")

    def tick(self, moment: datetime) -> list[Child]:
        """Begin what is due at a moment. What was due while no server ran is not made up for, as with cron.

        A schedule whose file is damaged, or whose job cannot begin, keeps no other waiting. A clock that was set back
        by more than some hours was wrong before; by less, no job begins a second time.
        """
        if moment < self._looked - _SET_BACK:
            warn(f"schedules: the clock was set back from {self._looked:%Y-%m-%dT%H:%M:%SZ}")
            self._since, self._looked = {}, moment
        before, self._looked = self._looked, moment
        begun = []
        for schedule, stamp in self._schedules.stamped():
            known, since = self._since.get(schedule.id, (None, moment))
            if known != stamp:  # it was stored since the last look
                since = min(moment, max(before, _time_of(stamp)))
                self._since[schedule.id] = stamp, since
            try:
                due = following(schedule.cron, since)
                if due is None or due > moment:
                    continue
                self._since[schedule.id] = stamp, moment
                if schedule.enabled and self._to_begin(schedule, due):
                    begun.append(self._start(schedule.job, schedule.by, schedule.id))
            except Refusal as error:  # too many jobs run: the next time is another
                self._missed(schedule, str(error))
            except (OSError, NutchError) as error:
                if self._since[schedule.id][1] != moment:  # else its time was used up
                    self._since[schedule.id] = stamp, moment + _LATER
                self._missed(schedule, str(error))
        return begun

    def _to_begin(self, schedule: Schedule, due: datetime) -> bool:
        """Tell whether nobody has begun what is due, and its job before has ended."""
        jobs = [child for child in self._children.all() if child.schedule == schedule.id]
        if any(child.begun >= due.timestamp() * 1000 for child in jobs):  # a server that was killed behind it
            return False
        if any(child.state.alive for child in jobs):
            self._missed(schedule, "its job before runs still")
            return False
        return True


def _time_of(stamp: Stamp) -> datetime:
    return datetime.fromtimestamp(stamp[0] / 1e9, UTC)


def only(path: Path) -> int | None:
    """Return what shows that this process is the only one, None when it is not."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
