"""Locks: which jobs are at work on a crawl, so that two do not work on the same thing.

All stand in one cell of the derived table, which is only ever changed by comparing and setting: who reads it, finds
nobody there who works on the same thing, and sets it with itself added, has its lock, whoever tries at the same time.
:mod:`nutch2py.jobs.works` says what each job works on.

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

from nutch2py.conf import Configuration
from nutch2py.errors import LockedError, NutchError
from nutch2py.jobs.batchlist import BatchLists, BatchState
from nutch2py.jobs.job_lines import clock
from nutch2py.jobs.works import Work, meet
from nutch2py.mapreduce.held import (
    HOLDING,
    LOCKS,
    SIGHTINGS,
    Holder,
    Sighting,
    check_held,
    decode_row,
    encode_holders,
)
from nutch2py.mapreduce.processes import Process, started
from nutch2py.reporting import tell, warn
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry

_AHEAD = 60_000  # ms by which a clock is surely wrong
_BEAT = 1 / 3  # of a lease, between two beats
_LOOK = 0.5  # seconds between two looks at a holder of which we do not know whether it lives
Objection = Callable[[Holder], str]


class Held:
    """A lock that a job holds, until :meth:`release`; a thread of its own counts up the beat."""

    def __init__(self, lists: BatchLists, holder: Holder, states: list[BatchState], data: bytes | None) -> None:
        self._store, self._data = lists.store, data
        self.token, self._lease = holder.token, holder.lease
        self.states = states
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beats, name="crawl lock", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise :class:`nutch2py.errors.LockLostError` when another job has taken this one's place."""
        check_held(self.token, lambda: self._store)

    def _beats(self) -> None:
        while not self._over.wait(self._lease * _BEAT):
            with suppress(NutchError):  # the store is away: the next beat tries again, and the job finds out by itself
                seen = Sighting.now(self._lease)  # before we ask: an answer may be read long after it was true
                if not self._change(self._beaten):
                    SIGHTINGS.pop(self.token, None)
                    return  # taken: whoever writes finds out
                SIGHTINGS[self.token] = seen

    def _beaten(self, holders: list[Holder]) -> list[Holder] | None:
        if all(holder.token != self.token for holder in holders):
            return None
        return [
            replace(holder, beat=holder.beat + 1, seen=now_ms()) if holder.token == self.token else holder
            for holder in holders
        ]

    def release(self) -> None:
        """Give the lock back; that this cannot be done is warned of, for the job itself is done."""
        self._over.set()
        self._thread.join()
        SIGHTINGS.pop(self.token, None)
        try:
            self._change(self._without)
        except NutchError as error:
            warn(f"the lock of this job cannot be given back, it goes when this process ends ({error})")

    def _without(self, holders: list[Holder]) -> list[Holder] | None:
        left = [holder for holder in holders if holder.token != self.token]
        return None if len(left) == len(holders) else left

    def _change(self, change: Callable[[list[Holder]], list[Holder] | None]) -> bool:
        """Change who is at work; return False when ``change`` gives None, as there is nothing to change."""
        while True:
            found = decode_row(self._data)
            self._store.clock.see(found.clock)
            holders = change(found.holders)
            if holders is not None:
                data = encode_holders(holders, self._store.clock.next())
                if self._store.compare_and_set(LOCKS, BatchEntry.data, self._data, data):
                    self._data = data
                    return True
            before, row = self._data, self._store.get(LOCKS, {BatchEntry.data})  # another job has come or gone, or beat
            self._data = (row.data if row is not None else None) or None
            if holders is None and self._data == before:
                return False


@contextmanager
def holding(conf: Configuration, lists: BatchLists, work: Work, objection: Objection | None = None) -> Iterator[Held]:
    """Hold the lock for ``work`` within the block; the derived table must be there.

    Within the block the job may take another, which the first one does not exclude. ``objection`` says of a job that
    what both work on does not exclude why it is not to run at the same time, "" when it may. Raises
    :class:`nutch2py.errors.LockedError` when a living job works on the same thing. Whether a job of another machine
    lives takes up to its lease to find out.
    """
    mine = _myself(conf, work)
    SIGHTINGS[mine.token] = Sighting.now(mine.lease)  # other threads of this process see that it is not left over
    try:
        held = _take(lists, mine, work, objection)
    except BaseException:
        SIGHTINGS.pop(mine.token, None)
        raise
    before = HOLDING.set(held.token)
    try:
        yield held
    finally:
        HOLDING.reset(before)
        if mine.pid == os.getpid():  # a forked child that ends by an exception leaves this block, too
            held.release()


def _take(lists: BatchLists, mine: Holder, work: Work, objection: Objection | None) -> Held:
    ours = HOLDING.get()
    reasons: dict[str, str] = {}  # token -> what objects to running beside it

    def is_blocking(holder: Holder) -> bool:
        if holder.token == ours:
            return False
        if excludes(work, holder):
            return True
        if objection is not None and holder.token not in reasons:
            reasons[holder.token] = objection(holder)
        return bool(reasons.get(holder.token))

    watch = _Watch()
    waiting = False
    while True:
        watch.asks()
        data, states = lists.jobs_and_states()
        found = decode_row(data)
        watch.sees(found.holders)
        holders, clock_of_crawl = found.holders, lists.store.clock
        clock_of_crawl.see(found.clock)
        if any(holder.token == mine.token for holder in holders):  # an answer was lost that said so
            return Held(lists, mine, lists.states(), data)
        living = [holder for holder in holders if not (_gone(holder) or watch.is_silent(holder))]
        blocking = [holder for holder in living if is_blocking(holder)]
        for holder in blocking:
            if _is_here(holder) or watch.has_beaten(holder):
                raise LockedError(_refusal(work, holder, reasons.get(holder.token, "")))
        if blocking:
            if not waiting:
                tell(f"{_described(blocking[0])}: looking whether it lives, for {blocking[0].lease:g} s at most")
            waiting = True
            time.sleep(min(_LOOK, blocking[0].lease / 10))
            continue
        taken, seen = encode_holders([*living, mine], clock_of_crawl.next()), Sighting.now(mine.lease)
        if lists.store.compare_and_set(LOCKS, BatchEntry.data, data, taken):
            if len(living) < len(holders):  # one may have died between its last write and our look at it
                states = lists.states()
            SIGHTINGS[mine.token] = seen
            if found.clock > now_ms() + _AHEAD:
                warn(_ahead(found.clock - now_ms()))
            return Held(lists, mine, states, taken)


