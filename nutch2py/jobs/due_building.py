"""Making the index of what is due by tasks, and comparing it with the rows: for stores where that is no one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.works import DUEINDEX, reader
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.table import Query
from nutch2py.table.due import DueIndex
from nutch2py.webpage import WebPage

_ROWS = 1_000  # at once
_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.fetch_time, WebPage.score, WebPage.markers})


@dataclass(frozen=True, kw_only=True)
class DueIndexParameters(JobParameters):
    """``check``: look for entries that are missing, and write none."""

    check: bool = False


class DueIndexJob(TableJob[DueIndexParameters]):
    """Rows to entries of the index, or to the keys of those that it lacks."""

    reduce_steps = 0
    fields = _FIELDS

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """List the rows of a split; yield the keys of those that are not listed."""
        index = self.store.due_index()
        rows = ((key, page.fetch_time) for key, page in pages)
        while some := [*islice(rows, _ROWS)]:
            self.count("dueindex", "rows", len(some))
            if self.parameters.check:
                for key in index.missing(some):
                    yield key, 1
            else:
                self.check_held()
                index.put(some)


def _run(conf: Configuration, check: bool) -> JobResult:
    with begin(conf, reader("dueindex")) as tables:
        splits = range_splits(tables.store, Query(_FIELDS), map_tasks(conf))
        return run_job(DueIndexJob, conf, splits, DueIndexParameters(check=check), title="DueIndexJob")


def build(conf: Configuration, index: DueIndex) -> int:
    """Make the index anew; return how many rows it lists.

    It begins while no other job is at work. From then on every job keeps it, also beside the tasks that list the rows.
    """
    with begin(conf, DUEINDEX):
        index.begin()
    rows = _run(conf, check=False).count("dueindex", "rows")
    index.complete(rows)
    return rows


def check(conf: Configuration, index: DueIndex, note: Callable[[str], object]) -> int:
    """Tell ``note`` which rows the index lacks; return how many rows there are."""
    if trouble := index.trouble:
        note(trouble)
        return 0
    result = _run(conf, check=True)
    for key, _ in result.output:
        note(f"row {key} is not in the index where it should be")
    return result.count("dueindex", "rows")
