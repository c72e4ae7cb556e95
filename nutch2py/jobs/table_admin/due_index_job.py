"""Making the index of what is due by tasks, and comparing it with the rows: for stores where that is no one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import DUEINDEX, make_reader_scope
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery
from nutch2py.table.due_index import DueIndex

_ROWS_PER_READ = 1_000  # at once
_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.fetch_time, WebPage.score, WebPage.markers})


@dataclass(frozen=True, kw_only=True)
class DueIndexParameters(JobParameters):
    """``only_check``: look for entries that are missing, and write none."""

    only_check: bool = False


class DueIndexJob(TableJob[DueIndexParameters]):
    """Rows to entries of the index, or to the keys of those that it lacks."""

    reduce_steps = 0
    fields = _FIELDS

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """List the rows of a split; yield the keys of those that are not listed."""
        index = self.store.due_index()
        rows = ((key, page.fetch_time) for key, page in pages)
        while some := [*islice(rows, _ROWS_PER_READ)]:
            self.count("dueindex", "rows", len(some))
            if self.parameters.only_check:
                for key in index.find_missing_rows(some):
                    yield key, 1
            else:
                self.check_lock()
                index.add_rows(some)


def _run_due_index_job(conf: Configuration, only_check: bool) -> JobResult:
    with open_job(conf, make_reader_scope("dueindex")) as tables:
        splits = range_splits(tables.store, TableQuery(_FIELDS), map_task_count(conf))
        return run_job(DueIndexJob, conf, splits, DueIndexParameters(only_check=only_check), title="DueIndexJob")


def build_due_index(conf: Configuration, index: DueIndex) -> int:
    """Make the index anew; return how many rows it lists.

    It begins while no other job is at work. From then on every job keeps it, also beside the tasks that list the rows.
    """
    with open_job(conf, DUEINDEX):
        index.start_build()
    rows = _run_due_index_job(conf, only_check=False).count("dueindex", "rows")
    index.finish_build(rows)
    return rows


def check_due_index(conf: Configuration, index: DueIndex, report: Callable[[str], object]) -> int:
    """Tell ``report`` which rows the index lacks; return how many rows there are."""
    if trouble := index.unavailable_reason:
        report(trouble)
        return 0
    result = _run_due_index_job(conf, only_check=True)
    for key, _ in result.output:
        report(f"row {key} is not in the index where it should be")
    return result.count("dueindex", "rows")
