"""IndexerJob: pages of a batch into the index, and out of it what is gone, redirected or not to be indexed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from nutch2py.conf import Configuration
from nutch2py.errors import LockedError
from nutch2py.indexer.building import DocumentBuilder, IndexAction, is_gone
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batchlist import BatchLists, BatchState, State
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.clearing import forget
from nutch2py.jobs.index_scores import index_scores
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.locks import holding
from nutch2py.jobs.sending import STATUS, SendingJob, not_sent
from nutch2py.jobs.works import INDEX_ALL, INDEX_BATCH
from nutch2py.mapreduce.driver import JobResult, map_tasks, merge_counters, run_job
from nutch2py.mapreduce.job import Pages, Pair
from nutch2py.mapreduce.parameters import ALL, REINDEX, SCORES, BatchParameters
from nutch2py.mapreduce.splits import Split, range_splits
from nutch2py.table import MarkCondition, Query
from nutch2py.webpage import Mark, WebPage

_STATE = frozenset({WebPage.markers, WebPage.status, WebPage.parse_status, WebPage.batch_id})


@dataclass(frozen=True, kw_only=True)
class IndexParameters(BatchParameters):
    """``listed``: rows come through the batch's list. ``only_gone``: look for pages to delete, and for nothing else."""

    stand_for_all = (ALL, REINDEX)
    listed: bool = False
    only_gone: bool = False

    @property
    def condition(self) -> MarkCondition | None:
        """The mark that scanned rows must have; rows of a list are looked at whatever became of them."""
        every = self.every or self.listed or self.only_gone
        return None if every else MarkCondition(Mark.UPDATEDB, self.batch_id)


class IndexerJob(SendingJob[IndexParameters]):
    """Updated rows to documents, and rows that were indexed once and are no longer there to deletes."""

    def prepare(self) -> None:
        """Load the filters."""
        super().prepare()
        self.fields = _STATE if self.parameters.only_gone else self.builder.fields | _STATE
        self.mark = self.parameters.condition

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Write each document and delete; the index mark is set when the index has committed them."""
        with IndexWriters(self.conf) as writers, self.writing(before=writers.commit) as batch:
            for key, page in pages:
                if self._handle(key, page, writers):
                    batch.put(key, page)
            batch.flush()
            self.commit(writers)  # deletes, and whatever else left no mark
        yield from ()

    def _handle(self, key: str, page: WebPage, writers: IndexWriters) -> bool:
        """Send a row to the index; return whether it was added."""
        batch_id, updated = self.parameters.batch_id, page.markers.get(Mark.UPDATEDB)
        ours = batch_id == REINDEX or (updated is not None and batch_id in (ALL, updated))
        if is_gone(page) and (self.parameters.every or page.batch_id == batch_id):
            # no job marks such a row as updated: what tells that it is of the batch is the id that fetch left
            if page.markers.get(Mark.INDEX) is not None and self.builder.delete:
                self._delete(key, writers)
            return False
        if not ours or self.parameters.only_gone:
            return False
        decided = self.decided(key, page)
        if decided is None:  # neither mark nor document: it is tried again
            return False
        action, document = decided
        if action is IndexAction.DELETE:
            self._delete(key, writers)
        elif document is not None:
            writers.write(document)
            page.markers[Mark.INDEX] = updated or page.batch_id or batch_id  # without it no delete would follow
            self.count(STATUS, "added")
            return True
        elif page.parse_status is not None:  # -reindex meets URLs that were never fetched, too: no page was left out
            self.count(STATUS, "skipped")
        return False

    def _delete(self, key: str, writers: IndexWriters) -> None:
        writers.delete(key)
        self.count(STATUS, "deleted")


def _let_go(conf: Configuration, lists: BatchLists, batch_id: str, before: list[BatchState]) -> None:
    """Forget the batches that are in the index now: those that were updated when the job began, and still are so.

    One at which another job is at work is left as it is.
    """
    for state in before:
        if state.state == State.UPDATED and batch_id in (ALL, REINDEX, state.batch_id):
            with suppress(LockedError), holding(conf, lists, INDEX_BATCH.on(state.batch_id)):
                if lists.state(state.batch_id) == state:
                    forget(conf, lists, state.batch_id, "IndexingJob")


def index(conf: Configuration, batch_id: str) -> JobResult:
    """Index a batch, every updated row (``-all``) or every parsed row (``-reindex``); return the counters.

    ``-scores``: see :func:`nutch2py.jobs.index_scores.index_scores`.
    """
    if batch_id == SCORES:
        return index_scores(conf)
    log = JobLines("IndexingJob", announce=False)
    log.line("starting")
    # pages that are gone carry no update mark: they are looked for before a batch is called unknown
    work = INDEX_ALL if batch_id in (ALL, REINDEX) else INDEX_BATCH
    with begin(conf, work, batch_id=batch_id, mark=Mark.UPDATEDB, lenient=True, named=IndexParameters) as tables:
        store, lists, unknown = tables.store, tables.lists, tables.unknown
        listed = batch_id not in (ALL, REINDEX) and lists.complete(batch_id)
        parameters = IndexParameters(batch_id=batch_id, listed=listed)
        writers = IndexWriters(conf)
        writers.prepare(reindex=batch_id == REINDEX)
        log.raw(writers.describe())
        fields = DocumentBuilder(conf).fields | _STATE
        splits: list[Split]
        if listed:
            splits = [*lists.splits(batch_id, map_tasks(conf))]
        else:
            query = Query(fields, mark=parameters.condition)
            splits = range_splits(store, query, map_tasks(conf))
        state, known = lists.state(batch_id), lists.states()
        expected = state.count if listed and state is not None else store.row_estimate()
        result = run_job(IndexerJob, conf, splits, parameters, title="IndexingJob", expected=expected)
        if not listed and not parameters.every:
            gone = replace(parameters, only_gone=True)  # without a list the update mark finds no page that is gone
            splits = range_splits(store, Query(_STATE), map_tasks(conf))
            result = merge_counters([result, run_job(IndexerJob, conf, splits, gone, title="IndexingJob: gone pages")])
        _let_go(conf, lists, batch_id, known)
        counts = result.counters.get(STATUS, {})
        if unknown is not None and not counts:
            raise unknown
        added, deleted, skipped = (counts.get(name, 0) for name in ("added", "deleted", "skipped"))
        added -= counts.get("refused", 0)
        log.line(f"{added} documents added, {deleted} deleted, {skipped} skipped{not_sent(result)}")
        log.line("done.")
        return result
