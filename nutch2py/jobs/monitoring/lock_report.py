"""Reports the locks of a crawl, for the commands ``readdb -locks`` and ``unlock``."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.job_context import require_crawl_table
from nutch2py.jobs.locking.job_lock import is_alive_here
from nutch2py.jobs.locking.unlock import release_locks
from nutch2py.jobs.nutch_log_lines import format_time
from nutch2py.mapreduce.lock_check import LockHolder
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import print_output
from nutch2py.table import open_store


@dataclass(frozen=True)
class LockReport:
    """A held lock. Times are ms since 1970, by the clock of ``host``.

    Attributes:
        id: Token of the lock.
        job: Name of the command.
        batch: Batch of the job, "" for none.
        host: Machine of the process.
        pid: Process id.
        since: Time at which the lock was taken.
        until: End of its lease without another heartbeat.
        alive: Whether the process is alive; None for a process of another machine.
        exclusive: Resources that the job locks exclusively.
    """

    id: str
    job: str
    batch: str
    host: str
    pid: int
    since: int
    until: int
    alive: bool | None
    exclusive: tuple[str, ...]

    @classmethod
    def from_holder(cls, holder: LockHolder) -> LockReport:
        """Return the report of a lock holder."""
        until = holder.last_seen + int(holder.lease * 1000)
        exclusive = tuple(holder.exclusive)
        alive = is_alive_here(holder)
        process = holder.job, holder.batch, holder.host, holder.pid
        return cls(holder.token, *process, holder.start_time, until, alive, exclusive)


def list_locks(conf: Configuration) -> list[LockReport]:
    """Return the held locks of a crawl, oldest first."""
    # unlike other readers, this finishes no interrupted journal: that needs a lock
    require_crawl_table(open_store(conf, WebPage))
    return sorted(map(LockReport.from_holder, BatchListStore(conf).read_lock_holders()), key=lambda lock: lock.since)


def print_locks(conf: Configuration, as_json: bool = False) -> int:
    """Print the locks, one per line: id, job, batch, host, process, since, until, alive, exclusive resources.

    ``-`` for no batch. As JSON one object per line, with times in ms since 1970.
    """
    for lock in list_locks(conf):
        if as_json:
            print_output(orjson.dumps(asdict(lock)).decode())
            continue
        alive = {True: "alive", False: "dead", None: "elsewhere"}[lock.alive]
        times = format_time(lock.since / 1000), format_time(lock.until / 1000)
        columns = lock.id, lock.job, lock.batch or "-", lock.host, lock.pid, *times, alive, ", ".join(lock.exclusive)
        print_output("\t".join(map(str, columns)))
    return 0


def unlock(conf: Configuration, lock_id: str = "", *, all_locks: bool = False, force: bool = False) -> list[LockReport]:
    """Release locks of dead jobs (:func:`nutch2py.jobs.locking.unlock.release_locks`); return the released locks."""
    if bool(lock_id) == all_locks:
        raise UsageError("name one lock by its id, or give -all; readdb -locks lists them")
    require_crawl_table(open_store(conf, WebPage))
    return [LockReport.from_holder(holder) for holder in release_locks(BatchListStore(conf), lock_id, force=force)]
