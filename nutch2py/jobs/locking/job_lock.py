"""Locks: which jobs are at work on a crawl, so that two do not work on the same thing.

All stand in one cell of the derived table, which is only ever changed by comparing and setting: who reads it, finds
nobody there who works on the same thing, and sets it with itself added, has its lock, whoever tries at the same time.
:mod:`nutch2py.jobs.locking.lock_scopes` says what each job works on.

The lock of a dead process goes by itself. On this host it is gone as soon as there is no such process, one that has
got its number since not counting. Elsewhere its ``beat``, which a living one counts up every third of its lease, must
not have changed for a whole lease while we looked on: clocks of two machines are never compared.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from msgspec.structs import replace

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, NutchError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchRecord
from nutch2py.jobs.locking.lock_scopes import LockScope, scopes_conflict
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.mapreduce.lock_check import (
    CURRENT_LOCK_TOKEN,
    LAST_SEEN,
    LOCKS_KEY,
    LastSeen,
    LockHolder,
    check_lock,
    decode_lock_row,
    encode_holders,
)
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.clock import now_ms
from nutch2py.support.process_identity import ProcessIdentity, process_start_time
from nutch2py.support.reporting import log_line, warn

_MAX_CLOCK_SKEW_MS = 60_000  # ms by which a clock is surely wrong
_HEARTBEAT_SHARE = 1 / 3  # of a lease, between two beats
_POLL_SECONDS = 0.5  # seconds between two looks at a holder of which we do not know whether it lives
ConflictFinder = Callable[[LockHolder], str]


class JobLock:
    """A lock that a job holds, until :meth:`release`; a thread of its own counts up the beat."""

    def __init__(
        self, batch_lists: BatchListStore, holder: LockHolder, batch_records: list[BatchRecord], data: bytes | None
    ) -> None:
        self._store, self._data = batch_lists.store, data
        self.token, self._lease = holder.token, holder.lease
        self.batch_records = batch_records
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send_heartbeats, name="crawl lock", daemon=True)
        self._thread.start()

    def check_held(self) -> None:
        """Raise :class:`nutch2py.errors.LockLostError` when another job has taken this one's place."""
        check_lock(self.token, lambda: self._store)

    def _send_heartbeats(self) -> None:
        while not self._stopped.wait(self._lease * _HEARTBEAT_SHARE):
            with suppress(NutchError):  # the store is away: the next beat tries again, and the job finds out by itself
                seen = LastSeen.take(self._lease)  # before we ask: an answer may be read long after it was true
                if not self._update_holders(self._with_heartbeat):
                    LAST_SEEN.pop(self.token, None)
                    return  # taken: whoever writes finds out
                LAST_SEEN[self.token] = seen

    def _with_heartbeat(self, holders: list[LockHolder]) -> list[LockHolder] | None:
        if all(holder.token != self.token for holder in holders):
            return None
        return [
            replace(holder, heartbeat=holder.heartbeat + 1, last_seen=now_ms())
            if holder.token == self.token
            else holder
            for holder in holders
        ]

    def release(self) -> None:
        """Give the lock back; that this cannot be done is warned of, for the job itself is done."""
        self._stopped.set()
        self._thread.join()
        LAST_SEEN.pop(self.token, None)
        try:
            self._update_holders(self._without_this_lock)
        except NutchError as error:
            warn(f"the lock of this job cannot be given back, it goes when this process ends ({error})")

    def _without_this_lock(self, holders: list[LockHolder]) -> list[LockHolder] | None:
        left = [holder for holder in holders if holder.token != self.token]
        return None if len(left) == len(holders) else left

    def _update_holders(self, change: Callable[[list[LockHolder]], list[LockHolder] | None]) -> bool:
        """Change who is at work; return False when ``change`` gives None, as there is nothing to change."""
        while True:
            found = decode_lock_row(self._data)
            self._store.clock.observe(found.clock)
            holders = change(found.holders)
            if holders is not None:
                data = encode_holders(holders, self._store.clock.next())
                if self._store.compare_and_set(LOCKS_KEY, DerivedRow.data, self._data, data):
                    self._data = data
                    return True
            before, row = (
                self._data,
                self._store.get(LOCKS_KEY, {DerivedRow.data}),
            )  # another job has come or gone, or beat
            self._data = (row.data if row is not None else None) or None
            if holders is None and self._data == before:
                return False


