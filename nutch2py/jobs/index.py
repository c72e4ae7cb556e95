"""IndexerJob: pages of a batch into the index, and out of it what is gone, redirected or not to be indexed."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf import Configuration
from nutch2py.indexer.building import DocumentBuilder, IndexAction
from nutch2py.indexer.index_writers import IndexWriters, chosen
from nutch2py.jobs.batchlist import ALL, REINDEX, BatchLists, State
from nutch2py.jobs.joblog import JobLog
from nutch2py.jobs.journal import recover
from nutch2py.mapreduce.driver import JobResult, map_tasks, merge_counters, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.splits import RangeSplit, Split
from nutch2py.table import MarkCondition, Query, open_store
from nutch2py.webpage import CrawlStatus, Mark, WebPage

_GONE = (CrawlStatus.GONE, CrawlStatus.REDIR_TEMP, CrawlStatus.REDIR_PERM)
_ON_DISK = ("indexer-embedded", "indexer-csv", "indexer-jsonl")
_STATE = frozenset({WebPage.markers, WebPage.status, WebPage.batch_id})


class IndexerJob(TableJob):
    """Updated rows to documents, and rows that were indexed once and are no longer there to deletes."""

    reduce_steps = 0

    def prepare(self) -> None:
        """Load the filters."""
        conf = self.conf
        self.batch_id = conf.get("indexer.batch.id", "")
        self.every = self.batch_id in (ALL, REINDEX)
        self.builder = DocumentBuilder(conf)
        if conf.get_bool("indexer.only.gone"):
            self.fields = _STATE
        else:
            self.fields = self.builder.fields | _STATE
            self.mark = _condition(conf)

    @classmethod
    def local_outputs(cls, conf: Configuration) -> str:
        """Return the writers that run whose index is a folder or a file."""
        return " and ".join(name for name in chosen(conf) if name in _ON_DISK)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Write each document and delete; the index mark is set when the index has committed them."""
        with IndexWriters(self.conf) as writers, self.writing() as batch:
            for key, page in pages:
                if self._handle(key, page, writers):
                    batch.put(key, page)
            writers.commit()
            if writers.refused:
                self.count("IndexerStatus", "refused", writers.refused)
        yield from ()

    def _handle(self, key: str, page: WebPage, writers: IndexWriters) -> bool:
        """Send a row to the index; return whether it was added."""
        updated = page.markers.get(Mark.UPDATEDB)
        ours = self.batch_id == REINDEX or (updated is not None and self.batch_id in (ALL, updated))
        if page.status in _GONE and (self.every or page.batch_id == self.batch_id):
            if page.markers.get(Mark.INDEX) is not None and self.builder.delete:
                self._delete(key, writers)
            return False
        if not ours or WebPage.parse_status not in self.fields:
            return False
        action, document = self.builder.decide(key, page)
        if action is IndexAction.DELETE:
            self._delete(key, writers)
        elif document is not None:
            writers.write(document)
            if updated is not None:
                page.markers[Mark.INDEX] = updated
            self.count("IndexerStatus", "added")
            return True
        else:
            self.count("IndexerStatus", "skipped")
        return False

    def _delete(self, key: str, writers: IndexWriters) -> None:
        writers.delete(key)
        self.count("IndexerStatus", "deleted")


def _condition(conf: Configuration) -> MarkCondition | None:
    """Return the mark that scanned rows must have; rows of a list are looked at whatever became of them."""
    batch_id = conf.get("indexer.batch.id", "")
    listed = batch_id in (ALL, REINDEX) or conf.get_bool("indexer.listed")
    return None if listed else MarkCondition(Mark.UPDATEDB, batch_id)


def index(conf: Configuration, batch_id: str) -> JobResult:
    """Index a batch, every updated row (``-all``) or every parsed row (``-reindex``); return the counters."""
    conf = conf.copy()
    log = JobLog("IndexingJob", announce=False)
    log.line("starting")
    recover(conf)
    store, lists = open_store(conf, WebPage), BatchLists(conf)
    store.create()
    conf.set("indexer.batch.id", batch_id)
    listed = batch_id not in (ALL, REINDEX) and lists.complete(batch_id)
    conf.set("indexer.listed", listed)
    writers = IndexWriters(conf)
    writers.prepare(reindex=batch_id == REINDEX)
    log.raw(writers.describe())
    fields = DocumentBuilder(conf).fields | _STATE
    splits: list[Split]
    if listed:
        splits = [*lists.splits(batch_id, map_tasks(conf))]
    else:
        query = Query(fields, mark=_condition(conf))
        splits = [RangeSplit(key_range) for key_range in store.key_ranges(query, map_tasks(conf))]
    state = lists.state(batch_id)
    expected = state.count if listed and state is not None else store.row_estimate()
    result = run_job(IndexerJob, conf, splits, title="IndexingJob", expected=expected)
    if not listed and batch_id not in (ALL, REINDEX):
        conf.set("indexer.only.gone", True)  # without a list the update mark finds no page that is gone
        splits = [RangeSplit(key_range) for key_range in store.key_ranges(Query(_STATE), map_tasks(conf))]
        result = merge_counters([result, run_job(IndexerJob, conf, splits, title="IndexingJob: gone pages")])
    if state is not None and state.state == State.UPDATED:
        lists.forget(batch_id)
    counts = result.counters.get("IndexerStatus", {})
    added, deleted, skipped = (counts.get(name, 0) for name in ("added", "deleted", "skipped"))
    refused = counts.get("refused", 0)
    log.line(
        f"{added - refused} documents added, {deleted} deleted, {skipped} skipped"
        + (f", {refused} refused by the index" if refused else "")
    )
    log.line("done.")
    return result
