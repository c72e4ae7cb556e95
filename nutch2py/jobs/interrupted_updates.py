"""Finishes the committed updates of killed updatedb jobs (:mod:`nutch2py.jobs.batches.update_journal`)."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, PermissionDeniedError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchRecord, BatchState
from nutch2py.jobs.batches.update_journal import finish_interrupted_update
from nutch2py.jobs.locking.job_lock import hold_job_lock
from nutch2py.jobs.locking.lock_scopes import READ, UPDATEDB, LockScope, scopes_conflict
from nutch2py.support.reporting import warn


def finish_all_interrupted_updates(conf: Configuration) -> None:
    """Finish the committed updates of killed updatedb jobs, as every job does at its start."""
    lists = BatchListStore(conf)
    finish_interrupted_updates(conf, lists, lists.list_records(), READ)


def finish_interrupted_updates(
    conf: Configuration, batch_lists: BatchListStore, records: list[BatchRecord], scope: LockScope
) -> None:
    """Finish waiting journals, under the lock of their updatedb.

    When that lock is not available, a running job writes the journal, or works on the rows that it changes. A job with
    a scope that allows an updatedb of that batch then continues. It reads rows of which some are changed and some are
    not yet, as during any updatedb, and the holder of the lock or the next job finishes the journal. Any other job
    would compute from rows that the journal is yet to change, and is rejected. A reader that may not write in the table
    shows it as it is, with a warning.
    """
    for record in records:
        if record.state != BatchState.APPLYING:
            continue
        update = UPDATEDB.for_batch(record.batch_id)
        try:
            with hold_job_lock(conf, batch_lists, update) as own:
                current = batch_lists.get_record(record.batch_id)
                if current is not None and current.state == BatchState.APPLYING:
                    finish_interrupted_update(conf, record.batch_id, own.check_held)
        except LockedError:
            if scopes_conflict(scope.exclusive, scope.shared, update.exclusive, update.shared):
                raise
        except PermissionDeniedError as error:
            if not scope.is_read_only:
                raise
            warn(f"the update of batch {record.batch_id} is incomplete, and this process cannot finish it ({error})")
