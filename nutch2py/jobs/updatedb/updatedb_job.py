"""DbUpdaterJob: update the table with the results of a batch.

Map: send the links of each page of the batch, with their scores, to the rows that they lead to. Reduce, one group per
row: pages of the batch get their next fetch time and lose their marks; every linked row gets inlinks, distance and
score; rows of new URLs are created. Changes go through a journal (:mod:`nutch2py.jobs.batches.update_journal`), so that
a score is added only once, however often the job is killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink
from nutch2py.jobs.batches.batch_lists import (
    UNKNOWN_COUNT,
    BatchListStore,
    BatchState,
    make_batch_splits,
    mark_condition,
)
from nutch2py.jobs.batches.update_journal import JournalWriter, apply_journal, delete_journal
from nutch2py.jobs.job_context import log_rejected_job, open_job
from nutch2py.jobs.locking.lock_scopes import UPDATEDB
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.jobs.updatedb.inverted_links import (
    DROPPED_KIND,
    PAGE_KIND,
    SITEMAP_KIND,
    RowLinks,
    collect_row_links,
    invert_links,
    make_scored_link,
)
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import DerivedTableSplit, Split
from nutch2py.mapreduce.job_parameters import ALL, TIME_RANGE, BatchParameters
from nutch2py.mapreduce.mrjob_protocols import SortedBytesProtocol, encode_sorted_lines
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.plugins.loading import plugin_id_of
from nutch2py.plugins.plugin_failures import PluginCall, PluginError
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import INJECTED_SITEMAP, CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.schedule.fetch_schedule import check_fetch_schedule, create_fetch_schedule
from nutch2py.schedule.fetch_transition import TRANSITION_FIELDS, TransitionLimits, apply_fetch, initialize_page
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.support.clock import now_ms
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.url_parts import DomainRules

UNKNOWN_DISTANCE = 2147483647  # distance of a page that has none
_ROWS_PER_READ = 500  # rows looked up at once


@dataclass(frozen=True, kw_only=True)
class UpdateDbParameters(BatchParameters):
    """``now``: when the job started, ms since 1970; the fetch time of new rows."""

    now: int
    ranges: ClassVar = {"now": TIME_RANGE}


@dataclass
class _DistributionState:
    """State of the repeated distribution of a page's cash on the reduce side.

    ``shows_links``: the scoring filters get the page's links. ``is_retry``: the last failure does not count, because
    they did not get them. ``failed_plugins``: the ids of those that failed even with the links.
    """

    shows_links: bool = False
    is_retry: bool = False
    failed_plugins: set[str] = field(default_factory=set)


def _get_links(page: WebPage) -> tuple[list[ScoredLink], int]:
    """Return the links that a page distributes to, and how many of them are not sitemaps."""
    distance = int(page.markers.get(Mark.DISTANCE) or UNKNOWN_DISTANCE)
    outlinks = page.outlinks.decoded_items()
    targets = outlinks + page.sitemaps.decoded_items()
    return [make_scored_link((url, anchor or "", 0.0, distance)) for url, anchor in targets], len(outlinks)


def _iter_own_sitemaps(source: str, page: WebPage, domain_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the row keys of the sitemaps in the domain of a page that its robots.txt or sitemap index names.

    Those of other domains are links and nothing else: a site must not decide that pages of others are no pages.
    """
    for url, _ in page.sitemaps.decoded_items():
        with contextlib.suppress(ValueError):
            if domain_of(url) == domain_of(source):
                yield reverse_url(url)


def _may_become_sitemap(page: WebPage) -> bool:
    """Return whether a row may be marked as a sitemap: not injected, in no batch, and not fetched as a page.

    Nutch marks none, so that ``generate -sitemap`` does not find what ``fetch -stmDetect`` and sitemap indexes name.
    """
    markers = page.markers
    return (
        page.status in (None, 0, CrawlStatus.UNFETCHED) and Mark.INJECT not in markers and Mark.GENERATE not in markers
    )


