"""The rows that generate looks at: by the index of what is due where there is one, else every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.jobs.selection import NO_LIMIT, Selection, own_url
from nutch2py.mapreduce.protocol import descending
from nutch2py.mapreduce.splits import DueSplit, Split
from nutch2py.plugin_guard import PluginError
from nutch2py.plugins import id_of
from nutch2py.record import Field
from nutch2py.schedule.fetch_schedule import fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.table import DataStore
from nutch2py.table.due import Candidate, Span
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import WebPage

_LEAST_READ, _MOST_READ = 1_000, 20_000
"""Entries of the index that are read at once."""


def splits_of(
    conf: Configuration, store: DataStore[WebPage], now: int, limit: int
) -> tuple[list[Split], int | None, str]:
    """Return the splits of the index, about how many rows will be looked at, and what to say of it.

    No splits: all rows have to be looked at. ``limit``: how many of the best are wanted, :data:`NO_LIMIT` when all that
    are due have to be looked at. When that is more than ``generate.due.share`` of the table, reading it in the order of
    keys, by all tasks, is faster.
    """
    schedule, index, rows = fetch_schedule(conf), store.due_index(), store.row_estimate()
    times = schedule.due_times(now)
    every = "every row is looked at"
    if times is None:
        return [], rows, f"{every}: schedule {id_of(schedule)} does not say by time what is due"
    if index.trouble:
        return [], rows, f"{every}, for want of an index of what is due: {index.trouble}"
    spans = [Span(*span) for span in times]
    most = int((rows or 0) * conf.get_float("generate.due.share", 0.25))
    wanted = limit if limit <= most else min(limit, index.count(spans, most + 1))
    if wanted > most:
        return [], rows, f"{every}: more than generate.due.share of them are due"
    return [DueSplit(spans)], wanted, "the index of what is due says which rows are looked at"


class DueReader:
    """Iterates over the rows within ``spans``, the best first; over all of them unless :meth:`ends_by` is called."""

    def __init__(self, store: DataStore[WebPage], spans: Sequence[Span], fields: frozenset[Field[Any]]) -> None:
        self._store, self._spans, self._fields = store, spans, fields
        self._index = store.due_index()
        self._size = _MOST_READ
        self._chosen: Selection | None = None

    def ends_by(self, chosen: Selection, scoring: ScoringFilters, least: float) -> None:
        """End where no row can be among the ``chosen`` any more, or has the sort value ``least``.

        ``scoring`` sorts by score, and whoever takes the rows adds them to ``chosen`` before the next is asked for.
        """
        self._chosen, self._scoring, self._least = chosen, scoring, descending(least)
        if chosen.limit < NO_LIMIT:
            self._size = min(max(chosen.limit + chosen.limit // 8 + 64, _LEAST_READ), _MOST_READ)

    def __iter__(self) -> Iterator[tuple[str, WebPage]]:
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
