"""Letting go of what the derived table has much of: in map tasks, each a part, where the driver would take minutes.

Rows go in any order, and the state of a batch last: a job that is killed meanwhile leaves a batch that is done and of
whose list a part is gone, and whoever comes next lets the rest go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import SideSplit
from nutch2py.table import KeyRange

_FEW = 500_000
"""Rows that the driver deletes itself: it takes 13 s, and starting tasks on a cluster 12."""


class ClearingJob(TableJob[JobParameters]):
    """Rows of the derived table to nothing."""

    reduce_steps = 0

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Delete the rows of a range."""
        with self.batches.batch(self.check_held) as batch:
            for key in self.batches.keys(split.range):
                batch.delete(key)
                self.channel.advance()
        yield from ()


def forget(conf: Configuration, lists: BatchLists, batch_id: str, title: str) -> None:
    """Delete all that is held of a batch, its state last; ``title``: the job's name, for the progress that is shown."""
    tasks = map_tasks(conf)
    state = lists.state(batch_id)
    if tasks > 1 and state is not None and state.count > _FEW and not lists.cuts_itself:
        _by_tasks(conf, [split.range for split in lists.splits(batch_id, tasks)], title)
    lists.forget(batch_id)


def clear(conf: Configuration, lists: BatchLists, key_range: KeyRange, cuts: Sequence[str], title: str) -> None:
    """Delete the rows of a range; of many rows, tasks do it that share the range, which is cut at the keys ``cuts``."""
    if not lists.store.exists():
        return
    if map_tasks(conf) == 1 or lists.cuts_itself:
        lists.delete(key_range)
        return
    keys = lists.store.keys(key_range)
    with lists.store.batch() as batch:
        for key in islice(keys, _FEW):
            batch.delete(key)
    if next(keys, None) is not None:
        some = cuts[:: max(1, len(cuts) // map_tasks(conf))]
        _by_tasks(conf, [KeyRange(*ends) for ends in pairwise([key_range.start, *some, key_range.stop])], title)


def _by_tasks(conf: Configuration, ranges: Sequence[KeyRange], title: str) -> None:
    run_job(ClearingJob, conf, [SideSplit(each) for each in ranges], title=f"{title}: clearing")