class DbUpdaterJob(TableJob[UpdateDbParameters]):
    """Inverts the links of a batch into the rows that they lead to."""

    INTERNAL_PROTOCOL = SortedBytesProtocol
    SORT_VALUES = True
    plugin_points = ("scoringfilter",)

    def prepare(self) -> None:
        """Load the scoring filters and the schedule."""
        conf = self.conf
        self.domain_of = DomainRules.from_conf(conf).domain_of
        self.mark = mark_condition(Mark.GENERATE, self.parameters.batch_id)
        self.allows_additions = conf.get_bool("db.update.additions.allowed", True)
        self.max_inlinks = conf.get_int("db.update.max.inlinks", 10000)
        self.scoring, self.schedule = ScoringFilters(conf), create_fetch_schedule(conf)
        self.fields = distribution_fields(conf)
        linked: set[RecordField] = {WebPage.markers, WebPage.inlinks, WebPage.metadata, WebPage.score, WebPage.status}
        self.linked_fields = self.scoring.fields | linked
        self.page_fields: frozenset[RecordField] = self.linked_fields | TRANSITION_FIELDS | self.schedule.fields
        self.transition_limits = TransitionLimits.from_conf(conf)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield each page of the batch, and each of its links under the row key of its target."""
        distribute = self.scoring.distribute
        malformed = 0
        emits_pairs = self.job_file.runner == "spark"  # which cannot take several pairs as one
        for key, page in pages:
            try:
                source = unreverse_url(key)
            except ValueError:
                self.count("updatedb", "malformed_keys")
                continue
            if Mark.FETCH not in page.markers:  # it distributes its cash once it is fetched
                self.count("updatedb", "pages_not_fetched")
                yield key, PAGE_KIND
                continue
            links, total = _get_links(page)
            self.plugin_failures.pages += 1
            try:
                given = distribute(source, page, links, total)
            except PluginError as error:  # the page keeps its marks and its cash, and the next updatedb retries
                self.plugin_failures.record(error)
                self.count("updatedb", "pages_failed")
                continue
            yield key, PAGE_KIND
            inverted = invert_links(source, given)
            malformed += len(given) - len(inverted.targets)
            if emits_pairs:
                for target, value in zip(inverted.targets, inverted.values, strict=True):
                    yield target, f"{inverted.prefix}{value}{inverted.suffix}"
            elif inverted.targets:
                yield "", encode_sorted_lines(*inverted)
            for target in _iter_own_sitemaps(source, page, self.domain_of):
                yield target, SITEMAP_KIND
            self.count("updatedb", "links", len(links))
        self.count("updatedb", "malformed_links", malformed)

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Yield the links that pages of the batch no longer have, under the row key of their target."""
        for key, urls in BatchListStore(self.conf).iter_dropped_links(split.key_range):
            try:
                source = orjson.dumps(unreverse_url(key)).decode()
            except ValueError:
                self.count("updatedb", "malformed_keys")
                continue
            for url in urls:
                try:
                    target = reverse_url(url)
                except ValueError:
                    self.count("updatedb", "malformed_links")
                    continue
                yield target, f"{DROPPED_KIND}{source}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[bytes]]]) -> Iterator[KeyValuePair]:
        """Compute the changes of each row and write them to the journal."""
        pending: dict[str, RowLinks] = {}
        with JournalWriter(self.derived_store, self.parameters.batch_id, self.check_lock) as journal:
            for key, values in groups:
                pending[key] = collect_row_links(values, self.max_inlinks)
                if len(pending) >= _ROWS_PER_READ:
                    self._update_rows(pending, journal)
            self._update_rows(pending, journal)
        yield from ()

    def _update_rows(self, pending: dict[str, RowLinks], journal: JournalWriter) -> None:
        """Compute the changes of some rows, in key order."""
        batch_keys = [key for key, group in pending.items() if group.is_batch_page]
        linked_keys = [key for key, group in pending.items() if not group.is_batch_page]
        rows = dict(zip(batch_keys, self.store.get_many(batch_keys, self.page_fields), strict=True))
        rows |= zip(linked_keys, self.store.get_many(linked_keys, self.linked_fields), strict=True)
        done = 0
        for key, group in pending.items():
            try:
                url = unreverse_url(key)
            except ValueError:  # the link passed the filters nevertheless
                self.count("updatedb", "malformed_keys")
                continue
            row = rows[key]
            if row is not None and not self.is_readable(key, row):
                continue
            page = self._compute_row(key, url, row, group)
            if page is not None:
                journal.add(key, page.mutation())
            done += 1
        self.channel.advance(done)
        pending.clear()

    def _compute_row(self, key: str, url: str, row: WebPage | None, row_links: RowLinks) -> WebPage | None:
        """Return the row with its changes, None to skip it.

        The map side has already distributed the page's cash, and the links arrive only once. So when a plug-in fails,
        the row is recomputed without it, and the results of the others are kept. A page of the batch then keeps its
        marks, so that the next updatedb retries it. A new row without a fetch time is skipped.
        """
        self.plugin_failures.pages += 1
        failed: dict[str, PluginError] = {}
        distribution, changed = _DistributionState(), (0, 0)
        while True:
            try:
                page = self._prepare_page(url, row, row_links, failed, distribution)
                if page is not None:
                    changed = self._apply_links(url, page, row_links, failed)
                break
            except PluginError as error:
                if not distribution.is_retry:
                    failed[error.plugin_id] = error
                distribution.is_retry = False
                if row is not None:  # its fields are partly changed
                    fields = self.page_fields | (self.fields if distribution.shows_links else frozenset())
                    row = self.store.get(key, fields if row_links.is_batch_page else self.linked_fields)
        for each in failed.values():
            self.plugin_failures.record(each)
        for name, count in zip(("links_new", "links_gone"), changed, strict=True):
            if count:
                self.count("updatedb", name, count)
        if page is not None and row_links.is_batch_page and not failed:
            self._remove_batch_marks(page)
        if page is not None and row_links.is_sitemap and _may_become_sitemap(page):
            page.markers[Mark.INJECT] = INJECTED_SITEMAP
            self.count("updatedb", "sitemaps_found")
        if row_links.is_batch_page:
            self.count("updatedb", "pages_failed" if failed else "pages")
        elif page is not None:
            self.count("updatedb", "rows_linked" if row is not None else "rows_new")
        elif row_links.links and not self.allows_additions:
            self.count("updatedb", "rows_not_allowed")
        return page

    def _prepare_page(
        self,
        url: str,
        page: WebPage | None,
        row_links: RowLinks,
        failed_plugins: Mapping[str, object],
        distribution: _DistributionState,
    ) -> WebPage | None:
        """Return the row to change: after its fetch if it is in the batch, initialized if it is new, None to skip it.

        Plug-ins with ids in ``failed_plugins`` are not called, except to repeat the distribution: there all are called
        but those that failed at it.
        """
        scoring, schedule = self.scoring.without(failed_plugins) if failed_plugins else self.scoring, self.schedule
        is_scheduled = not failed_plugins or plugin_id_of(schedule) not in failed_plugins
        if page is not None:
            if row_links.is_batch_page:
                if is_scheduled:
                    with PluginCall(schedule, url):
                        apply_fetch(url, page, schedule, self.transition_limits)
                self._repeat_distribution(url, page, distribution)
            return page
        if not row_links.links or not self.allows_additions or not is_scheduled:
            return None
        page = WebPage()
        with PluginCall(schedule, url):
            initialize_page(url, page, schedule, self.parameters.now)
        scoring.initial_score(url, page)
        return page

    def _repeat_distribution(self, url: str, page: WebPage, distribution: _DistributionState) -> None:
        """Repeat the distribution of the map side, which worked on a copy of the row, so that the row loses its cash.

        This includes filters that fail elsewhere, or they would distribute the same cash again. There are no targets,
        because the links are already in the shuffle. A filter that fails without targets gets the page's links, as on
        the map side.
        """
        if Mark.FETCH not in page.markers:
            return
        scoring = self.scoring.without(distribution.failed_plugins) if distribution.failed_plugins else self.scoring
        links, total = _get_links(page) if distribution.shows_links else ([], 0)
        try:
            scoring.distribute(url, page, links, total)
        except PluginError as error:
            if distribution.shows_links:
                distribution.failed_plugins.add(error.plugin_id)
            else:
                distribution.shows_links = distribution.is_retry = True
            raise

    def _apply_links(
        self, url: str, page: WebPage, row_links: RowLinks, failed_plugins: Mapping[str, object]
    ) -> tuple[int, int]:
        """Set inlinks, distance and score. Earlier inlinks stay, up to the limit, until their page drops them.

        Returns:
            The number of new inlinks, and of dropped ones.
        """
        inlinks = page.inlinks
        count_before = len(inlinks)
        for source in row_links.dropped_sources:
            inlinks.pop(source)
        remaining = len(inlinks) if row_links.dropped_sources else count_before
        new = 0
        if row_links.links:
            sources, anchors, _, distances = zip(*row_links.links, strict=True)
            fresh = dict(zip(sources, anchors, strict=True))
            new = inlinks.put_all(fresh)
            if (over := remaining + new - self.max_inlinks) > 0:
                for source in [source for source in inlinks if source not in fresh][:over]:
                    inlinks.pop(source)
            nearest = min(distances)
            if nearest < UNKNOWN_DISTANCE and nearest + 1 < int(page.markers.get(Mark.DISTANCE) or UNKNOWN_DISTANCE):
                page.markers[Mark.DISTANCE] = str(nearest + 1)
        if row_links.is_batch_page or row_links.links:
            scoring = self.scoring.without(failed_plugins) if failed_plugins else self.scoring
            scoring.update_score(url, page, row_links.links)
        return new, count_before - remaining

    def _remove_batch_marks(self, page: WebPage) -> None:
        """Remove the marks of the batch; the update mark replaces the parse mark."""
        page.metadata.pop(MetadataKey.REDIRECT_DISCOVERED)
        markers = page.markers
        markers.pop(Mark.GENERATE)
        markers.pop(Mark.FETCH)
        parsed = markers.pop(Mark.PARSE)
        if parsed is not None:
            markers[Mark.UPDATEDB] = parsed