_LONGEST = timedelta.max // timedelta(seconds=1)  # cells may carry any number for a time


def _ahead(milliseconds: int) -> str:
    ahead = timedelta(seconds=min(milliseconds // 1000, _LONGEST))
    return (
        f"the newest cells of this crawl are {ahead} ahead of this machine's clock: new ones get times after them; "
        "set right the clock that is wrong"
    )


def excludes(work: Work, holder: Holder) -> bool:
    """Tell whether ``work`` may not be done while a job is at work."""
    return meet(work.alone, work.shared, frozenset(holder.alone), frozenset(holder.shared))


def at_work(holders: list[Holder]) -> list[Holder]:
    """Return the jobs that live, as far as can be told at once."""
    return [holder for holder in holders if not _gone(holder)]


def _described(holder: Holder) -> str:
    batch = f" {holder.batch}" if holder.batch else ""
    return f"{holder.job}{batch} is at work on {holder.host} (process {holder.pid}) since {clock(holder.since / 1000)}"


def _refusal(work: Work, holder: Holder, reason: str) -> str:
    batch = f" {work.batch}" if work.batch else ""
    why = f", for {reason}" if reason else ""
    return (
        f"{_described(holder)}, and {work.name}{batch} cannot run beside it{why}: wait until it has ended, or end it, "
        "then run this again"
    )


class _Watch:
    """What we have seen of the beats of holders, look by look: :meth:`asks`, then :meth:`sees` with the answer.

    Silence counts from an answer to the next question, not to its answer. A look that was answered late tells nothing
    of the time before it: the store was away from us, and may have been so from the holder. Then silence begins anew.
    """

    def __init__(self) -> None:
        self._asked = 0.0
        self._first: dict[str, int] = {}  # token -> the beat that we saw first
        self._since: dict[str, float] = {}  # token -> when silence began

    def asks(self) -> None:
        """Begin a look."""
        self._asked = time.monotonic()

    def sees(self, holders: Collection[Holder]) -> None:
        """Take the answer of a look."""
        now = time.monotonic()
        for holder in holders:
            self._first.setdefault(holder.token, holder.beat)
            if holder.token not in self._since or now - self._asked > holder.lease * _BEAT:
                self._since[holder.token] = now

    def has_beaten(self, holder: Holder) -> bool:
        return holder.beat != self._first[holder.token]

    def is_silent(self, holder: Holder) -> bool:
        """Tell whether a holder has been silent for a whole lease in which it could have been heard."""
        return not self.has_beaten(holder) and self._asked - self._since[holder.token] > holder.lease


def lives(lists: BatchLists, holder: Holder) -> bool:
    """Tell whether a job is alive: for one on another machine, look on until it beats, for its lease at most."""
    if _is_here(holder):
        return not _gone(holder)
    watch = _Watch()
    watch.asks()
    watch.sees([holder])
    while not watch.is_silent(holder):
        time.sleep(min(_LOOK, holder.lease / 10))
        watch.asks()
        now = next((other for other in lists.holders() if other.token == holder.token), None)
        if now is None:
            return False
        watch.sees([now])
        if watch.has_beaten(now):
            return True
    return False


def seems_alive(holder: Holder) -> bool | None:
    """Tell whether a job lives; None for one on another machine, of which that cannot be told at once."""
    return not _gone(holder) if _is_here(holder) else None


def free(lists: BatchLists, tokens: Collection[str]) -> None:
    """Take the locks with these tokens away from their jobs, which find out before they write anything more."""
    while True:
        row = lists.store.get(LOCKS, {BatchEntry.data})
        data = (row.data if row is not None else None) or None
        found = decode_row(data)
        left = [holder for holder in found.holders if holder.token not in tokens]
        lists.store.clock.see(found.clock)
        new = encode_holders(left, lists.store.clock.next())
        if len(left) == len(found.holders) or lists.store.compare_and_set(LOCKS, BatchEntry.data, data, new):
            return


# processes


def _myself(conf: Configuration, work: Work) -> Holder:
    lease = conf.get_float("crawl.lock.lease", 60.0)
    now = now_ms()
    mine = Process.own()
    return Holder(
        token=secrets.token_hex(8),
        job=work.name,
        batch=work.batch,
        alone=sorted(work.alone),
        shared=sorted(work.shared),
        host=mine.host,
        machine=mine.machine,
        pid=mine.pid,
        started=mine.started,
        since=now,
        seen=now,
        beat=0,
        lease=lease,
    )


def _process(holder: Holder) -> Process:
    return Process(holder.host, holder.machine, holder.pid, holder.started)


def _is_here(holder: Holder) -> bool:
    """Tell whether a holder's process would be seen from this one."""
    return _process(holder).is_here()


def _gone(holder: Holder) -> bool:
    """Tell whether a process of this host is surely gone."""
    process = _process(holder)
    if process.is_here() and holder.pid == os.getpid():
        return holder.started != started(holder.pid) or holder.token not in SIGHTINGS
    return process.is_gone()
