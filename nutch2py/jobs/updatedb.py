"""DbUpdaterJob: what a batch found goes into the table.

Map: the links of each page of the batch, with the score they carry, to the row that they lead to. Reduce, one group a
row: pages of the batch get their next fetch time and lose their marks; every row linked to gets its inlinks, distance
and score; rows of URLs that are new are made. Changes go through a journal (:mod:`nutch2py.jobs.journal`), so that a
score is added once however often the job is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson

from nutch2py.conf import Configuration
from nutch2py.contracts import ScoredLink
from nutch2py.jobs.batchlist import UNLISTED, BatchLists, State, mark_condition, rows_of_batch
from nutch2py.jobs.beginning import begin, refusals
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.journal import JournalWriter, apply, discard
from nutch2py.jobs.turned_links import DROPPED, PAGE, Group, collect, new_link, turn
from nutch2py.jobs.works import UPDATEDB
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import ALL, TIME, BatchParameters
from nutch2py.mapreduce.protocol import SortedBytesProtocol, lines_of
from nutch2py.mapreduce.splits import SideSplit, Split
from nutch2py.plugin_guard import PluginError, blame
from nutch2py.plugins import id_of
from nutch2py.record import Field
from nutch2py.schedule.fetch_schedule import check_schedule, fetch_schedule
from nutch2py.schedule.transition import FIELDS, TransitionLimits, apply_fetch, initialize_page
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.table.clock import now_ms
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.webpage import Mark, MetadataKey, WebPage

FAR = 2147483647  # distance of a page that has none
_ROWS = 500  # rows looked up at once


@dataclass(frozen=True, kw_only=True)
class UpdateParameters(BatchParameters):
    """``now``: when the job began, ms since 1970; the time of rows that are new."""

    now: int
    ranges: ClassVar = {"now": TIME}


@dataclass
class _Giving:
    """How the scoring filters let go of what the map side of a row has given.

    ``links``: they are shown the page's links; ``again``: the last failure is no one's yet, for they were not;
    ``failed``: the ids of those that failed even then.
    """

    links: bool = False
    again: bool = False
    failed: set[str] = field(default_factory=set)


def _links_of(page: WebPage) -> tuple[list[ScoredLink], int]:
    """Return the links that a page gives to, and how many of them are no sitemaps."""
    distance = int(page.markers.get(Mark.DISTANCE) or FAR)
    outlinks = page.outlinks.decoded()
    targets = outlinks + page.sitemaps.decoded()
    return [new_link((url, anchor or "", 0.0, distance)) for url, anchor in targets], len(outlinks)


class DbUpdaterJob(TableJob[UpdateParameters]):
    """Links of a batch, turned round, into the rows they lead to."""

    INTERNAL_PROTOCOL = SortedBytesProtocol
    SORT_VALUES = True
    plugin_points = ("scoringfilter",)

    def prepare(self) -> None:
        """Load what decides about rows."""
        conf = self.conf
        self.mark = mark_condition(Mark.GENERATE, self.parameters.batch_id)
        self.additions = conf.get_bool("db.update.additions.allowed", True)
        self.max_inlinks = conf.get_int("db.update.max.inlinks", 10000)
        self.scoring, self.schedule = ScoringFilters(conf), fetch_schedule(conf)
        self.fields = giving_fields(conf)
        linked: set[Field[Any]] = {WebPage.markers, WebPage.inlinks, WebPage.metadata, WebPage.score, WebPage.status}
        self.linked_fields = self.scoring.fields | linked
        self.page_fields: frozenset[Field[Any]] = self.linked_fields | FIELDS | self.schedule.fields
        self.limits = TransitionLimits.of(conf)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield each page of the batch, and each of its links under the row key of its target."""
        distribute = self.scoring.distribute
        malformed = 0
        one_by_one = self.file.runner == "spark"  # where each pair has to be one of its own
        for key, page in pages:
            try:
                source = unreverse_url(key)
            except ValueError:
                self.count("updatedb", "malformed_keys")
                continue
            if Mark.FETCH not in page.markers:  # what it has to give it gives when it is fetched
                self.count("updatedb", "pages_not_fetched")
                yield key, PAGE
                continue
            links, total = _links_of(page)
            self.failures.pages += 1
            try:
                given = distribute(source, page, links, total)
            except PluginError as error:  # it keeps its marks and its cash, and is tried again
                self.failures.note(error)
                self.count("updatedb", "pages_failed")
                continue
            yield key, PAGE
            turned = turn(source, given)
            malformed += len(given) - len(turned.targets)
            if one_by_one:
                for target, value in zip(turned.targets, turned.values, strict=True):
                    yield target, f"{turned.before}{value}{turned.after}"
            elif turned.targets:
                yield "", lines_of(*turned)
            self.count("updatedb", "links", len(links))
        self.count("updatedb", "malformed_links", malformed)

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Yield the links that pages of the batch no longer have, under the row key of their target."""
        for key, urls in BatchLists(self.conf).dropped(split.range):
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
                yield target, f"{DROPPED}{source}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[bytes]]]) -> Iterator[Pair]:
        """Compute the changes of each row into the journal."""
        pending: dict[str, Group] = {}
        with JournalWriter(self.batches, self.parameters.batch_id, self.check_held) as journal:
            for key, values in groups:
                pending[key] = collect(values, self.max_inlinks)
                if len(pending) >= _ROWS:
                    self._update(pending, journal)
            self._update(pending, journal)
        yield from ()

    def _update(self, pending: dict[str, Group], journal: JournalWriter) -> None:
        """Change the rows of some groups, in key order."""
        of_batch = [key for key, group in pending.items() if group.page]
        linked = [key for key, group in pending.items() if not group.page]
        rows = dict(zip(of_batch, self.store.get_many(of_batch, self.page_fields), strict=True))
        rows |= zip(linked, self.store.get_many(linked, self.linked_fields), strict=True)
        done = 0
        for key, group in pending.items():
            try:
                url = unreverse_url(key)
            except ValueError:  # a link that slipped through the filters
                self.count("updatedb", "malformed_keys")
                continue
            row = rows[key]
            if row is not None and not self.readable(key, row):
                continue
            page = self._changed(key, url, row, group)
            if page is not None:
                journal.add(key, page.mutation())
            done += 1
        self.channel.advance(done)
        pending.clear()

    def _changed(self, key: str, url: str, row: WebPage | None, group: Group) -> WebPage | None:
        """Return the row with its changes, None to leave it out.

        The map side has given the page's cash away, and what links brought comes once: so when a plug-in fails, the row
        is computed anew without it, and what the others do holds. A page of the batch then keeps its marks, by which
        the next updatedb takes it up again; a new row that has no fetch time is left out.
        """
        self.failures.pages += 1
        failed: dict[str, PluginError] = {}
        giving, changed = _Giving(), (0, 0)
        while True:
            try:
                page = self._page(url, row, group, failed, giving)
                if page is not None:
                    changed = self._take_links(url, page, group, failed)
                break
            except PluginError as error:
                if not giving.again:
                    failed[error.plugin] = error
                giving.again = False
                if row is not None:  # what was read is half changed
                    fields = self.page_fields | (self.fields if giving.links else frozenset())
                    row = self.store.get(key, fields if group.page else self.linked_fields)
        for each in failed.values():
            self.failures.note(each)
        for name, count in zip(("links_new", "links_gone"), changed, strict=True):
            if count:
                self.count("updatedb", name, count)
        if page is not None and group.page and not failed:
            self._release(page)
        if group.page:
            self.count("updatedb", "pages_failed" if failed else "pages")
        elif page is not None:
            self.count("updatedb", "rows_linked" if row is not None else "rows_new")
        elif group.links and not self.additions:
            self.count("updatedb", "rows_not_allowed")
        return page

    def _page(
        self, url: str, page: WebPage | None, group: Group, failed: Mapping[str, object], giving: _Giving
    ) -> WebPage | None:
        """Return the row to change: after its fetch if it is of the batch, made if it is new, None to leave it out.

        The plug-ins whose ids are in ``failed`` are not asked; to let go what the map side gave, all are but those that
        failed at that.
        """
        scoring, schedule = self.scoring.without(failed) if failed else self.scoring, self.schedule
        scheduled = not failed or id_of(schedule) not in failed
        if page is not None:
            if group.page:
                if scheduled:
                    try:
                        apply_fetch(url, page, schedule, self.limits)
                    except Exception as error:  # noqa: BLE001 - named, and the page's
                        blame(schedule, url, error)
                self._let_go(url, page, giving)
            return page
        if not group.links or not self.additions or not scheduled:
            return None
        page = WebPage()
        try:
            initialize_page(url, page, schedule, self.parameters.now)
        except Exception as error:  # noqa: BLE001
            blame(schedule, url, error)
        scoring.initial_score(url, page)
        return page

    def _let_go(self, url: str, page: WebPage, giving: _Giving) -> None:
        """Let every scoring filter give away on this row what it gave on the map side, on a copy of the row.

        Also one that fails at something else, or it would give the same again. To nobody, as what links bring is on its
        way; a filter that minds having nobody to give to has the page's links before it, as on the map side.
        """
        if Mark.FETCH not in page.markers:
            return
        scoring = self.scoring.without(giving.failed) if giving.failed else self.scoring
        links, total = _links_of(page) if giving.links else ([], 0)
        try:
            scoring.distribute(url, page, links, total)
        except PluginError as error:
            if giving.links:
                giving.failed.add(error.plugin)
            else:
                giving.links = giving.again = True
            raise

    def _take_links(self, url: str, page: WebPage, group: Group, failed: Mapping[str, object]) -> tuple[int, int]:
        """Set inlinks, distance, score; earlier inlinks stay, up to the limit, until their page drops them.

        Return how many inlinks are new, and how many were dropped.
        """
        inlinks = page.inlinks
        had = len(inlinks)
        for source in group.dropped:
            inlinks.pop(source)
        before = len(inlinks) if group.dropped else had
        new = 0
        if group.links:
            sources, anchors, _, distances = zip(*group.links, strict=True)
            fresh = dict(zip(sources, anchors, strict=True))
            new = inlinks.put(fresh)
            if (over := before + new - self.max_inlinks) > 0:
                for source in [source for source in inlinks if source not in fresh][:over]:
                    inlinks.pop(source)
            nearest = min(distances)
            if nearest < FAR and nearest + 1 < int(page.markers.get(Mark.DISTANCE) or FAR):
                page.markers[Mark.DISTANCE] = str(nearest + 1)
        if group.page or group.links:
            scoring = self.scoring.without(failed) if failed else self.scoring
            scoring.update_score(url, page, group.links)
        return new, had - before

    def _release(self, page: WebPage) -> None:
        """Take the marks of the batch off, the update mark standing for the parse mark."""
        page.metadata.pop(MetadataKey.REDIRECT_DISCOVERED)
        markers = page.markers
        markers.pop(Mark.GENERATE)
        markers.pop(Mark.FETCH)
        parsed = markers.pop(Mark.PARSE)
        if parsed is not None:
            markers[Mark.UPDATEDB] = parsed


def giving_fields(conf: Configuration) -> frozenset[Any]:
    """Return what the map side reads of a page; never content, text or inlinks."""
    return frozenset(
        {WebPage.markers, WebPage.metadata, WebPage.outlinks, WebPage.sitemaps} | ScoringFilters(conf).fields
    )


def updatedb(conf: Configuration, batch_id: str) -> JobResult:
    """Update the table from a batch, or from all (``-all``); return the counters (group ``updatedb``)."""
    with refusals(conf, UPDATEDB, batch_id):
        check_schedule(conf)
    log = JobLines("DbUpdaterJob")
    log.line("updating all" if batch_id == ALL else f"batchId: {batch_id}")
    with begin(conf, UPDATEDB, batch_id=batch_id, mark=Mark.GENERATE) as tables:
        store, lists = tables.store, tables.lists
        discard(lists, batch_id)
        before = lists.state(batch_id)
        parameters = UpdateParameters(batch_id=batch_id, now=now_ms())
        splits: list[Split]
        splits, expected = rows_of_batch(conf, store, giving_fields(conf), Mark.GENERATE, batch_id, map_tasks(conf))
        splits.append(SideSplit(lists.dropped_range(batch_id)))
        result = run_job(DbUpdaterJob, conf, splits, parameters, title="DbUpdaterJob", expected=expected)
        tables.check()
        count = before.count if before is not None else UNLISTED
        lists.set_state(batch_id, State.APPLYING, count, lists.store.clock.next())  # later than all that was fetched
        apply(conf, batch_id, tables.check)
        counts = result.counters.get("updatedb", {})
        failed = counts.get("pages_failed", 0)
        if before is None and not counts.get("pages"):
            lists.forget(batch_id)
        log.line(
            f"{counts.get('pages', 0)} pages of the batch, {counts.get('links', 0)} links, "
            f"{counts.get('rows_new', 0)} new rows, {counts.get('rows_linked', 0)} known rows linked to"
            + (f", {failed} pages failed in a plug-in and keep their marks" if failed else "")
        )
        log.finished()
        return result
