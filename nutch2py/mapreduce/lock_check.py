"""Who holds what of a crawl, as tasks see it: they write only while the job that started them holds its lock.

The jobs that are at work stand in one row of the derived table, :data:`LOCKS_KEY`; :mod:`nutch2py.jobs.locking.job_lock` writes it. A
task looks into it before each group of rows that it writes: its driver may have been paused, or cut off, for so long
that another job has taken over, and on a cluster tasks may outlive their driver.
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
"""The key of the row; the derived table keeps it beside the states of batches, so that one scan reads both."""
CURRENT_LOCK_TOKEN: ContextVar[str] = ContextVar("HOLDING", default="")
"""The token of the lock that the job in this thread holds, "" for none: what its tasks look for."""


_STORED_NAMES = {
    "exclusive": "alone",
    "process_start": "started",
    "start_time": "since",
    "last_seen": "seen",
    "heartbeat": "beat",
}
"""Fields of :class:`LockHolder` and their names in the row: processes of other versions read and write it, too."""


class LockHolder(msgspec.Struct, frozen=True, kw_only=True, rename=_STORED_NAMES):
    """A job at work. ``token``: its own, never used again.

    ``exclusive``: what no other job may work on meanwhile; ``shared``: what others may work on that share it, too.
    ``machine`` tells hosts of one name apart; ``process_start`` processes of one id. ``start_time`` and ``last_seen`` are when the job
    began and was last heard of, ms since 1970 by its own clock, for people; ``heartbeat`` is counted up every third of
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
    """What the row holds: who is at work, and the newest time of the crawl's clock that another process must know."""

    clock: int
    holders: list[LockHolder]


_DECODER = msgspec.json.Decoder(LockRow)
_NO_LOCKS = LockRow(0, [])


def encode_holders(holders: list[LockHolder], clock: int = 0) -> bytes:
    """Return the bytes of the row."""
    return msgspec.json.encode(LockRow(clock, holders))


def decode_holders(data: bytes | None) -> list[LockHolder]:
    """Return the jobs that the bytes of the row name."""
    return decode_lock_row(data).holders


def decode_lock_row(data: bytes | None) -> LockRow:
    """Return what the bytes of the row hold; StoreError when they cannot be read.

    Then nobody knows who is at work, and no job may begin.
    """
    try:
        return _DECODER.decode(data) if data else _NO_LOCKS
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the row {LOCKS_KEY} of the derived table does not tell which jobs are at work ({error}): it is damaged, or "
            "another version wrote it; see that no job is at work, then delete this row"
        ) from error


class LastSeen(NamedTuple):
    """When a lock of this process was last known to be its own, by two clocks, and its lease (seconds)."""

    wall_time: float
    uptime: float
    lease: float

    @classmethod
    def take(cls, lease: float) -> LastSeen:
        """Return a sighting of this moment."""
        return cls(time.time(), _uptime(), lease)

    def is_fresh(self) -> bool:
        """Tell whether nobody can have taken the lock since: that takes a whole lease of silence."""
        now = self.take(self.lease)
        return all(0 <= later - then < self.lease * FRESH_SHARE for later, then in zip(now[:2], self[:2], strict=True))


def _uptime() -> float:
    """Return the seconds since the machine was started; those count, too, in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


_SECOND_MS = 1000
FRESH_SHARE = 1 / 6
"""The part of a lease after a sighting in which the process that holds the lock does not look again."""
LAST_SEEN: dict[str, LastSeen] = {}
"""The locks that this process holds, by their tokens."""


def check_lock(token: str, open_store: Callable[[], DataStore[DerivedRow]], is_remote: bool = False) -> None:
    """Raise :class:`LockLostError` when the job that has ``token`` does not hold its lock any more; "" is no lock.

    ``open_store`` gives the derived table. Tasks of another process than their driver's always look: its lock goes at once
    when it dies. What they find and tell of the crawl's clock: see :func:`publish_clock`.
    """
    sighting = LAST_SEEN.get(token)
    if not token or (sighting is not None and sighting.is_fresh()):
        return
    now = LastSeen.take(sighting.lease) if sighting is not None else None
    store = open_store()
    row = store.get(LOCKS_KEY, {DerivedRow.data})
    found = decode_lock_row(row.data if row is not None else None)
    store.clock.observe(found.clock)
    if not any(holder.token == token for holder in found.holders):
        raise LockLostError(
            "this job was silent for so long that another has taken its place: nothing more is written; run it again "
            "when readdb -batches shows nobody at work"
        )
    if now is not None:
        LAST_SEEN[token] = now
    else:
        publish_clock(store, found.clock, is_remote)


def publish_clock(store: DataStore[DerivedRow], published: int, is_remote: bool) -> None:
    """Let other processes know the newest time that this one has given or seen, where they may not reach it themselves.

    ``published``: what the row says. The driver tells by itself, each time that it beats, what its machine's clock has
    reached; so its other processes tell what is beyond. A task ``is_remote``, whose machine's clock is another, does it
    before every second of its writes.
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
    """Let this process's clock not be behind what other processes have told."""
    row = store.get(LOCKS_KEY, {DerivedRow.data})
    store.clock.observe(decode_lock_row(row.data if row is not None else None).clock)
