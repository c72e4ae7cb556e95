"""Who holds what of a crawl, as tasks see it: they write only while the job that started them holds its lock.

The jobs that are at work stand in one row of the derived table, :data:`LOCKS`; :mod:`nutch2py.jobs.locks` writes it. A
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
from nutch2py.table import DataStore
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry

LOCKS = "run/jobs"
"""The key of the row; the derived table keeps it beside the states of batches, so that one scan reads both."""
HOLDING: ContextVar[str] = ContextVar("HOLDING", default="")
"""The token of the lock that the job in this thread holds, "" for none: what its tasks look for."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A job at work. ``token``: its own, never used again.

    ``alone``: what no other job may work on meanwhile; ``shared``: what others may work on that share it, too.
    ``machine`` tells hosts of one name apart; ``started`` processes of one id. ``since`` and ``seen`` are when the job
    began and was last heard of, ms since 1970 by its own clock, for people; ``beat`` is counted up every third of
    ``lease`` (seconds).
    """

    token: str
    job: str
    batch: str
    alone: list[str]
    shared: list[str]
    host: str
    machine: str
    pid: int
    started: str
    since: int
    seen: int
    beat: int
    lease: Annotated[float, msgspec.Meta(gt=0)]


class AtWork(msgspec.Struct, frozen=True):
    """What the row holds: who is at work, and the newest time of the crawl's clock that another process must know."""

    clock: int
    holders: list[Holder]


_DECODER = msgspec.json.Decoder(AtWork)
_NOBODY = AtWork(0, [])


def encode_holders(holders: list[Holder], clock: int = 0) -> bytes:
    """Return the bytes of the row."""
    return msgspec.json.encode(AtWork(clock, holders))


def decode_holders(data: bytes | None) -> list[Holder]:
    """Return the jobs that the bytes of the row name."""
    return decode_row(data).holders


def decode_row(data: bytes | None) -> AtWork:
    """Return what the bytes of the row hold; StoreError when they cannot be read.

    Then nobody knows who is at work, and no job may begin.
    """
    try:
        return _DECODER.decode(data) if data else _NOBODY
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the row {LOCKS} of the derived table does not tell which jobs are at work ({error}): it is damaged, or "
            "another version wrote it; see that no job is at work, then delete this row"
        ) from error


class Sighting(NamedTuple):
    """When a lock of this process was last known to be its own, by two clocks, and its lease (seconds)."""

    wall: float
    running: float
    lease: float

    @classmethod
    def now(cls, lease: float) -> Sighting:
        """Return a sighting of this moment."""
        return cls(time.time(), _running(), lease)

    def is_fresh(self) -> bool:
        """Tell whether nobody can have taken the lock since: that takes a whole lease of silence."""
        now = self.now(self.lease)
        return all(0 <= later - then < self.lease * FRESH for later, then in zip(now[:2], self[:2], strict=True))


def _running() -> float:
    """Return the seconds since the machine was started; those count, too, in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


_SECOND = 1000
FRESH = 1 / 6
"""The part of a lease after a sighting in which the process that holds the lock does not look again."""
SIGHTINGS: dict[str, Sighting] = {}
"""The locks that this process holds, by their tokens."""


def check_held(token: str, batches: Callable[[], DataStore[BatchEntry]], elsewhere: bool = False) -> None:
    """Raise :class:`LockLostError` when the job that has ``token`` does not hold its lock any more; "" is no lock.

    ``batches`` gives the derived table. Tasks of another process than their driver's always look: its lock goes at once
    when it dies. What they find and tell of the crawl's clock: see :func:`tell_clock`.
    """
    sighting = SIGHTINGS.get(token)
    if not token or (sighting is not None and sighting.is_fresh()):
        return
    now = Sighting.now(sighting.lease) if sighting is not None else None
    store = batches()
    row = store.get(LOCKS, {BatchEntry.data})
    found = decode_row(row.data if row is not None else None)
    store.clock.see(found.clock)
    if not any(holder.token == token for holder in found.holders):
        raise LockLostError(
            "this job was silent for so long that another has taken its place: nothing more is written; run it again "
            "when readdb -batches shows nobody at work"
        )
    if now is not None:
        SIGHTINGS[token] = now
    else:
        tell_clock(store, found.clock, elsewhere)


def tell_clock(store: DataStore[BatchEntry], told: int, elsewhere: bool) -> None:
    """Let other processes know the newest time that this one has given or seen, where they may not reach it themselves.

    ``told``: what the row says. The driver tells by itself, each time that it beats, what its machine's clock has
    reached; so its other processes tell what is beyond. A task ``elsewhere``, whose machine's clock is another, does it
    before every second of its writes.
    """
    newest = store.clock.newest if not elsewhere else store.clock.now() + _SECOND
    while (newest > told + _SECOND) if elsewhere else (newest > max(told, now_ms())):
        row = store.get(LOCKS, {BatchEntry.data})
        data = (row.data if row is not None else None) or None
        found = decode_row(data)
        told = found.clock
        if newest <= told or store.compare_and_set(LOCKS, BatchEntry.data, data, encode_holders(found.holders, newest)):
            return


def learn_clock(store: DataStore[BatchEntry]) -> None:
    """Let this process's clock not be behind what other processes have told."""
    row = store.get(LOCKS, {BatchEntry.data})
    store.clock.see(decode_row(row.data if row is not None else None).clock)
