"""Job locks: keep jobs that change the same data of a crawl from running at the same time.

One cell of the derived table holds all locks. Every change of it is a compare-and-set. A job has its lock once it has
written itself to a list without a conflicting holder, however many jobs try at the same time.
:mod:`nutch2py.jobs.locking.lock_scopes` defines what each job locks.

The lock of a dead process needs no cleanup. On the same host it is void as soon as its process no longer exists; a
later process with the same id does not count. A process elsewhere increments its heartbeat every third of its lease.
Its lock is void when the heartbeat has not changed during a whole lease in which it was watched. Clocks of two machines
are never compared.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
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

_MAX_CLOCK_SKEW_MS = 60_000  # a larger lead means that a clock is wrong
_HEARTBEAT_SHARE = 1 / 3  # of a lease, between two heartbeats
_POLL_SECONDS = 0.5  # between two reads of the lock row, until a remote holder proves alive or dead
ConflictFinder = Callable[[LockHolder], str]


class JobLock:
    """A lock that a job holds until :meth:`release`. A thread of its own sends the heartbeats."""

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
        """Raise :class:`nutch2py.errors.LockLostError` when another job has taken over the lock."""
        check_lock(self.token, lambda: self._store)

    def _send_heartbeats(self) -> None:
        """Send heartbeats until the lock is released or lost.

        After an error the next heartbeat tries again. Without a heartbeat ``LAST_SEEN`` expires, and every write of the
        job checks the lock row itself (:func:`nutch2py.mapreduce.lock_check.check_lock`).
        """
        is_failing = False
        while not self._stopped.wait(self._lease * _HEARTBEAT_SHARE):
            try:
                seen = LastSeen.take(self._lease)  # before the request: its response may arrive long after it was true
                if not self._update_holders(self._with_heartbeat):
                    LAST_SEEN.pop(self.token, None)
                    return  # the lock is lost: the next write of the job raises LockLostError
                LAST_SEEN[self.token] = seen
                is_failing = False
            except NutchError:  # the store is unavailable
                continue
            except Exception as error:  # noqa: BLE001 - a dead thread would lose the lock without a message
                if not is_failing:
                    warn(f"the heartbeat of this job's lock failed: {error!r}; retrying for as long as the job runs")
                is_failing = True

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
        """Release the lock. A failure is only a warning, because the job itself is complete."""
        self._stopped.set()
        self._thread.join()
        LAST_SEEN.pop(self.token, None)
        try:
            self._update_holders(self._without_this_lock)
        except NutchError as error:
            warn(f"the lock of this job cannot be released, it expires when this process exits: {error}")

    def _without_this_lock(self, holders: list[LockHolder]) -> list[LockHolder] | None:
        left = [holder for holder in holders if holder.token != self.token]
        return None if len(left) == len(holders) else left

    def _update_holders(self, change: Callable[[list[LockHolder]], list[LockHolder] | None]) -> bool:
        """Change the holders. Return False when ``change`` returns None because there is nothing to change."""
        while True:
            lock_row = decode_lock_row(self._data)
            self._store.clock.observe(lock_row.clock)
            holders = change(lock_row.holders)
            if holders is not None:
                data = encode_holders(holders, self._store.clock.next())
                if self._store.compare_and_set(LOCKS_KEY, DerivedRow.data, self._data, data):
                    self._data = data
                    return True
            # the row has changed: another job has started, finished or sent a heartbeat
            before, row = self._data, self._store.get(LOCKS_KEY, {DerivedRow.data})
            self._data = (row.data if row is not None else None) or None
            if holders is None and self._data == before:
                return False


@contextmanager
def hold_job_lock(
    conf: Configuration, batch_lists: BatchListStore, scope: LockScope, find_conflict: ConflictFinder | None = None
) -> Iterator[JobLock]:
    """Hold the lock for ``scope`` within the block. The derived table must exist.

    Within the block the job may take a second lock that conflicts with the first one.

    Args:
        conf: The configuration of the crawl; ``crawl.lock.lease`` is the lease in seconds.
        batch_lists: The derived table of the crawl.
        scope: What the job locks.
        find_conflict: Returns why a job must not run at the same time although its scope allows it, "" if it may.

    Raises:
        nutch2py.errors.LockedError: A running job has a conflicting lock. To find out whether a job on another machine
            is alive takes up to its lease.
    """
    mine = _make_holder(conf, scope)
    LAST_SEEN[mine.token] = LastSeen.take(mine.lease)  # other threads of this process see that the lock is in use
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
        if mine.pid == os.getpid():  # a forked child that raises also leaves this block
            held.release()


def _acquire_lock(
    batch_lists: BatchListStore, own_holder: LockHolder, scope: LockScope, find_conflict: ConflictFinder | None
) -> JobLock:
    own_token = CURRENT_LOCK_TOKEN.get()
    reasons: dict[str, str] = {}  # token -> why the jobs must not run at the same time

    def is_blocking(holder: LockHolder) -> bool:
        if holder.token == own_token:
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
        data, records = batch_lists.read_lock_row_and_records()
        lock_row = decode_lock_row(data)
        watch.record_poll(lock_row.holders)
        holders, crawl_clock = lock_row.holders, batch_lists.store.clock
        crawl_clock.observe(lock_row.clock)
        if any(holder.token == own_holder.token for holder in holders):  # the response to our write was lost
            return JobLock(batch_lists, own_holder, batch_lists.list_records(), data)
        living = [holder for holder in holders if not (_is_gone(holder) or watch.is_silent(holder))]
        blocking = [holder for holder in living if is_blocking(holder)]
        for holder in blocking:
            if _is_on_this_host(holder) or watch.has_heartbeat(holder):
                raise LockedError(_format_conflict(scope, holder, reasons.get(holder.token, "")))
        if blocking:
            if not waiting:
                log_line(
                    f"{_describe_holder(blocking[0])}: checking whether it is alive, for up to {blocking[0].lease:g} s"
                )
            waiting = True
            time.sleep(min(_POLL_SECONDS, blocking[0].lease / 10))
            continue
        taken, seen = encode_holders([*living, own_holder], crawl_clock.next()), LastSeen.take(own_holder.lease)
        if batch_lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, data, taken):
            if len(living) < len(holders):  # a dead job may have written a record after our read
                records = batch_lists.list_records()
            LAST_SEEN[own_holder.token] = seen
            if lock_row.clock > now_ms() + _MAX_CLOCK_SKEW_MS:
                warn(_format_clock_skew(lock_row.clock - now_ms()))
            return JobLock(batch_lists, own_holder, records, taken)


_MAX_SECONDS = timedelta.max // timedelta(seconds=1)  # a cell may contain any number as its time


def _format_clock_skew(milliseconds: int) -> str:
    ahead = timedelta(seconds=min(milliseconds // 1000, _MAX_SECONDS))
    return (
        f"the newest cells of this crawl are {ahead} ahead of this machine's clock: new cells get later times; "
        "correct the wrong clock"
    )


def is_excluded_by(scope: LockScope, holder: LockHolder) -> bool:
    """Return whether ``scope`` conflicts with the lock of a running job."""
    return scopes_conflict(scope.exclusive, scope.shared, frozenset(holder.exclusive), frozenset(holder.shared))


def select_living_holders(holders: list[LockHolder]) -> list[LockHolder]:
    """Return the holders without those whose process of this host has exited."""
    return [holder for holder in holders if not _is_gone(holder)]


def _describe_holder(holder: LockHolder) -> str:
    batch = f" {holder.batch}" if holder.batch else ""
    started = format_time(holder.start_time / 1000)
    return f"{holder.job}{batch} is running on {holder.host} (process {holder.pid}) since {started}"


def _format_conflict(scope: LockScope, holder: LockHolder, reason: str) -> str:
    batch = f" {scope.batch}" if scope.batch else ""
    why = f": {reason}" if reason else ""
    return (
        f"{_describe_holder(holder)}, and {scope.name}{batch} cannot run at the same time{why}; wait until it has "
        "finished or stop it, then run this command again"
    )


class _HeartbeatWatcher:
    """Heartbeats of the holders over several polls: :meth:`start_poll`, read the row, then :meth:`record_poll`.

    Silence counts from a response to the next request, not to its response. A slow response proves nothing about the
    time before it: the store was unreachable for us, and may have been so for the holder. Then silence starts again.
    """

    def __init__(self) -> None:
        self._poll_started = 0.0
        self._first_beats: dict[str, int] = {}  # token -> heartbeat at the first poll
        self._silent_since: dict[str, float] = {}  # token -> monotonic time since which the heartbeat is unchanged

    def start_poll(self) -> None:
        """Start a poll, before the row is read."""
        self._poll_started = time.monotonic()

    def record_poll(self, holders: Collection[LockHolder]) -> None:
        """Record the holders that the poll returned."""
        now = time.monotonic()
        for holder in holders:
            self._first_beats.setdefault(holder.token, holder.heartbeat)
            if holder.token not in self._silent_since or now - self._poll_started > holder.lease * _HEARTBEAT_SHARE:
                self._silent_since[holder.token] = now

    def has_heartbeat(self, holder: LockHolder) -> bool:
        return holder.heartbeat != self._first_beats[holder.token]

    def is_silent(self, holder: LockHolder) -> bool:
        """Return whether a holder sent no heartbeat for a whole lease in which one would have been seen."""
        return not self.has_heartbeat(holder) and self._poll_started - self._silent_since[holder.token] > holder.lease


def wait_until_known_alive(batch_lists: BatchListStore, holder: LockHolder) -> bool:
    """Return whether a job is alive. For a job on another machine, wait for a heartbeat, for up to its lease."""
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
    """Return whether a job is alive, None for a job on another machine, where only a heartbeat can prove it."""
    return not _is_gone(holder) if _is_on_this_host(holder) else None


def remove_locks(batch_lists: BatchListStore, tokens: Collection[str]) -> None:
    """Remove the locks with these tokens. Their jobs raise LockLostError before their next write."""
    while True:
        row = batch_lists.store.get(LOCKS_KEY, {DerivedRow.data})
        data = (row.data if row is not None else None) or None
        lock_row = decode_lock_row(data)
        left = [holder for holder in lock_row.holders if holder.token not in tokens]
        batch_lists.store.clock.observe(lock_row.clock)
        new = encode_holders(left, batch_lists.store.clock.next())
        if len(left) == len(lock_row.holders) or batch_lists.store.compare_and_set(
            LOCKS_KEY, DerivedRow.data, data, new
        ):
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
    """Return whether the process of a holder is visible from this one."""
    return _get_process(holder).is_local()


def _is_gone(holder: LockHolder) -> bool:
    """Return whether the process of a holder on this host has certainly exited."""
    process = _get_process(holder)
    if process.is_local() and holder.pid == os.getpid():
        return holder.process_start != process_start_time(holder.pid) or holder.token not in LAST_SEEN
    return process.has_exited()
