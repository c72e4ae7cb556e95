"""CleaningJob: takes out of the index what is not to be found there any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.indexer.building import duplicate_of, is_noindex, should_index
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.works import CLEAN
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.table import Query
from nutch2py.webpage import CrawlStatus, ParseStatusCode, WebPage

_FIELDS: frozenset[Field[Any]] = frozenset(
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
_WITH_TEXT = _FIELDS | {WebPage.text}
_HTML = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, kw_only=True)
class CleanParameters(JobParameters):
    """``commit``: make the deletes seen at once."""

    commit: bool = True


class CleaningJob(TableJob[CleanParameters]):
    """Rows that are gone, redirected, duplicate or noindex to deletes.

    Deletes do not look at the index mark: a row that Nutch 2 or another index was told of is deleted all the same.
    """

    reduce_steps = 0
    fields = _FIELDS

    def prepare(self) -> None:
        """Read the settings."""
        self.noindex = self.conf.get_bool("indexer.delete.robots.noindex", True)
        self.agent = self.conf.get_trimmed("http.agent.name")

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Delete, and commit unless ``-noCommit``."""
        with IndexWriters(self.conf) as writers:
            deleted = 0
            for key, page in pages:
                reason = self._reason(key, page)
                if reason:
                    writers.delete(key)
                    deleted += 1
                    self.count("SolrClean", "DELETED")
                    self.count("CleaningJob", reason)
            if deleted and self.parameters.commit:
                writers.commit()
        yield from ()

    def _reason(self, key: str, page: WebPage) -> str:
        if page.status == CrawlStatus.GONE:
            return "gone"
        status = page.parse_status
        redirected = status is not None and status.minor == ParseStatusCode.REDIRECT
        if redirected or page.status in (CrawlStatus.REDIR_PERM, CrawlStatus.REDIR_TEMP):
            return "redirected"
        if duplicate_of(page) is not None:
            return "duplicate"
        return "noindex" if self.noindex and should_index(page) and self._is_noindex(key, page) else ""

    def _is_noindex(self, key: str, page: WebPage) -> bool:
        if page.content_type in _HTML and not page.title:  # the only case that hangs on the text
            whole = self.store.get(key, _WITH_TEXT)
            return whole is not None and is_noindex(whole, self.agent)
        return is_noindex(page, self.agent)


def clean(conf: Configuration, commit: bool = True) -> JobResult:
    """Delete from every index; return the counters."""
    log = JobLines("CleaningJob", announce=False)
    log.line("starting")
    with begin(conf, CLEAN) as tables:
        store = tables.store
        splits = range_splits(store, Query(_FIELDS), map_tasks(conf))
        result = run_job(
            CleaningJob,
            conf,
            splits,
            CleanParameters(commit=commit),
            title="CleaningJob",
            expected=store.row_estimate(),
        )
        log.line(f"deleted a total of {result.count('SolrClean', 'DELETED')} documents")
        log.line("done")
        return result
