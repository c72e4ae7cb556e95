"""Letting go of what the derived table has much of: in map tasks, each a part, where the driver would take minutes.

Rows go in any order, and the state of a batch last: a job that is killed meanwhile leaves a batch that is done and of
whose list a part is gone, and whoever comes next lets the rest go.
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

_MAX_DRIVER_ROWS = 500_000
"""Rows that the driver deletes itself: it takes 13 s, and starting tasks on a cluster 12."""


class BulkDeleteJob(TableJob[JobParameters]):
    """Rows of the derived table to nothing."""

    reduce_steps = 0

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Delete the rows of a range."""
        with self.derived_store.batch(self.check_lock) as batch:
            for key in self.derived_store.keys(split.key_range):
                batch.delete(key)
                self.channel.advance()
        yield from ()


def bulk_delete_batch(conf: Configuration, batch_lists: BatchListStore, batch_id: str, title: str) -> None:
    """Delete all that is held of a batch, its state last; ``title``: the job's name, for the progress that is shown."""
    tasks = map_task_count(conf)
    state = batch_lists.get_record(batch_id)
    if tasks > 1 and state is not None and state.count > _MAX_DRIVER_ROWS and not batch_lists.can_split_ranges:
        _delete_by_tasks(conf, [split.key_range for split in batch_lists.make_list_splits(batch_id, tasks)], title)
    batch_lists.delete_batch(batch_id)


def bulk_delete_range(
    conf: Configuration, batch_lists: BatchListStore, key_range: KeyRange, split_keys: Sequence[str], title: str
) -> None:
    """Delete the rows of a range; of many rows, tasks do it that share the range, which is cut at the keys ``split_keys``."""
    if not batch_lists.store.exists():
        return
    if map_task_count(conf) == 1 or batch_lists.can_split_ranges:
        batch_lists.delete_range(key_range)
        return
    keys = batch_lists.store.keys(key_range)
    with batch_lists.store.batch() as batch:
        for key in islice(keys, _MAX_DRIVER_ROWS):
            batch.delete(key)
    if next(keys, None) is not None:
        some = split_keys[:: max(1, len(split_keys) // map_task_count(conf))]
        _delete_by_tasks(conf, [KeyRange(*ends) for ends in pairwise([key_range.start, *some, key_range.stop])], title)


def _delete_by_tasks(conf: Configuration, ranges: Sequence[KeyRange], title: str) -> None:
    run_job(BulkDeleteJob, conf, [DerivedTableSplit(each) for each in ranges], title=f"{title}: clearing")
