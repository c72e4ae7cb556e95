"""Decides which locks ``unlock`` releases: those of dead jobs, with force also those of live ones."""

from __future__ import annotations

from nutch2py.errors import LockedError, UsageError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.locking.job_lock import remove_locks, wait_until_known_alive
from nutch2py.mapreduce.lock_check import LockHolder
from nutch2py.support.reporting import print_output


def release_locks(lists: BatchListStore, lock_id: str = "", *, force: bool = False) -> list[LockHolder]:
    """Release the lock ``lock_id``, or all locks without an id, of dead jobs; return the holders of the released locks.

    Waits one lease for a job of another machine: without a heartbeat it counts as dead. Live jobs keep their locks,
    and :class:`LockedError` is raised after the others are released. With ``force`` a live job loses its lock, and
    stops before its next write.
    """
    holders = [holder for holder in lists.read_lock_holders() if lock_id in ("", holder.token)]
    if lock_id and not holders:
        raise UsageError(f"there is no lock {lock_id}: it is already released; readdb -locks lists the held locks")
    living = [] if force else [holder for holder in holders if wait_until_known_alive(lists, holder)]
    freed = [holder for holder in holders if holder not in living]
    if freed:
        remove_locks(lists, {holder.token for holder in freed})
    for holder in freed:
        print_output(
            f"unlock: {holder.job} {holder.batch or '-'} on {holder.host} (process {holder.pid}) has lost its lock"
        )
    if living:
        names = ", ".join(f"{holder.job} on {holder.host} (process {holder.pid})" for holder in living)
        raise LockedError(f"{names} is alive and keeps its lock: stop the process, or release the lock with -force")
    return freed
