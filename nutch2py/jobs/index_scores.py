"""ScoresJob: what PageRank says now into the documents that are in the index, without their texts where it can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.document import NutchDocument
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.building import IndexAction, is_gone
from nutch2py.indexer.filters.index_pagerank import PageRankIndexingFilter
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.sending import STATUS, SendingJob, not_sent
from nutch2py.jobs.works import INDEX_SCORES
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair
from nutch2py.mapreduce.parameters import SCORES, JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.plugins import enabled
from nutch2py.record import Field
from nutch2py.table import MarkCondition, Query
from nutch2py.webpage import Mark, WebPage

_ROWS = 1000  # asked of the index at once
_INDEXED = MarkCondition(Mark.INDEX)
_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.page_rank, WebPage.status, WebPage.parse_status, WebPage.markers})
COUNTERS = {
    "alone": "scores_changed",
    "whole": "scores_changed_whole",
    "same": "scores_kept",
    "absent": "scores_not_in_index",
}
"""What :meth:`IndexWriters.set_scores` counts -> the counter in the group ``IndexerStatus``."""


class ScoresJob(SendingJob[JobParameters]):
    """Ranks of rows that the index was sent, to the documents there that have another one."""

    fields = _FIELDS
    mark = _INDEXED

    def prepare(self) -> None:
        """Load what makes the field, and documents for an index that takes them whole only."""
        super().prepare()
        self.rank = PageRankIndexingFilter(self.conf)
        self.share = self.conf.get_float("index.scores.share", 0.02)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Send scores; all is committed at the end."""
        with IndexWriters(self.conf) as writers:
            scores: dict[str, float] = {}
            for key, page in pages:
                value = None if is_gone(page) else self.rank.value(page)
                if value is not None:
                    scores[key] = float(value)
                if len(scores) == _ROWS:
                    self._send(scores, writers)
                    scores = {}
            self._send(scores, writers)
            self.commit(writers)
        yield from ()

    def _send(self, scores: dict[str, float], writers: IndexWriters) -> None:
        if not scores:
            return
        self.check_held()
        for name, count in writers.set_scores(scores, self.share, self._documents).items():
            if count:
                self.count(STATUS, COUNTERS[name], count)

    def _documents(self, keys: Sequence[str]) -> list[NutchDocument]:
        """Return the documents of rows as index makes them, of those that have one."""
        found: list[NutchDocument] = []
        for key, page in zip(keys, self.store.get_many(keys, self.builder.fields | _FIELDS), strict=True):
            decided = None if page is None else self.decided(key, page)
            if decided is None:
                continue
            action, document = decided
            if action is IndexAction.ADD and document is not None:
                found.append(document)
        return found


def check_scores(conf: Configuration) -> None:
    """Raise an error when scores cannot be sent without documents: these have none, or an index cannot be asked."""
    if "index-pagerank" not in enabled(conf, "indexingfilter"):
        raise ConfigurationError("documents have no scores: add index-pagerank to plugin.includes, and index -reindex")
    if cannot := IndexWriters(conf).without_scores:
        raise IndexingError(f"{' and '.join(cannot)} cannot change the scores of documents: run index -reindex instead")


def index_scores(conf: Configuration) -> JobResult:
    """Send scores that have changed; return the counters (group ``IndexerStatus``, names of :data:`COUNTERS`)."""
    log = JobLines("ScoresJob", announce=False)
    log.line("starting")
    with begin(conf, INDEX_SCORES, batch_id=SCORES) as tables:
        check_scores(conf)
        writers = IndexWriters(conf)
        writers.prepare()
        log.raw(writers.describe())
        splits = range_splits(tables.store, Query(_FIELDS, mark=_INDEXED), map_tasks(conf))
        expected = tables.store.row_estimate()
        result = run_job(ScoresJob, conf, splits, JobParameters(), title="ScoresJob", expected=expected)
        log.line(told(result))
        log.line("done.")
        return result


def told(result: JobResult) -> str:
    """Return in one line what became of scores."""
    count = {name: result.count(STATUS, counter) for name, counter in COUNTERS.items()}
    return (
        f"{count['alone'] + count['whole']} scores changed"
        + (f", {count['whole']} of them with their documents" if count["whole"] else "")
        + f"; {count['same']} as they were, {count['absent']} of documents that are not in the index"
        + not_sent(result)
    )
