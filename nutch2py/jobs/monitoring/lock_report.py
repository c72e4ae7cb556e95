"""Who holds what of a crawl, and freeing the lock of a job that is gone."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, UsageError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.job_context import require_crawl_table
from nutch2py.jobs.locking.job_lock import is_alive_here, remove_locks, wait_until_known_alive
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.mapreduce.lock_check import LockHolder
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import print_output
from nutch2py.table import open_store


@dataclass(frozen=True)
class LockReport:
    """A lock. ``id``: its own; ``job``: as the command is called; ``batch``: "" for none.

    ``host``, ``pid``: the process that took it, ``since`` when. ``until``: when its lease ends unless it gives another
    sign of life (ms since 1970, by its machine's clock). ``alive``: None for a process of another machine, which only
    its signs can tell. ``alone``: what no other job may work on meanwhile.
    """

    id: str
    job: str
    batch: str
    host: str
    pid: int
    since: int
    until: int
    alive: bool | None
    alone: tuple[str, ...]

    @classmethod
    def from_holder(cls, holder: LockHolder) -> LockReport:
        """Return what there is to say of a holder."""
        until = holder.last_seen + int(holder.lease * 1000)
        alone = tuple(holder.exclusive)
        alive = is_alive_here(holder)
        who = holder.job, holder.batch, holder.host, holder.pid
        return cls(holder.token, *who, holder.start_time, until, alive, alone)


def list_locks(conf: Configuration) -> list[LockReport]:
    """Return the locks that are held on a crawl, the oldest first."""
    require_crawl_table(
        open_store(conf, WebPage)
    )  # and nothing is finished first, as other readers do: that needs a lock
    return sorted(map(LockReport.from_holder, BatchListStore(conf).read_lock_holders()), key=lambda lock: lock.since)


def print_locks(conf: Configuration, as_json: bool = False) -> int:
    """Print the locks, a line each: id, job, batch, host, process, since, until, alive, what it has alone.

    ``-`` for no batch. As JSON one object a line, with times in ms since 1970.
    """
    for lock in list_locks(conf):
        if as_json:
            print_output(orjson.dumps(asdict(lock)).decode())
            continue
        alive = {True: "alive", False: "dead", None: "elsewhere"}[lock.alive]
        times = format_time(lock.since / 1000), format_time(lock.until / 1000)
        columns = lock.id, lock.job, lock.batch or "-", lock.host, lock.pid, *times, alive, ", ".join(lock.alone)
        print_output("\t".join(map(str, columns)))
    return 0


def unlock(conf: Configuration, lock_id: str = "", *, all_locks: bool = False, force: bool = False) -> list[LockReport]:
    """Free the lock ``lock_id``, or ``all_locks`` one, whose job is dead; return those that were freed.

    A job on another machine counts as dead when it gives no sign of life for its lease, for which this waits. When one
    lives, it keeps its lock and :class:`LockedError` says so, after the others are freed; with ``force`` it loses
    it: it ends before it writes anything more.
    """
    if bool(lock_id) == all_locks:
        raise UsageError("name one lock by its id, or give -all; readdb -locks lists them")
    require_crawl_table(open_store(conf, WebPage))
    lists = BatchListStore(conf)
    chosen = [holder for holder in lists.read_lock_holders() if all_locks or holder.token == lock_id]
    if lock_id and not chosen:
        raise UsageError(f"there is no lock {lock_id}: it is free already; readdb -locks lists those that are held")
    living = [] if force else [holder for holder in chosen if wait_until_known_alive(lists, holder)]
    freed = [holder for holder in chosen if holder not in living]
    if freed:
        remove_locks(lists, {holder.token for holder in freed})
    for holder in freed:
        print_output(
            f"unlock: {holder.job} {holder.batch or '-'} on {holder.host} (process {holder.pid}) has lost its lock"
        )
    if living:
        names = ", ".join(f"{holder.job} on {holder.host} (process {holder.pid})" for holder in living)
        raise LockedError(f"{names} is alive and keeps its lock: end the process, or take the lock with -force")
    return [LockReport.from_holder(holder) for holder in freed]
