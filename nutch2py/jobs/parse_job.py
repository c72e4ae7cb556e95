"""ParserJob: extract title, text, outlinks and signature from fetched pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, make_batch_splits, mark_condition
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import PARSE, PARSE_SITEMAPS
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.job_parameters import ALL, BatchParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry
from nutch2py.parser.sitemap.sitemap_row_parser import entry_to_row
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import INJECTED_PAGE, INJECTED_SITEMAP, CrawlStatus, Mark, WebPage
from nutch2py.table import WriteBatch
from nutch2py.url.filters.url_filters import SKIPPED_LINKS_GROUP
from nutch2py.url.keys import unreverse_url

_ROWS_PER_READ = 1000  # rows looked up at once


@dataclass(frozen=True, kw_only=True)
class ParseParameters(BatchParameters):
    """``resume``: skip parsed rows, unless ``force``. ``sitemap``: parse sitemaps, and only these."""

    resume: bool = False
    force: bool = False
    sitemap: bool = False


class ParserJob(TableJob[ParseParameters]):
    """Map-only job that parses fetched rows and writes the results."""

    reduce_steps = 0

    def prepare(self) -> None:
        """Load the parsers."""
        self.mark = mark_condition(Mark.FETCH, self.parameters.batch_id)
        self.parsing = ParseWorkerClient(self.conf, sitemaps=self.parameters.sitemap)
        self.fields = self.parsing.fields | {WebPage.markers}

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Parse each row and write its changes. Dropped links are noted before the row changes."""
        lists = BatchListStore(self.conf)
        with closing(self.parsing), lists.store.batch() as side, self.write_batch(before_write=side.flush) as batch:
            for key, page, mutation, outcome, listed in self.parsing.parse_rows(self._select_pages(pages)):
                if self.parameters.sitemap:
                    self._write_sitemap_rows(batch, listed)
                    self.count("ParserStatus", "sitemap_urls", len(listed))
                self.count("ParserStatus", outcome.label)
                for name, amount in outcome.skipped_links:
                    self.count(SKIPPED_LINKS_GROUP, name, amount)
                error = outcome.plugin_error(unreverse_url(key))
                if error is not None:
                    self.plugin_failures.record(error)
                if outcome.is_redirect:
                    self.count("ParserStatus", "redirect")
                if outcome.message:
                    self.channel.log_line(outcome.message)
                if outcome.removed_outlinks:
                    lists.put_dropped_links(side, page.markers.get(Mark.FETCH) or "", key, outcome.removed_outlinks)
                if mutation is not None:
                    batch.mutate(key, mutation)
        yield from ()

    def _select_pages(self, pages: Pages) -> Pages:
        """Yield the rows to parse."""
        parameters = self.parameters
        for key, page in pages:
            try:
                url = unreverse_url(key)
            except ValueError:
                self.count("ParserStatus", "malformed_key")
                continue
            if (page.markers.get(Mark.INJECT) == INJECTED_SITEMAP) != parameters.sitemap:
                continue
            if parameters.resume and page.markers.get(Mark.PARSE) is not None:
                if not parameters.force:
                    self.channel.log_line(f"Skipping {url}; already parsed")
                    self.count("ParserStatus", "skipped")
                    continue
                self.channel.log_line(f"Forced parsing {url}; already parsed")
            else:
                self.channel.log_line(f"Parsing {url}")
            if (
                page.status != CrawlStatus.FETCHED
            ):  # never sent to the worker, so never blamed when the worker is killed
                self.count("ParserStatus", "notfetched")
                continue
            self.plugin_failures.pages += 1
            yield key, page

    def _write_sitemap_rows(self, batch: WriteBatch, entries: dict[str, SitemapEntry]) -> None:
        """Write the entries of a sitemap. A page that is already injected keeps its mark."""
        keys = [*entries]
        for start in range(0, len(keys), _ROWS_PER_READ):
            part = keys[start : start + _ROWS_PER_READ]
            rows = self.store.get_many(part, frozenset({WebPage.markers}))
            for key, known in zip(part, rows, strict=True):
                injected = known is not None and known.markers.get(Mark.INJECT) is not None
                batch.put(key, entry_to_row(entries[key], None if injected else INJECTED_PAGE))


def parse(
    conf: Configuration, batch_id: str, *, resume: bool = False, force: bool = False, sitemap: bool = False
) -> JobResult:
    """Parse a batch, or all (``-all``), and return the counters (group ``ParserStatus``)."""
    log = JobLogger("ParserJob")
    log.log(f"resuming:\t{str(resume).lower()}")
    log.log(f"forced reparse:\t {str(force).lower()}")
    log.log("parsing all" if batch_id == ALL else f"batchId:\t{batch_id}")
    parameters = ParseParameters(batch_id=batch_id, resume=resume, force=force, sitemap=sitemap)
    scope = PARSE_SITEMAPS if sitemap else PARSE
    with open_job(conf, scope, batch_id=batch_id, mark=Mark.FETCH) as tables:
        splits, expected = make_batch_splits(
            conf, tables.store, ParseWorkerClient(conf).fields, Mark.FETCH, batch_id, map_task_count(conf)
        )
        result = run_job(ParserJob, conf, splits, parameters, title="ParserJob", expected_rows=expected)
        log.log(result.summary("ParserStatus") or "nothing to parse")
        log.log("success")
        log.log_finished()
        return result