@contextmanager
def hold_job_lock(
    conf: Configuration, batch_lists: BatchListStore, scope: LockScope, find_conflict: ConflictFinder | None = None
) -> Iterator[JobLock]:
    """Hold the lock for ``scope`` within the block; the derived table must be there.

    Within the block the job may take another, which the first one does not exclude. ``find_conflict`` says of a job that
    what both work on does not exclude why it is not to run at the same time, "" when it may. Raises
    :class:`nutch2py.errors.LockedError` when a living job works on the same thing. Whether a job of another machine
    lives takes up to its lease to find out.
    """
    mine = _make_holder(conf, scope)
    LAST_SEEN[mine.token] = LastSeen.take(mine.lease)  # other threads of this process see that it is not left over
    try:
        held = _acquire_lock(batch_lists, mine, scope, find_conflict)
    except BaseException:
        LAST_SEEN.pop(mine.token, None)
        raise
    before = CURRENT_LOCK_TOKEN.set(held.token)
    try:
        yield held
    finally:
        CURRENT_LOCK_TOKEN.reset(before)
        if mine.pid == os.getpid():  # a forked child that ends by an exception leaves this block, too
            held.release()


def _acquire_lock(
    batch_lists: BatchListStore, own_holder: LockHolder, scope: LockScope, find_conflict: ConflictFinder | None
) -> JobLock:
    ours = CURRENT_LOCK_TOKEN.get()
    reasons: dict[str, str] = {}  # token -> what objects to running beside it

    def is_blocking(holder: LockHolder) -> bool:
        if holder.token == ours:
            return False
        if is_excluded_by(scope, holder):
            return True
        if find_conflict is not None and holder.token not in reasons:
            reasons[holder.token] = find_conflict(holder)
        return bool(reasons.get(holder.token))

    watch = _HeartbeatWatcher()
    waiting = False
    while True:
        watch.start_poll()
        data, states = batch_lists.read_lock_row_and_records()
        found = decode_lock_row(data)
        watch.record_poll(found.holders)
        holders, clock_of_crawl = found.holders, batch_lists.store.clock
        clock_of_crawl.observe(found.clock)
        if any(holder.token == own_holder.token for holder in holders):  # an answer was lost that said so
            return JobLock(batch_lists, own_holder, batch_lists.list_records(), data)
        living = [holder for holder in holders if not (_is_gone(holder) or watch.is_silent(holder))]
        blocking = [holder for holder in living if is_blocking(holder)]
        for holder in blocking:
            if _is_on_this_host(holder) or watch.has_heartbeat(holder):
                raise LockedError(_format_conflict(scope, holder, reasons.get(holder.token, "")))
        if blocking:
            if not waiting:
                log_line(
                    f"{_describe_holder(blocking[0])}: looking whether it lives, for {blocking[0].lease:g} s at most"
                )
            waiting = True
            time.sleep(min(_POLL_SECONDS, blocking[0].lease / 10))
            continue
        taken, seen = encode_holders([*living, own_holder], clock_of_crawl.next()), LastSeen.take(own_holder.lease)
        if batch_lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, data, taken):
            if len(living) < len(holders):  # one may have died between its last write and our look at it
                states = batch_lists.list_records()
            LAST_SEEN[own_holder.token] = seen
            if found.clock > now_ms() + _MAX_CLOCK_SKEW_MS:
                warn(_format_clock_skew(found.clock - now_ms()))
            return JobLock(batch_lists, own_holder, states, taken)


_MAX_SECONDS = timedelta.max // timedelta(seconds=1)  # cells may carry any number for a time


