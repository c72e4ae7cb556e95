"""ParserJob: what was fetched becomes title, text, outlinks and signature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists, mark_condition, rows_of_batch
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.works import PARSE, PARSE_SITEMAPS
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import ALL, BatchParameters
from nutch2py.parser.bounded_parsing import BoundedParsing
from nutch2py.parser.sitemap import SitemapEntry
from nutch2py.parser.sitemap_parsing import row_of
from nutch2py.table import WriteBatch
from nutch2py.url.keys import unreverse_url
from nutch2py.url.url_filters import LINKS_GROUP
from nutch2py.webpage import INJECTED_PAGE, INJECTED_SITEMAP, CrawlStatus, Mark, WebPage

_LISTED = 1000  # rows looked up at once


@dataclass(frozen=True, kw_only=True)
class ParseParameters(BatchParameters):
    """``resume``: leave out what is parsed, unless ``force``. ``sitemap``: sitemaps, and only these."""

    resume: bool = False
    force: bool = False
    sitemap: bool = False


class ParserJob(TableJob[ParseParameters]):
    """Fetched rows, parsed and written."""

    reduce_steps = 0

    def prepare(self) -> None:
        """Load the parsers."""
        self.mark = mark_condition(Mark.FETCH, self.parameters.batch_id)
        self.parsing = BoundedParsing(self.conf, sitemaps=self.parameters.sitemap)
        self.fields = self.parsing.fields | {WebPage.markers}

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Parse each row and write what changed; links that are gone are noted before the row forgets them."""
        lists = BatchLists(self.conf)
        with closing(self.parsing), lists.store.batch() as side, self.writing(before=side.flush) as batch:
            for key, page, mutation, outcome, listed in self.parsing.process_all(self._chosen(pages)):
                if self.parameters.sitemap:
                    self._put_listed(batch, listed)
                    self.count("ParserStatus", "sitemap_urls", len(listed))
                self.count("ParserStatus", outcome.label)
                for name, amount in outcome.left_out:
                    self.count(LINKS_GROUP, name, amount)
                error = outcome.plugin_error(unreverse_url(key))
                if error is not None:
                    self.failures.note(error)
                if outcome.is_redirect:
                    self.count("ParserStatus", "redirect")
                if outcome.message:
                    self.channel.line(outcome.message)
                if outcome.dropped:
                    lists.put_dropped(side, page.markers.get(Mark.FETCH) or "", key, outcome.dropped)
                if mutation is not None:
                    batch.mutate(key, mutation)
        yield from ()

    def _chosen(self, pages: Pages) -> Pages:
        """Yield the rows that are to be parsed."""
        asked = self.parameters
        for key, page in pages:
            try:
                url = unreverse_url(key)
            except ValueError:
                self.count("ParserStatus", "malformed_key")
                continue
            if (page.markers.get(Mark.INJECT) == INJECTED_SITEMAP) != asked.sitemap:
                continue
            if asked.resume and page.markers.get(Mark.PARSE) is not None:
                if not asked.force:
                    self.channel.line(f"Skipping {url}; already parsed")
                    self.count("ParserStatus", "skipped")
                    continue
                self.channel.line(f"Forced parsing {url}; already parsed")
            else:
                self.channel.line(f"Parsing {url}")
            if page.status != CrawlStatus.FETCHED:  # none of the child's pages, so it is not blamed when that is killed
                self.count("ParserStatus", "notfetched")
                continue
            self.failures.pages += 1
            yield key, page

    def _put_listed(self, batch: WriteBatch, listed: dict[str, SitemapEntry]) -> None:
        """Write what a sitemap says of pages; one that was injected already keeps its mark."""
        keys = [*listed]
        for start in range(0, len(keys), _LISTED):
            part = keys[start : start + _LISTED]
            rows = self.store.get_many(part, frozenset({WebPage.markers}))
            for key, known in zip(part, rows, strict=True):
                injected = known is not None and known.markers.get(Mark.INJECT) is not None
                batch.put(key, row_of(listed[key], None if injected else INJECTED_PAGE))


def parse(
    conf: Configuration, batch_id: str, *, resume: bool = False, force: bool = False, sitemap: bool = False
) -> JobResult:
    """Parse a batch, or all (``-all``); return the counters (group ``ParserStatus``)."""
    log = JobLines("ParserJob")
    log.line(f"resuming:\t{str(resume).lower()}")
    log.line(f"forced reparse:\t {str(force).lower()}")
    log.line("parsing all" if batch_id == ALL else f"batchId:\t{batch_id}")
    parameters = ParseParameters(batch_id=batch_id, resume=resume, force=force, sitemap=sitemap)
    work = PARSE_SITEMAPS if sitemap else PARSE
    with begin(conf, work, batch_id=batch_id, mark=Mark.FETCH) as tables:
        splits, expected = rows_of_batch(
            conf, tables.store, BoundedParsing(conf).fields, Mark.FETCH, batch_id, map_tasks(conf)
        )
        result = run_job(ParserJob, conf, splits, parameters, title="ParserJob", expected=expected)
        log.line(result.summary("ParserStatus") or "nothing to parse")
        log.line("success")
        log.finished()
        return result
