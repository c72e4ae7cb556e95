"""The rows that generate looks at: by the index of what is due where there is one, else every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.selection import NO_LIMIT, Selection, own_url
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import P, TableJob
from nutch2py.mapreduce.protocol import descending
from nutch2py.mapreduce.splits import DueSplit, Split, range_splits
from nutch2py.plugin_guard import PluginError
from nutch2py.plugins import id_of
from nutch2py.record import Field
from nutch2py.schedule.fetch_schedule import fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.table import DataStore, Query
from nutch2py.table.clock import now_ms
from nutch2py.table.due import Candidate, DueIndex, Span
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import WebPage

UNLISTED = "unlisted"
"""Counter: rows that were moved by a program that does not keep the index."""
_LEAST_READ, _MOST_READ = 1_000, 20_000
"""Entries of the index that are read at once."""


class Looking:
    """What a job reads that makes a batch.

    ``splits``: the map input. ``expected``: about how many rows that is. ``told``: what to say of it.
    """

    def __init__(self, splits: list[Split], expected: int | None = None, told: str = "") -> None:
        self.splits, self.expected, self.told = splits, expected, told

    def again(self, found: Mapping[str, int]) -> tuple[str, list[Split]]:
        """Return what to say, and the map input to choose from instead, when this was not to be trusted; else nothing.

        ``found``: the counters ``generator`` of the job.
        """
        return "", []


class DueRows(Looking):
    """Rows of a table that may be due.

    ``limit``: how many of the best are wanted, :data:`NO_LIMIT` when all that are due have to be looked at. When that
    is more than ``generate.due.share`` of the table, reading it in the order of keys, by all tasks, is faster.
    """

    def __init__(
        self, conf: Configuration, store: DataStore[WebPage], now: int, limit: int, fields: frozenset[Field[Any]]
    ) -> None:
        self._conf, self._store, self._fields = conf, store, fields
        index = store.due_index()
        super().__init__([], store.row_estimate() if index.best_first else index.rows_known())
        self.by_index = False
        self.told = f"every row is looked at{self._why_not(index, now, limit)}"
        if self.by_index:
            self.told = "the index of what is due says which rows are looked at"
            self.splits += [DueSplit(self._spans, part) for part in index.parts(map_tasks(conf))]
        else:
            self.splits += self._every()

    def _every(self) -> list[Split]:
        return range_splits(self._store, Query(self._fields), map_tasks(self._conf))

    def _why_not(self, index: DueIndex, now: int, limit: int) -> str:
        schedule = fetch_schedule(self._conf)
        times = schedule.due_times(now)
        if times is None:
            return f": schedule {id_of(schedule)} does not say by time what is due"
        if trouble := index.trouble:
            return f", for want of an index of what is due: {trouble}"
        if look := index.wants_look(now_ms()):
            return f": {look}"
        self._spans = [Span(*span) for span in times]
        most = int((self.expected or 0) * self._conf.get_float("generate.due.share", 0.25))
        wanted = limit
        if not index.best_first:
            wanted = index.count(self._spans, most + 1)
        elif limit > most:
            wanted = min(limit, index.count(self._spans, most + 1))
        if wanted > most:
            return ": more than generate.due.share of them are due"
        self.by_index, self.expected = True, wanted
        return ""

    def again(self, found: Mapping[str, int]) -> tuple[str, list[Split]]:
        """Have every row looked at when the index has proved wrong; it is not trusted after that."""
        index = self._store.due_index()
        if self.by_index and (lost := found.get(UNLISTED, 0)):
            index.doubt("a program that does not keep it has written the table since")
            return f"{lost} rows were moved by a program that does not keep the index: every row is looked at", (
                self._every()
            )
        if not self.by_index and not index.trouble:
            index.looked(found.get("rows", 0))
        return "", []


def choose(
    conf: Configuration,
    log: JobLines,
    job: type[TableJob[P]],
    parameters: P,
    looking: Looking,
    forget: Callable[[], object],
) -> JobResult:
    """Run a job that chooses rows; once more over other input when the first was not to be trusted.

    ``forget`` deletes what the first run has left.
    """
    if looking.told:
        log.line(looking.told)
    result = run_job(job, conf, looking.splits, parameters, title=log.name, expected=looking.expected)
    told, others = looking.again(result.group("generator"))
    if others:
        log.line(told)
        forget()
        result = run_job(job, conf, others, parameters, title=log.name)
    return result


class DueReader:
    """Iterates over the rows of a split, the best first; over all of them unless :meth:`ends_by` is called.

    ``best_first`` False: the index is in no order. ``unlisted`` counts rows that were moved without it.
    """

    def __init__(self, store: DataStore[WebPage], split: DueSplit, fields: frozenset[Field[Any]]) -> None:
        self._store, self._spans, self._part, self._fields = store, split.spans, split.part, fields
        self._index = store.due_index()
        self.best_first = self._index.best_first
        self._size = _MOST_READ
        self._chosen: Selection | None = None

    def ends_by(self, chosen: Selection, scoring: ScoringFilters, least: float) -> None:
        """End where no row can be among the ``chosen`` any more, or has the sort value ``least``.

        ``scoring`` sorts by score, and whoever takes the rows adds them to ``chosen`` before the next is asked for.
        """
        self._chosen, self._scoring, self._least = chosen, scoring, descending(least)
        if chosen.limit < NO_LIMIT:
            self._size = min(max(chosen.limit + chosen.limit // 8 + 64, _LEAST_READ), _MOST_READ)

    @property
    def unlisted(self) -> int:
        """How many rows were moved by a program that does not keep the index."""
        return self._index.unlisted

    def __iter__(self) -> Iterator[tuple[str, WebPage]]:
        return self._best() if self.best_first else self._index.rows(self._spans, self._part, self._fields)

    def _best(self) -> Iterator[tuple[str, WebPage]]:
        after: bytes | None = b""
        while after is not None and (found := self._index.read(self._spans, after, self._size)):
            pages = self._store.get_many([candidate.key for candidate in found], self._fields)
            rows = [(candidate, page) for candidate, page in zip(found, pages, strict=True) if page is not None]
            for candidate, page in rows:
                yield candidate.key, page
            after = self._behind(found[-1].place, rows)

    def _behind(self, last: bytes, rows: list[tuple[Candidate, WebPage]]) -> bytes | None:
        """Return the place behind which to go on, None when none of the rows there can be chosen."""
        if self._chosen is None:
            return last
        worst = self._chosen.settle()
        for candidate, page in reversed(rows):
            try:
                if self._index.score_of(candidate.place) != page.score:
                    continue  # no number that sorts, or changed since
                url = unreverse_url(candidate.key)
                order = descending(self._scoring.generator_sort_value(url, page, page.score))
            except (ValueError, PluginError):
                continue
            if order > self._least or (worst and order > worst[:16]):
                return None
            if worst and order == worst[:16] and self._index.url_is_behind(candidate.place, own_url(worst)):
                return max(last, self._index.behind_score(candidate.place))  # worse ones may have the same sort value
            return last
        return last