def _format_clock_skew(milliseconds: int) -> str:
    ahead = timedelta(seconds=min(milliseconds // 1000, _MAX_SECONDS))
    return (
        f"the newest cells of this crawl are {ahead} ahead of this machine's clock: new ones get times after them; "
        "set right the clock that is wrong"
    )


def is_excluded_by(scope: LockScope, holder: LockHolder) -> bool:
    """Tell whether ``scope`` may not be done while a job is at work."""
    return scopes_conflict(scope.exclusive, scope.shared, frozenset(holder.exclusive), frozenset(holder.shared))


def select_living_holders(holders: list[LockHolder]) -> list[LockHolder]:
    """Return the jobs that live, as far as can be told at once."""
    return [holder for holder in holders if not _is_gone(holder)]


def _describe_holder(holder: LockHolder) -> str:
    batch = f" {holder.batch}" if holder.batch else ""
    return f"{holder.job}{batch} is at work on {holder.host} (process {holder.pid}) since {format_time(holder.start_time / 1000)}"


def _format_conflict(scope: LockScope, holder: LockHolder, reason: str) -> str:
    batch = f" {scope.batch}" if scope.batch else ""
    why = f", for {reason}" if reason else ""
    return (
        f"{_describe_holder(holder)}, and {scope.name}{batch} cannot run beside it{why}: wait until it has ended, or end it, "
        "then run this again"
    )


class _HeartbeatWatcher:
    """What we have seen of the beats of holders, look by look: :meth:`start_poll`, then :meth:`record_poll` with the answer.

    Silence counts from an answer to the next question, not to its answer. A look that was answered late tells nothing
    of the time before it: the store was away from us, and may have been so from the holder. Then silence begins anew.
    """

    def __init__(self) -> None:
        self._poll_started = 0.0
        self._first_beats: dict[str, int] = {}  # token -> the beat that we saw first
        self._silent_since: dict[str, float] = {}  # token -> when silence began

    def start_poll(self) -> None:
        """Begin a look."""
        self._poll_started = time.monotonic()

    def record_poll(self, holders: Collection[LockHolder]) -> None:
        """Take the answer of a look."""
        now = time.monotonic()
        for holder in holders:
            self._first_beats.setdefault(holder.token, holder.heartbeat)
            if holder.token not in self._silent_since or now - self._poll_started > holder.lease * _HEARTBEAT_SHARE:
                self._silent_since[holder.token] = now

    def has_heartbeat(self, holder: LockHolder) -> bool:
        return holder.heartbeat != self._first_beats[holder.token]

    def is_silent(self, holder: LockHolder) -> bool:
        """Tell whether a holder has been silent for a whole lease in which it could have been heard."""
        return not self.has_heartbeat(holder) and self._poll_started - self._silent_since[holder.token] > holder.lease


def wait_until_known_alive(batch_lists: BatchListStore, holder: LockHolder) -> bool:
    """Tell whether a job is alive: for one on another machine, look on until it beats, for its lease at most."""
    if _is_on_this_host(holder):
        return not _is_gone(holder)
    watch = _HeartbeatWatcher()
    watch.start_poll()
    watch.record_poll([holder])
    while not watch.is_silent(holder):
        time.sleep(min(_POLL_SECONDS, holder.lease / 10))
        watch.start_poll()
        now = next((other for other in batch_lists.read_lock_holders() if other.token == holder.token), None)
        if now is None:
            return False
        watch.record_poll([now])
        if watch.has_heartbeat(now):
            return True
    return False


def is_alive_here(holder: LockHolder) -> bool | None:
    """Tell whether a job lives; None for one on another machine, of which that cannot be told at once."""
    return not _is_gone(holder) if _is_on_this_host(holder) else None


def remove_locks(batch_lists: BatchListStore, tokens: Collection[str]) -> None:
    """Take the locks with these tokens away from their jobs, which find out before they write anything more."""
    while True:
        row = batch_lists.store.get(LOCKS_KEY, {DerivedRow.data})
        data = (row.data if row is not None else None) or None
        found = decode_lock_row(data)
        left = [holder for holder in found.holders if holder.token not in tokens]
        batch_lists.store.clock.observe(found.clock)
        new = encode_holders(left, batch_lists.store.clock.next())
        if len(left) == len(found.holders) or batch_lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, data, new):
            return


# processes


def _make_holder(conf: Configuration, scope: LockScope) -> LockHolder:
    lease = conf.get_float("crawl.lock.lease", 60.0)
    now = now_ms()
    mine = ProcessIdentity.current()
    return LockHolder(
        token=secrets.token_hex(8),
        job=scope.name,
        batch=scope.batch,
        exclusive=sorted(scope.exclusive),
        shared=sorted(scope.shared),
        host=mine.host,
        machine=mine.machine_id,
        pid=mine.pid,
        process_start=mine.start_time,
        start_time=now,
        last_seen=now,
        heartbeat=0,
        lease=lease,
    )


def _get_process(holder: LockHolder) -> ProcessIdentity:
    return ProcessIdentity(holder.host, holder.machine, holder.pid, holder.process_start)


def _is_on_this_host(holder: LockHolder) -> bool:
    """Tell whether a holder's process would be seen from this one."""
    return _get_process(holder).is_local()


def _is_gone(holder: LockHolder) -> bool:
    """Tell whether a process of this host is surely gone."""
    process = _get_process(holder)
    if process.is_local() and holder.pid == os.getpid():
        return holder.process_start != process_start_time(holder.pid) or holder.token not in LAST_SEEN
    return process.has_exited()
