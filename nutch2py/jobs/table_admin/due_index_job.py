"""Builds and checks the due index by tasks, for stores that cannot do it in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import DUEINDEX, make_reader_scope
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery
from nutch2py.table.due_index import DueIndexMaintenance

ROWS_PER_READ = 1_000
"""Rows per read of the table."""
_FIELDS: frozenset[RecordField] = frozenset({WebPage.fetch_time, WebPage.score, WebPage.markers})


@dataclass(frozen=True, kw_only=True)
class DueIndexParameters(JobParameters):
    """``only_check``: report missing entries instead of writing them."""

    only_check: bool = False


class DueIndexJob(TableJob[DueIndexParameters]):
    """Maps rows to entries of the index, or to the keys of missing entries."""

    reduce_steps = 0
    fields = _FIELDS

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Add the rows of a split to the index, or yield the keys of missing rows."""
        index: DueIndexMaintenance = self.store.due_index()
        rows = ((key, page.fetch_time) for key, page in pages)
        while chunk := [*islice(rows, ROWS_PER_READ)]:
            self.count("dueindex", "rows", len(chunk))
            if self.parameters.only_check:
                for key in index.find_missing_rows(chunk):
                    yield key, 1
            else:
                self.check_lock()
                index.add_rows(chunk)


def _run_due_index_job(conf: Configuration, only_check: bool) -> JobResult:
    with open_job(conf, make_reader_scope("dueindex")) as tables:
        splits = range_splits(tables.store, TableQuery(_FIELDS), map_task_count(conf))
        return run_job(DueIndexJob, conf, splits, DueIndexParameters(only_check=only_check), title="DueIndexJob")


def build_due_index(conf: Configuration, index: DueIndexMaintenance) -> int:
    """Rebuild the index; return the number of its rows.

    The build starts while no other job runs. From then on every job updates the index, in parallel to the tasks.
    """
    with open_job(conf, DUEINDEX):
        index.start_build()
    rows = _run_due_index_job(conf, only_check=False).count("dueindex", "rows")
    index.finish_build(rows)
    return rows


def check_due_index(conf: Configuration, index: DueIndexMaintenance, report: Callable[[str], object]) -> int:
    """Pass each row missing in the index to ``report``; return the number of rows."""
    if problem := index.unavailable_reason:
        report(problem)
        return 0
    result = _run_due_index_job(conf, only_check=True)
    for key, _ in result.output:
        report(f"row {key} is not in the index where it should be")
    return result.count("dueindex", "rows")
