"""Rows that generate reads: by the due index where one exists, else by a full table scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.top_n import NO_LIMIT, TopNSelector, get_row_url
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import DueIndexSplit, Split, range_splits
from nutch2py.mapreduce.mrjob_protocols import descending_sort_key
from nutch2py.mapreduce.table_job import ParametersT, TableJob
from nutch2py.plugins.loading import plugin_id_of
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.schedule.fetch_schedule import create_fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, TableQuery
from nutch2py.table.due_index import DueCandidate, DueIndexReader, TimeSpan
from nutch2py.url.keys import unreverse_url

UNLISTED_ROWS_COUNTER = "unlisted"
"""Counter: rows that were changed by a program that does not maintain the due index."""
MIN_READ_ENTRIES, MAX_READ_ENTRIES = 1_000, 20_000
"""Entries of the due index per read."""


class GenerateInput:
    """Input of a job that makes a batch.

    ``splits``: the map input. ``expected_rows``: its approximate number of rows. ``message``: a line for the log.
    """

    def __init__(self, splits: list[Split], expected_rows: int | None = None, message: str = "") -> None:
        self.splits, self.expected_rows, self.message = splits, expected_rows, message

    def get_fallback(self, counters: Mapping[str, int]) -> tuple[str, list[Split]]:
        """Return a log line and other map input if the first input proved wrong, else empty values.

        ``counters``: the job's counters of the group ``generator``.
        """
        return "", []


class DueRowInput(GenerateInput):
    """Rows of a table that may be due.

    ``limit``: how many of the best are needed, :data:`NO_LIMIT` when all due rows must be read. When more than
    ``generate.due.share`` of the table are needed, a scan in key order by all tasks is faster than the due index. With
    HBase's exact check, ``hbase.due.exact.share`` decides if it is less.
    """

    def __init__(
        self, conf: Configuration, store: DataStore[WebPage], now: int, limit: int, fields: frozenset[RecordField]
    ) -> None:
        self._conf, self._store, self._fields = conf, store, fields
        index: DueIndexReader = store.due_index()
        super().__init__([], store.row_estimate() if index.is_sorted_by_score else index.known_row_count())
        self.uses_due_index = False
        self.message = f"full table scan{self._plan_due_index(index, now, limit)}"
        if self.uses_due_index:
            self.message = "reading the rows that the due index lists"
            self.splits += [DueIndexSplit(self._spans, part) for part in index.partitions(map_task_count(conf))]
        else:
            self.splits += self._make_full_scan_splits()

    def _make_full_scan_splits(self) -> list[Split]:
        return range_splits(self._store, TableQuery(self._fields), map_task_count(self._conf))

    def _plan_due_index(self, index: DueIndexReader, now: int, limit: int) -> str:
        """Decide whether to use the due index; return the end of the log line if not, else ""."""
        schedule = create_fetch_schedule(self._conf)
        times = schedule.due_times(now)
        if times is None:
            return f": schedule {plugin_id_of(schedule)} does not select due rows by time"
        if reason := index.unavailable_reason:
            return f", as the due index is not available: {reason}"
        self._spans = [TimeSpan(*span) for span in times]
        share, decides = self._conf.get_float("generate.due.share", 0.25), "generate.due.share"
        if index.max_due_share < share:
            share, decides = index.max_due_share, index.max_due_share_property
        max_rows = int((self.expected_rows or 0) * share)
        needed = limit
        if not index.is_sorted_by_score:
            needed = index.count(self._spans, max_rows + 1)
        elif limit > max_rows:
            needed = min(limit, index.count(self._spans, max_rows + 1))
        if needed > max_rows:
            return f": more than {decides} of the rows are due"
        if reason := index.full_scan_reason(now_ms(), self._spans):
            return f": {reason}"
        self.uses_due_index, self.expected_rows = True, needed
        return ""

    def get_fallback(self, counters: Mapping[str, int]) -> tuple[str, list[Split]]:
        """Return a full table scan if the due index proved wrong, and invalidate it then."""
        index: DueIndexReader = self._store.due_index()
        if self.uses_due_index and (lost := counters.get(UNLISTED_ROWS_COUNTER, 0)):
            index.invalidate("a program that does not maintain it has written to the table since")
            return f"{lost} rows were changed by a program that does not maintain the due index: full table scan", (
                self._make_full_scan_splits()
            )
        if not self.uses_due_index and not index.unavailable_reason:
            index.record_full_scan(counters.get("rows", 0))
        return "", []


def run_selection_job(
    conf: Configuration,
    logger: JobLogger,
    job: type[TableJob[ParametersT]],
    parameters: ParametersT,
    source: GenerateInput,
    discard_output: Callable[[], object],
) -> JobResult:
    """Run a job that selects rows, and again with other input if the first input proved wrong.

    ``discard_output`` deletes the output of the first run.
    """
    if source.message:
        logger.log(source.message)
    result = run_job(job, conf, source.splits, parameters, title=logger.name, expected_rows=source.expected_rows)
    message, other_splits = source.get_fallback(result.group("generator"))
    if other_splits:
        logger.log(message)
        discard_output()
        result = run_job(job, conf, other_splits, parameters, title=logger.name)
    return result


class DueRowReader:
    """Iterates over the rows of a split, best first; over all of them unless :meth:`set_stop_condition` is called.

    ``best_first`` is False when the index is unordered. ``unlisted_rows`` counts rows that changed without the index.
    """

    def __init__(self, store: DataStore[WebPage], split: DueIndexSplit, fields: frozenset[RecordField]) -> None:
        self._store, self._spans, self._part, self._fields = store, split.spans, split.partition, fields
        self._index: DueIndexReader = store.due_index()
        self.best_first = self._index.is_sorted_by_score
        self._read_size = MAX_READ_ENTRIES
        self._selector: TopNSelector | None = None

    def set_stop_condition(self, selector: TopNSelector, scoring: ScoringFilters, min_score: float) -> None:
        """Stop where no further row can be selected by ``selector``, or reach the sort value ``min_score``.

        ``scoring`` must sort by score. The caller adds each row to ``selector`` before it takes the next.
        """
        self._selector, self._scoring, self._min_order = selector, scoring, descending_sort_key(min_score)
        if selector.limit < NO_LIMIT:
            self._read_size = min(max(selector.limit + selector.limit // 8 + 64, MIN_READ_ENTRIES), MAX_READ_ENTRIES)

    @property
    def unlisted_rows(self) -> int:
        """Number of rows that were changed by a program that does not maintain the index."""
        return self._index.unindexed_count

    def __iter__(self) -> Iterator[tuple[str, WebPage]]:
        return (
            self._iter_best_first() if self.best_first else self._index.read_rows(self._spans, self._part, self._fields)
        )

    def _iter_best_first(self) -> Iterator[tuple[str, WebPage]]:
        after: bytes | None = b""
        while after is not None and (candidates := self._index.read_candidates(self._spans, after, self._read_size)):
            pages = self._store.get_many([candidate.key for candidate in candidates], self._fields)
            rows = [(candidate, page) for candidate, page in zip(candidates, pages, strict=True) if page is not None]
            for candidate, page in rows:
                yield candidate.key, page
            after = self._find_next_position(candidates[-1].sort_key, rows)

    def _find_next_position(self, last: bytes, rows: list[tuple[DueCandidate, WebPage]]) -> bytes | None:
        """Return the sort key after which to continue, None when no further row can be selected."""
        if self._selector is None:
            return last
        worst = self._selector.find_worst()
        for candidate, page in reversed(rows):
            try:
                if self._index.score_of(candidate.sort_key) != page.score:
                    continue  # not a sortable number, or changed since
                url = unreverse_url(candidate.key)
                order = descending_sort_key(self._scoring.generator_sort_value(url, page, page.score))
            except (ValueError, PluginError):
                continue
            if order > self._min_order or (worst and order > worst[:16]):
                return None
            if worst and order == worst[:16] and self._index.is_after_url(candidate.sort_key, get_row_url(worst)):
                return max(last, self._index.after_score(candidate.sort_key))  # worse ones may have the same sort value
            return last
        return last
