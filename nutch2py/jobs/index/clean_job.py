"""CleaningJob: deletes documents from the index that must no longer be found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_builder import find_deletion_reason, is_noindex, should_index
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.index.deletion_limit import DeletionCollector, add_deletion_counters, delete_collected, is_limited
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import CLEAN
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.parser.robots_directives import agent_names, reads_robots_header
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery

_FIELDS: frozenset[RecordField] = frozenset(
    {
        WebPage.status,
        WebPage.parse_status,
        WebPage.signature,
        WebPage.metadata,
        WebPage.headers,
        WebPage.content_type,
        WebPage.title,
    }
)
_FIELDS_WITH_TEXT = _FIELDS | {WebPage.text}
_HTML_TYPES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, kw_only=True)
class CleanParameters(JobParameters):
    """``commit``: commit, so that the deletes are visible immediately."""

    commit: bool = True


class CleaningJob(TableJob[CleanParameters]):
    """Maps rows that are gone, redirected, duplicate or noindex to deletes.

    Deletes ignore the index mark: Nutch 2 or another index may have received a row without it.
    """

    reduce_steps = 0
    fields = _FIELDS

    def prepare(self) -> None:
        """Read the settings."""
        self.deletes_noindex = self.conf.get_bool("indexer.delete.robots.noindex", True)
        self.deletes_redirects = self.conf.get_bool("clean.redirects", True)
        self.reads_robots_header = reads_robots_header(self.conf)
        self.agents = agent_names(self.conf)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Delete the documents of a split; commit unless ``-noCommit`` is set."""
        with IndexWriters(self.conf) as writers:
            deleted = 0
            collector = DeletionCollector(self.conf, writers) if is_limited(self.conf) else None
            for key, page in pages:
                reason = self._find_delete_reason(key, page)
                if reason and collector is not None:
                    collector.add(key, reason)
                elif reason:
                    writers.delete(key)
                    deleted += 1
                    self.count("SolrClean", "DELETED")
                    self.count("CleaningJob", reason)
            if deleted and self.parameters.commit:
                writers.commit()
            if collector is not None:
                yield from collector.finish()

    def _find_delete_reason(self, key: str, page: WebPage) -> str:
        if reason := find_deletion_reason(page):
            return "" if reason == "redirected" and not self.deletes_redirects else reason
        return "noindex" if self.deletes_noindex and should_index(page) and self._is_noindex(key, page) else ""

    def _is_noindex(self, key: str, page: WebPage) -> bool:
        if page.content_type in _HTML_TYPES and not page.title:  # the only case that needs the text
            whole = self.store.get(key, _FIELDS_WITH_TEXT)
            return whole is not None and is_noindex(whole, self.agents, reads_header=self.reads_robots_header)
        return is_noindex(page, self.agents, reads_header=self.reads_robots_header)


def clean(conf: Configuration, commit: bool = True) -> JobResult:
    """Delete from every index; return the counters.

    Raises:
        nutch2py.errors.DeletionsRefusedError: Too many documents would have been deleted.
    """
    log = JobLogger("CleaningJob", announce=False)
    log.log("starting")
    with open_job(conf, CLEAN) as tables:
        store = tables.store
        splits = range_splits(store, TableQuery(_FIELDS), map_task_count(conf))
        result = run_job(
            CleaningJob,
            conf,
            splits,
            CleanParameters(commit=commit),
            title="CleaningJob",
            expected_rows=store.row_estimate(),
        )
        deleted, refusal = delete_collected(conf, tables, result, "clean", commit=commit)
        if deleted:
            add_deletion_counters(result, {"SolrClean": {"DELETED": deleted.total()}, "CleaningJob": dict(deleted)})
        if refusal is not None:
            refusal.counters = result.counters
            raise refusal
        log.log(f"deleted a total of {result.count('SolrClean', 'DELETED')} documents")
        log.log("done")
        return result