def distribution_fields(conf: Configuration) -> frozenset[RecordField]:
    """Return the fields that the map side reads; never content, text or inlinks."""
    fields: set[RecordField] = {WebPage.markers, WebPage.metadata, WebPage.outlinks, WebPage.sitemaps}
    return frozenset(fields | ScoringFilters(conf).fields)


def updatedb(conf: Configuration, batch_id: str) -> JobResult:
    """Update the table from a batch, or from all (``-all``), and return the counters (group ``updatedb``)."""
    with log_rejected_job(conf, UPDATEDB, batch_id):
        check_fetch_schedule(conf)
    log = JobLogger("DbUpdaterJob")
    log.log("updating all" if batch_id == ALL else f"batchId: {batch_id}")
    with open_job(conf, UPDATEDB, batch_id=batch_id, mark=Mark.GENERATE) as tables:
        store, lists = tables.store, tables.batch_lists
        delete_journal(lists, batch_id)
        before = lists.get_record(batch_id)
        parameters = UpdateDbParameters(batch_id=batch_id, now=now_ms())
        splits: list[Split]
        splits, expected = make_batch_splits(
            conf, store, distribution_fields(conf), Mark.GENERATE, batch_id, map_task_count(conf)
        )
        splits.append(DerivedTableSplit(lists.dropped_links_range(batch_id)))
        result = run_job(DbUpdaterJob, conf, splits, parameters, title="DbUpdaterJob", expected_rows=expected)
        tables.check_lock()
        count = before.count if before is not None else UNKNOWN_COUNT
        # later than everything that was fetched
        lists.set_state(batch_id, BatchState.APPLYING, count, lists.store.clock.next())
        apply_journal(conf, batch_id, tables.check_lock)
        counts = result.counters.get("updatedb", {})
        failed = counts.get("pages_failed", 0)
        if before is None and not counts.get("pages"):
            lists.delete_batch(batch_id)
        log.log(
            f"{counts.get('pages', 0)} pages of the batch, {counts.get('links', 0)} links, "
            f"{counts.get('rows_new', 0)} new rows, {counts.get('rows_linked', 0)} known rows linked to"
            + (f", {failed} pages failed in a plug-in and keep their marks" if failed else "")
        )
        log.log_finished()
        return result
