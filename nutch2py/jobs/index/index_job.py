"""IndexerJob: indexes the pages of a batch, and deletes pages that are gone, redirected or excluded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError
from nutch2py.indexer.document_builder import (
    DocumentBuilder,
    IndexAction,
    find_deletion_reason,
    is_broken,
    is_gone,
    should_index,
)
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchRecord, BatchState
from nutch2py.jobs.batches.bulk_delete import bulk_delete_batch
from nutch2py.jobs.index.deletion_limit import DeletionCollector, add_deletion_counters, delete_collected, is_limited
from nutch2py.jobs.index.index_base import STATUS_GROUP, BaseIndexJob, format_unsent
from nutch2py.jobs.index.scores_job import update_index_scores
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.job_lock import hold_job_lock
from nutch2py.jobs.locking.lock_scopes import INDEX_ALL, INDEX_BATCH
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, merge_counters, run_job
from nutch2py.mapreduce.input_splits import Split, range_splits
from nutch2py.mapreduce.job_parameters import ALL, REINDEX, SCORES, BatchParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import MarkCondition, TableQuery

_STATE_FIELDS = frozenset({WebPage.markers, WebPage.status, WebPage.parse_status, WebPage.batch_id})


@dataclass(frozen=True, kw_only=True)
class IndexParameters(BatchParameters):
    """Parameters of the job.

    Attributes:
        uses_batch_list: The input is the list of the batch.
        only_gone_pages: Only delete gone pages.
    """

    all_batches_ids = (ALL, REINDEX)
    uses_batch_list: bool = False
    only_gone_pages: bool = False

    @property
    def mark_condition(self) -> MarkCondition | None:
        """Mark that scanned rows must have; None to read all rows, as with a batch list."""
        every = self.is_all_batches or self.uses_batch_list or self.only_gone_pages
        return None if every else MarkCondition(Mark.UPDATEDB, self.batch_id)


class IndexerJob(BaseIndexJob[IndexParameters]):
    """Maps updated rows to documents, and indexed rows that are gone to deletes."""

    def prepare(self) -> None:
        """Load the filters."""
        super().prepare()
        self.fields = _STATE_FIELDS if self.parameters.only_gone_pages else self.builder.fields | _STATE_FIELDS
        self.mark = self.parameters.mark_condition

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Send documents and deletes; set the index marks after the index committed them."""
        with IndexWriters(self.conf) as writers, self.write_batch(before_write=writers.commit) as batch:
            self._collector = DeletionCollector(self.conf, writers) if is_limited(self.conf) else None
            for key, page in pages:
                if self._index_row(key, page, writers):
                    batch.put(key, page)
            batch.flush()
            self.commit(writers)  # deletes and documents without mark
            if self._collector is not None:
                yield from self._collector.finish()

    def _index_row(self, key: str, page: WebPage, writers: IndexWriters) -> bool:
        """Send a row to the index; return whether it was added."""
        batch_id, updated = self.parameters.batch_id, page.markers.get(Mark.UPDATEDB)
        is_in_batch = batch_id == REINDEX or (updated is not None and batch_id in (ALL, updated))
        if (is_gone(page) or is_broken(page)) and (self.parameters.is_all_batches or page.batch_id == batch_id):
            # such a row has no update mark: the batch id from the fetch identifies its batch
            if page.markers.get(Mark.INDEX) is not None and self.builder.delete_gone:
                self._delete_document(key, page, writers)
            return False
        if not is_in_batch or self.parameters.only_gone_pages:
            return False
        decision = self.decide(key, page)
        if decision is None:  # no mark and no document: it is retried
            return False
        action, document = decision
        if action is IndexAction.DELETE:
            self._delete_document(key, page, writers)
        elif document is not None:
            writers.write(document)
            page.markers[Mark.INDEX] = updated or page.batch_id or batch_id  # required for a later delete
            self.count(STATUS_GROUP, "added")
            return True
        elif page.parse_status is not None:  # -reindex also reads rows that were never fetched: they are not counted
            self.count(STATUS_GROUP, "skipped")
        return False

    def _delete_document(self, key: str, page: WebPage, writers: IndexWriters) -> None:
        if self._collector is not None:
            self._collector.add(key, find_deletion_reason(page) or self._find_exclusion(page))
            return
        writers.delete(key)
        self.count(STATUS_GROUP, "deleted")

    def _find_exclusion(self, page: WebPage) -> str:
        """Return why a page that exists has no document."""
        if should_index(page) and self.builder.delete_noindex and self.builder.is_noindex(page):
            return "noindex"
        return "excluded"


