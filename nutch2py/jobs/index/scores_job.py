"""ScoresJob: updates PageRank scores of indexed documents, without sending their texts where possible.

Click factors (``index-clicks``) are a part of documents: a document whose factor has changed is sent with its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.document_builder import IndexAction, is_gone
from nutch2py.indexer.filters.index_clicks import ClickIndexingFilter
from nutch2py.indexer.filters.index_pagerank import PageRankIndexingFilter
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.index.index_base import STATUS_GROUP, BaseIndexJob, format_unsent
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import INDEX_SCORES
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import SCORES, JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages
from nutch2py.plugins.loading import enabled_plugins
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import MarkCondition, TableQuery

_DOCUMENTS_PER_REQUEST = 1000  # per request to the index
_INDEXED_MARK = MarkCondition(Mark.INDEX)
_FIELDS: frozenset[RecordField] = frozenset({WebPage.page_rank, WebPage.status, WebPage.parse_status, WebPage.markers})
SCORE_COUNTERS = {
    "alone": "scores_changed",
    "whole": "scores_changed_whole",
    "same": "scores_kept",
    "absent": "scores_not_in_index",
}
"""Count of :meth:`IndexWriters.update_scores` -> counter in the group ``IndexerStatus``."""


class ScoresJob(BaseIndexJob[JobParameters]):
    """Sends the ranks of indexed rows to documents with a different rank."""

    fields = _FIELDS
    mark = _INDEXED_MARK

    def prepare(self) -> None:
        """Load the rank filter, and the document builder for an index that needs complete documents."""
        super().prepare()
        self.rank_filter = PageRankIndexingFilter(self.conf)
        self.share = self.conf.get_float("index.scores.share", 0.02)
        has_clicks = "index-clicks" in enabled_plugins(self.conf, "indexingfilter")
        self.click_factors = ClickIndexingFilter(self.conf).factors if has_clicks else None

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Send the scores of a split; commit at the end."""
        with IndexWriters(self.conf) as writers:
            scores: dict[str, float] = {}
            for key, page in pages:
                value = None if is_gone(page) else self.rank_filter.scaled_rank(page)
                if value is not None:
                    scores[key] = float(value)
                if len(scores) == _DOCUMENTS_PER_REQUEST:
                    self._send_scores(scores, writers)
                    scores = {}
            self._send_scores(scores, writers)
            self.commit(writers)
        yield from ()

    def _send_scores(self, scores: dict[str, float], writers: IndexWriters) -> None:
        if not scores:
            return
        self.check_lock()
        counts = writers.update_scores(scores, self.share, self._build_documents, self.click_factors)
        for name, count in counts.items():
            if count:
                self.count(STATUS_GROUP, SCORE_COUNTERS[name], count)

    def _build_documents(self, keys: Sequence[str]) -> list[NutchDocument]:
        """Build the documents of rows as the index job; rows without document are omitted."""
        found: list[NutchDocument] = []
        for key, page in zip(keys, self.store.get_many(keys, self.builder.fields | _FIELDS), strict=True):
            decision = None if page is None else self.decide(key, page)
            if decision is None:
                continue
            action, document = decision
            if action is IndexAction.ADD and document is not None:
                found.append(document)
        return found


def check_score_updates(conf: Configuration) -> None:
    """Raise an error if documents have no scores, or if an index cannot update them."""
    if "index-pagerank" not in enabled_plugins(conf, "indexingfilter"):
        raise ConfigurationError("documents have no scores: add index-pagerank to plugin.includes, and index -reindex")
    if unsupported := IndexWriters(conf).writers_without_scores:
        raise IndexingError(
            f"{' and '.join(unsupported)} cannot change the scores of documents: run index -reindex instead"
        )


def update_index_scores(conf: Configuration) -> JobResult:
    """Send changed scores; return the counters (group ``IndexerStatus``, names of :data:`SCORE_COUNTERS`)."""
    log = JobLogger("ScoresJob", announce=False)
    log.log("starting")
    with open_job(conf, INDEX_SCORES, batch_id=SCORES) as tables:
        check_score_updates(conf)
        writers = IndexWriters(conf)
        writers.prepare()
        log.log_raw(writers.describe())
        splits = range_splits(tables.store, TableQuery(_FIELDS, mark=_INDEXED_MARK), map_task_count(conf))
        expected = tables.store.row_estimate()
        result = run_job(ScoresJob, conf, splits, JobParameters(), title="ScoresJob", expected_rows=expected)
        log.log(format_score_summary(result))
        log.log("done.")
        return result


def format_score_summary(result: JobResult) -> str:
    """Return a summary line of the score updates."""
    count = {name: result.count(STATUS_GROUP, counter) for name, counter in SCORE_COUNTERS.items()}
    return (
        f"{count['alone'] + count['whole']} scores changed"
        + (f", {count['whole']} of them with their documents" if count["whole"] else "")
        + f"; {count['same']} unchanged, {count['absent']} documents not in the index"
        + format_unsent(result)
    )
