"""Bulk deletes in the derived table: map tasks delete parts in parallel, where the driver alone would take minutes.

Rows are deleted in any order, and the record of a batch last. A job that is killed meanwhile leaves a finished batch
with part of its list, and the next job deletes the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, TableJob
from nutch2py.table import KeyRange

MAX_DRIVER_ROWS = 500_000
"""Rows that the driver deletes itself: this takes 13 s, as long as it takes to start tasks on a cluster."""


class BulkDeleteJob(TableJob[JobParameters]):
    """Map-only job that deletes rows of the derived table."""

    reduce_steps = 0

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Delete the rows of a range."""
        with self.derived_store.batch(self.check_lock) as batch:
            for key in self.derived_store.keys(split.key_range):
                batch.delete(key)
                self.channel.advance()
        yield from ()


def bulk_delete_batch(conf: Configuration, batch_lists: BatchListStore, batch_id: str, title: str) -> None:
    """Delete all entries of a batch, its record last. ``title`` is the name of the job in the progress display."""
    tasks = map_task_count(conf)
    record = batch_lists.get_record(batch_id)
    if tasks > 1 and record is not None and record.count > MAX_DRIVER_ROWS and not batch_lists.can_split_ranges:
        _delete_by_tasks(conf, [split.key_range for split in batch_lists.make_list_splits(batch_id, tasks)], title)
    batch_lists.delete_batch(batch_id)


def bulk_delete_range(
    conf: Configuration, batch_lists: BatchListStore, key_range: KeyRange, split_keys: Sequence[str], title: str
) -> None:
    """Delete the rows of a range. For many rows, run tasks on parts of the range, which is cut at ``split_keys``."""
    if not batch_lists.store.exists():
        return
    if map_task_count(conf) == 1 or batch_lists.can_split_ranges:
        batch_lists.delete_range(key_range)
        return
    keys = batch_lists.store.keys(key_range)
    with batch_lists.store.batch() as batch:
        for key in islice(keys, MAX_DRIVER_ROWS):
            batch.delete(key)
    if next(keys, None) is not None:
        some = split_keys[:: max(1, len(split_keys) // map_task_count(conf))]
        _delete_by_tasks(conf, [KeyRange(*ends) for ends in pairwise([key_range.start, *some, key_range.stop])], title)


def _delete_by_tasks(conf: Configuration, ranges: Sequence[KeyRange], title: str) -> None:
    run_job(BulkDeleteJob, conf, [DerivedTableSplit(each) for each in ranges], title=f"{title}: clearing")