def _delete_indexed_batches(
    conf: Configuration, batch_lists: BatchListStore, batch_id: str, known_records: list[BatchRecord]
) -> None:
    """Delete the lists of indexed batches: those that were in state ``updated`` at the start of the job and still are.

    Batches that another job has locked stay.
    """
    for state in known_records:
        if state.state == BatchState.UPDATED and batch_id in (ALL, REINDEX, state.batch_id):
            with suppress(LockedError), hold_job_lock(conf, batch_lists, INDEX_BATCH.for_batch(state.batch_id)):
                if batch_lists.get_record(state.batch_id) == state:
                    bulk_delete_batch(conf, batch_lists, state.batch_id, "IndexingJob")


def index(conf: Configuration, batch_id: str) -> JobResult:
    """Index a batch, every updated row (``-all``) or every parsed row (``-reindex``); return the counters.

    ``-scores``: see :func:`nutch2py.jobs.index.scores_job.update_index_scores`.

    Raises:
        nutch2py.errors.DeletionsRefusedError: Too many documents would have been deleted; the others are indexed.
    """
    if batch_id == SCORES:
        return update_index_scores(conf)
    log = JobLogger("IndexingJob", announce=False)
    log.log("starting")
    # gone pages have no update mark: search them before the batch is reported as unknown
    work = INDEX_ALL if batch_id in (ALL, REINDEX) else INDEX_BATCH
    with open_job(
        conf, work, batch_id=batch_id, mark=Mark.UPDATEDB, allows_unknown_batch=True, parameters_class=IndexParameters
    ) as tables:
        store, lists, unknown = tables.store, tables.batch_lists, tables.unknown_batch_error
        has_batch_list = batch_id not in (ALL, REINDEX) and lists.is_complete(batch_id)
        parameters = IndexParameters(batch_id=batch_id, uses_batch_list=has_batch_list)
        writers = IndexWriters(conf)
        writers.prepare(reindex=batch_id == REINDEX)
        log.log_raw(writers.describe())
        fields = DocumentBuilder(conf).fields | _STATE_FIELDS
        splits: list[Split]
        if has_batch_list:
            splits = [*lists.make_list_splits(batch_id, map_task_count(conf))]
        else:
            query = TableQuery(fields, mark=parameters.mark_condition)
            splits = range_splits(store, query, map_task_count(conf))
        state, known = lists.get_record(batch_id), lists.list_records()
        expected = state.count if has_batch_list and state is not None else store.row_estimate()
        result = run_job(IndexerJob, conf, splits, parameters, title="IndexingJob", expected_rows=expected)
        if not has_batch_list and not parameters.is_all_batches:
            # without a list the update mark does not find gone pages
            gone = replace(parameters, only_gone_pages=True)
            splits = range_splits(store, TableQuery(_STATE_FIELDS), map_task_count(conf))
            result = merge_counters([result, run_job(IndexerJob, conf, splits, gone, title="IndexingJob: gone pages")])
        deleted_by_reason, refusal = delete_collected(conf, tables, result, "index")
        if deleted_by_reason:
            add_deletion_counters(result, {STATUS_GROUP: {"deleted": deleted_by_reason.total()}})
        if refusal is not None:  # the list of the batch stays: index, run again with -force, finds the same pages
            log.log(f"{result.count(STATUS_GROUP, 'added')} documents added")
            refusal.counters = result.counters
            raise refusal
        _delete_indexed_batches(conf, lists, batch_id, known)
        counts = result.counters.get(STATUS_GROUP, {})
        if unknown is not None and not counts:
            raise unknown
        added, deleted, skipped = (counts.get(name, 0) for name in ("added", "deleted", "skipped"))
        added -= counts.get("rejected", 0)
        log.log(f"{added} documents added, {deleted} deleted, {skipped} skipped{format_unsent(result)}")
        log.log("done.")
        return result
