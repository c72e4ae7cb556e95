"""Checks in tasks that their job still holds its lock: only then may they write.

The running jobs are listed in one row of the derived table, :data:`LOCKS_KEY`, which
:mod:`nutch2py.jobs.locking.job_lock` writes. A task reads it before each group of rows that it writes: its driver may
have been paused, or disconnected, for so long that another job has taken over, and on a cluster tasks may outlive their
driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, NamedTuple

import msgspec

from nutch2py.errors import LockLostError, StoreError
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore

LOCKS_KEY = "run/jobs"
"""The key of the row; next to the states of batches in the derived table, so that one scan reads both."""
CURRENT_LOCK_TOKEN: ContextVar[str] = ContextVar("lock_token", default="")
"""The lock token of the job in this context, "" for none; its tasks check it."""


_STORED_NAMES = {
    "exclusive": "alone",
    "process_start": "started",
    "start_time": "since",
    "last_seen": "seen",
    "heartbeat": "beat",
}
"""Stored names of :class:`LockHolder` fields: processes of other versions also read and write the row."""


class LockHolder(msgspec.Struct, frozen=True, kw_only=True, rename=_STORED_NAMES):
    """A running job. ``token``: unique, never reused.

    ``exclusive``: resources that no other job may use meanwhile; ``shared``: resources that other jobs may share.
    ``machine`` distinguishes hosts of the same name; ``process_start`` processes of the same id. ``start_time`` and
    ``last_seen`` are for people: ms since 1970 by the job's own clock. ``heartbeat`` is incremented every third of
    ``lease`` (seconds).
    """

    token: str
    job: str
    batch: str
    exclusive: list[str]
    shared: list[str]
    host: str
    machine: str
    pid: int
    process_start: str
    start_time: int
    last_seen: int
    heartbeat: int
    lease: Annotated[float, msgspec.Meta(gt=0)]


class LockRow(msgspec.Struct, frozen=True):
    """Contents of the row: the running jobs, and the newest time of the crawl's clock for other processes."""

    clock: int
    holders: list[LockHolder]


_DECODER = msgspec.json.Decoder(LockRow)
_NO_LOCKS = LockRow(0, [])


def encode_holders(holders: list[LockHolder], clock: int = 0) -> bytes:
    """Encode the row."""
    return msgspec.json.encode(LockRow(clock, holders))


def decode_holders(data: bytes | None) -> list[LockHolder]:
    """Decode the running jobs in the row."""
    return decode_lock_row(data).holders


def decode_lock_row(data: bytes | None) -> LockRow:
    """Decode the row; StoreError when it is invalid.

    The running jobs are unknown then, and no job may start.
    """
    try:
        return _DECODER.decode(data) if data else _NO_LOCKS
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the row {LOCKS_KEY} of the derived table does not list the jobs at work ({error}): it is damaged, or "
            "another version wrote it; check that no job is at work, then delete this row"
        ) from error


class LastSeen(NamedTuple):
    """The last time at which a lock of this process was verified, by two clocks, and its lease (seconds)."""

    wall_time: float
    uptime: float
    lease: float

    @classmethod
    def take(cls, lease: float) -> LastSeen:
        """Return the current time."""
        return cls(time.time(), _uptime(), lease)

    def is_fresh(self) -> bool:
        """Return whether no other job can have taken the lock since: that requires a whole lease without heartbeat."""
        now = self.take(self.lease)
        return all(0 <= later - then < self.lease * FRESH_SHARE for later, then in zip(now[:2], self[:2], strict=True))


def _uptime() -> float:
    """Return the seconds since boot, including suspended time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


_SECOND_MS = 1000
FRESH_SHARE = 1 / 6
"""The fraction of a lease after a check in which the holder of the lock does not check again."""
LAST_SEEN: dict[str, LastSeen] = {}
"""The locks that this process holds, by token."""


def check_lock(token: str, open_store: Callable[[], DataStore[DerivedRow]], is_remote: bool = False) -> None:
    """Raise :class:`LockLostError` when the job with ``token`` no longer holds its lock; "" is no lock.

    ``open_store`` returns the derived table. Tasks in other processes than their driver's always check, because its
    lock is released at once when it dies. They also synchronize the crawl's clock: see :func:`publish_clock`.
    """
    last_check = LAST_SEEN.get(token)
    if not token or (last_check is not None and last_check.is_fresh()):
        return
    now = LastSeen.take(last_check.lease) if last_check is not None else None
    store = open_store()
    row = store.get(LOCKS_KEY, {DerivedRow.data})
    found = decode_lock_row(row.data if row is not None else None)
    store.clock.observe(found.clock)
    if not any(holder.token == token for holder in found.holders):
        raise LockLostError(
            "this job lost its lock: it was not renewed in time, and another job has taken it. Nothing more is "
            "written; run the job again when readdb -locks lists no other"
        )
    if now is not None:
        LAST_SEEN[token] = now
    else:
        publish_clock(store, found.clock, is_remote)


def publish_clock(store: DataStore[DerivedRow], published: int, is_remote: bool) -> None:
    """Publish the newest time that this process has given or seen to other processes.

    ``published``: the time in the row. The driver publishes its machine's time with each heartbeat, so its other
    processes publish only later times. A task that ``is_remote``, on a machine with another clock, publishes before
    every second of its writes.
    """
    newest = store.clock.newest if not is_remote else store.clock.now() + _SECOND_MS
    while (newest > published + _SECOND_MS) if is_remote else (newest > max(published, now_ms())):
        row = store.get(LOCKS_KEY, {DerivedRow.data})
        data = (row.data if row is not None else None) or None
        found = decode_lock_row(data)
        published = found.clock
        if newest <= published or store.compare_and_set(
            LOCKS_KEY, DerivedRow.data, data, encode_holders(found.holders, newest)
        ):
            return


def sync_clock(store: DataStore[DerivedRow]) -> None:
    """Advance this process's clock to the time that other processes have published."""
    row = store.get(LOCKS_KEY, {DerivedRow.data})
    store.clock.observe(decode_lock_row(row.data if row is not None else None).clock)
