"""The loop of a crawl: finish open batches, run rounds as far as the plan allows, then rank and update the index."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.crawl_loop.crawl_plan import ROUND_URLS, CrawlPlan, CrawlScope
from nutch2py.crawl_loop.crawl_session import CrawlSession, open_crawl_session
from nutch2py.crawl_loop.rank_staleness import LinkChanges
from nutch2py.crawl_loop.seed_arguments import SeedArgument, check_seeds, own_site_delay_hint, resolve_seeds
from nutch2py.errors import DeletionsRefusedError, NothingFetchedError, NutchError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.jobs.fetch.address_recheck import reschedule_allowed_pages
from nutch2py.jobs.fetch.local_failures_report import check_local_failures
from nutch2py.jobs.index.scores_job import check_score_updates, format_score_summary
from nutch2py.jobs.monitoring.batch_report import FETCHED, INTERRUPTED, PARSED
from nutch2py.mapreduce.driver import JobResult, raise_on_sigterm
from nutch2py.mapreduce.job_parameters import REINDEX, SCORES
from nutch2py.records.webpage import ProtocolStatusCode, WebPage
from nutch2py.search.search_backends import open_search_backend
from nutch2py.support.reporting import Reporter, use_reporter
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_parts import domain_of, host_of

if TYPE_CHECKING:
    from nutch2py.crawl_loop.progress_view import ProgressView


def index_fingerprint(conf: Configuration) -> str:
    """Return a fingerprint of the index, which changes with its location or its settings."""
    return hashlib.sha256(IndexWriters(conf).describe().encode()).hexdigest()


def count_index_documents(conf: Configuration) -> int | None:
    """Return the number of documents in the index, None if it cannot be queried or does not accept score updates."""
    try:
        check_score_updates(conf)
        return open_search_backend(conf).count()
    except NutchError:
        return None


T = TypeVar("T", bound=JobResult)
_REDIRECT_CODES = (ProtocolStatusCode.MOVED, ProtocolStatusCode.TEMP_MOVED)
_MIN_INDEXED_SHARE = 0.9  # an index with a smaller share of the known documents was rebuilt, or is another one
_MAX_SEED_REDIRECTS = 5  # per seed, from site to site
_DEFERRED_COUNTER = "robots_defer_visits_dropped"
_MAX_SHOWN_FAULTS = 20  # faults of seed lines
_UNFINISHED_STATES = (BatchState.GENERATED, INTERRUPTED, FETCHED, PARSED, BatchState.UPDATED)


class StopReason(StrEnum):
    """Why a crawl stopped."""

    FINISHED = "done"
    PAGE_LIMIT = "pages"
    TIME_LIMIT = "time"
    LOCAL_FAILURES = "local"
    HELD_HOSTS = "held"


class CrawlLoop:
    """A crawl by plan. ``totals`` has its counters at any time, ``seeds`` its seeds."""

    def __init__(self, conf: Configuration, plan: CrawlPlan, view: ProgressView, *, index: bool = True) -> None:
        self._plan, self._view, self._index = plan, view, index
        self._crawl = Crawl(conf, on_line=view.on_line, on_warning=view.on_warning, on_progress=view.on_progress)
        self._reporter = Reporter(view.on_line, view.on_warning, view.on_progress)
        self.conf = self._crawl.conf
        self.totals = view.totals
        self.seeds: list[SeedArgument] = []
        self.stop_reason = StopReason.FINISHED
        self._session: CrawlSession
        self._pending_seeds: list[SeedArgument] = []
        self.has_resumed = False
        """Whether this run parsed, indexed or ranked pages that an earlier run had fetched."""
        self._requested = self._seed_redirects = 0
        self._refusal: DeletionsRefusedError | None = None

    def run(self) -> None:
        """Crawl until nothing is due, or a limit of the plan is reached.

        Raises:
            NothingFetchedError: No seed can be fetched; raised before anything is created.
            LockedError: Another ``crawl`` is running.
        """
        plan, conf = self._plan, self.conf
        plan.configure(conf)
        self.seeds = check_seeds(resolve_seeds(plan.seed_arguments, conf), conf)
        failing = [seed for seed in self.seeds if seed.problem]
        if len(failing) == len(self.seeds):
            raise NothingFetchedError("nothing can be fetched: " + "; ".join(seed.problem for seed in failing))
        for seed in failing:
            self._view.on_warning(seed.problem)
        self._check_filters()
        if hint := own_site_delay_hint(self.seeds, conf):
            self._view.print_line(hint)
        self._pending_seeds = [*self.seeds]
        with self._crawl, raise_on_sigterm(), use_reporter(self._reporter), open_crawl_session(conf) as self._session:
            self._inject_seeds()
            self._follow_redirected_seeds()  # of an earlier run: its open batches may be on the targets
            self._finish_open_batches()
            if count := reschedule_allowed_pages(conf):
                self._view.print_line(f"{count:,} pages with addresses that were denied are allowed now, and due")
            self._follow_redirected_seeds()
            while self._run_round():
                self._follow_redirected_seeds()
            self._rank_and_index()
        if self._refusal is not None:
            raise self._refusal

    def check_local_failures(self) -> None:
        """Raise LocalFailuresError when too many pages of the crawl failed for a reason of this machine."""
        check_local_failures(self.conf, self.totals)

    def _check_filters(self) -> None:
        """Raise NothingFetchedError when the URL filters reject every seed, before anything is created."""
        self._plan.restrict_to_paths(self.conf, [seed.url for seed in self.seeds])
        filters = URLFilters(self.conf)
        if all(filters.filter_link(seed.url) is None for seed in self.seeds):
            raise NothingFetchedError(f"nothing can be fetched: {self._filtered_message(len(self.seeds))}")

    def _filtered_message(self, count: int) -> str:
        return f"{count:,} of {len(self.seeds):,} seeds are rejected by the URL filters (see filterchecker)"

    def _inject_seeds(self) -> None:
        faults = [f"{seed.url}: {problem}" for seed in self.seeds for problem in seed.faults]
        for fault in faults[:_MAX_SHOWN_FAULTS]:
            self._view.on_warning(fault)
        if len(faults) > _MAX_SHOWN_FAULTS:
            self._view.on_warning(
                f"{len(faults):,} faults in seed lines, of which the first {_MAX_SHOWN_FAULTS} are shown"
            )
        result = self._inject(self.seeds)
        rejected = result.count("injector", "urls_filtered")
        if rejected:
            if not result.count("injector", "urls_injected"):
                raise NothingFetchedError(f"nothing can be fetched: {self._filtered_message(rejected)}")
            self._view.on_warning(self._filtered_message(rejected))

    def _inject(self, seeds: list[SeedArgument]) -> JobResult:
        self._plan.restrict_to_paths(self.conf, [seed.url for seed in self.seeds])
        return self._crawl.inject([seed.line for seed in seeds])

    def _finish_open_batches(self) -> None:
        """Resume the open batches of a stopped crawl. Pages fetched from them count for this run."""
        for batch in self._crawl.batches():
            if batch.state not in _UNFINISHED_STATES or (batch.state == BatchState.UPDATED and not self._index):
                continue
            self._view.print_line(f"resuming batch {batch.batch_id} ({batch.state})")
            self.has_resumed |= batch.state in (FETCHED, PARSED, BatchState.UPDATED)
            if batch.state == INTERRUPTED:
                if self._urls_left() > 0:
                    self._run_new_batch(batch.batch_id)
            elif batch.state == BatchState.UPDATED:
                self._session.mark_unranked()
                self._run_job("index", partial(self._crawl.index, batch.batch_id), max(batch.count, 0))
            else:
                if batch.state != PARSED:
                    fetched = batch.done or 0 if batch.state == FETCHED else 0
                    self._requested += max(batch.count - fetched, 0)
                self._run_batch(batch.batch_id, max(batch.count, 0))

    def _run_round(self) -> bool:
        """Run a round; return whether another may follow."""
        if self._urls_left() <= 0:
            self.stop_reason = StopReason.PAGE_LIMIT
            return False
        if self._seconds_left() <= 0:
            self.stop_reason = StopReason.TIME_LIMIT
            return False
        return self._run_new_batch()

    def _urls_left(self) -> int:
        """Return the maximum size of the next batch: the rest of the plan's pages, or the size of a round."""
        return ROUND_URLS if self._plan.max_pages is None else min(self._plan.max_pages - self._requested, ROUND_URLS)

    def _run_new_batch(self, batch_id: str = "") -> bool:
        """Make a batch, or remake an interrupted one, and process it; return whether any URL is due."""
        result = self._run_job("generate", lambda: self._crawl.generate(top_n=self._urls_left(), batch_id=batch_id))
        self.totals.generate_counters = result.group("generator")
        if not result.urls:
            return False
        self._requested += result.urls
        before = self.totals.attempted_count - self.totals.local_failure_count
        attempted_before = self.totals.attempted_count
        deferred_before = self.totals.get_fetch_counter(_DEFERRED_COUNTER)
        self._run_batch(result.batch_id, result.urls)
        if self.totals.local_failure_count and self.totals.attempted_count - self.totals.local_failure_count == before:
            self.stop_reason = StopReason.LOCAL_FAILURES  # another round would fail in the same way
            return False
        is_deferred = self.totals.get_fetch_counter(_DEFERRED_COUNTER) > deferred_before
        if is_deferred and self.totals.attempted_count == attempted_before:
            self.stop_reason = StopReason.HELD_HOSTS  # another round would wait as long for the same hosts
            return False
        return True

    def _run_batch(self, batch_id: str, urls: int) -> None:
        """Fetch a batch, and run the jobs that follow."""
        crawl = self._crawl
        self._session.mark_unranked()
        seconds, pages = self.totals.elapsed_seconds, self.totals.fetched_count
        if self._plan.max_minutes is not None:
            self.conf.set("fetcher.timelimit.mins", max(1, math.ceil(self._seconds_left() / 60)))
        self._run_job(
            "fetch",
            lambda: crawl.fetch(batch_id, resume=True, max_local_failure_share=1),  # all rounds are checked at the end
            urls,
        )
        self._run_job("parse", lambda: crawl.parse(batch_id, resume=True), urls)
        self._run_job("updatedb", lambda: crawl.updatedb(batch_id), urls)
        if self._index:
            self._run_job("index", lambda: crawl.index(batch_id), urls)
        self.totals.rounds += 1
        self._view.print_line(
            f"round {self.totals.rounds}: {self.totals.fetched_count - pages:,} of {urls:,} URLs fetched in "
            f"{self.totals.elapsed_seconds - seconds:.0f} s; so far {self.totals.format_summary()}"
        )

    def _follow_redirected_seeds(self) -> None:
        """Add the other sites that seeds redirect to as seeds: ``example.org`` often is at ``www.example.org``."""
        if self._plan.scope == CrawlScope.ANYWHERE or not self._pending_seeds:
            return
        normalizers = URLNormalizers(self.conf, "fetcher")
        site_of = domain_of if self._plan.scope == CrawlScope.DOMAIN else host_of
        known = {seed.url for seed in self.seeds}
        targets: dict[str, SeedArgument] = {}
        waiting, self._pending_seeds = self._pending_seeds, []
        for seed in waiting:
            page = self._crawl.page(seed.url, {WebPage.protocol_status, WebPage.fetch_time})
            status = None if page is None else page.protocol_status
            if status is None and (page is not None or seed.url in targets):
                self._pending_seeds.append(seed)  # not fetched yet
            if status is None or status.code not in _REDIRECT_CODES or not status.args:
                continue
            target = normalizers.normalize(status.args[0])
            if target is None or target in known or self._seed_redirects >= _MAX_SEED_REDIRECTS * len(known):
                continue
            if site_of(target) == site_of(seed.url) and self._plan.scope != CrawlScope.PATH:
                continue  # within the scope, like any other link
            self._seed_redirects += 1
            known.add(target)
            targets[target] = SeedArgument(target, target)
            waiting.append(targets[target])  # an earlier run may have fetched it, with another redirect
            self._view.print_line(f"{seed.url} redirects to {target}, which is crawled, too")
        if targets:
            self.seeds += targets.values()
            self._inject([*targets.values()])

    def _rank_and_index(self) -> None:
        """Rank all pages, mark duplicates, and update the index, unless nothing was fetched since the last time.

        Ranks are recomputed when links have changed enough. The job log shows what was done before a kill.
        """
        if not self._session.has_unranked_pages():
            return
        self._session.check_lock()
        changes = LinkChanges.from_job_log(self.conf)
        recompute = changes.exceeds_share(
            self.conf.get_float("crawl.pagerank.share", 0.05), changes.changed_since_ranks
        )
        self.totals.rank_message = f"{changes.describe()}: {'recomputing ranks' if recompute else 'ranks are kept'}"
        if recompute:
            self._view.start_job("pagerank")
            self._crawl.pagerank()
        self._run_job("dedup", self._crawl.dedup)
        self._run_job("updatehostdb", lambda: self._crawl.updatehostdb(links=True))  # for the hosts in the report
        if self._index:
            self._update_index()
            self._run_job("clean", self._crawl.clean)
        self._session.clear_unranked()
        self.has_resumed |= not self.totals.rounds

    def _update_index(self) -> None:
        """Index all documents if their anchors have changed enough or the index lacks some; else update the scores."""
        changes = LinkChanges.from_job_log(self.conf)
        name, current = index_fingerprint(self.conf), count_index_documents(self.conf)
        known = self._session.get_indexed_count(name)
        is_incomplete = (
            changes.freed_duplicates > 0 or known is None or current is None or current < known * _MIN_INDEXED_SHARE
        )
        # score updates carry the rank, but not the boost
        needs_boost = not changes.ranks_are_indexed and self.conf.get_bool("pagerank.update.score", False)
        if (
            is_incomplete
            or needs_boost
            or changes.exceeds_share(self.conf.get_float("crawl.reindex.share", 0.2), changes.changed_since_index)
        ):
            result = self._run_job("index", lambda: self._crawl.index(REINDEX))
            self.totals.indexed_documents = result.count("IndexerStatus", "added")
        else:
            if not changes.ranks_are_indexed:
                result = self._run_job("scores", lambda: self._crawl.index(SCORES))
                self.totals.rank_message += f"; {format_score_summary(result)}"
            self.totals.indexed_documents = current or 0
        self._session.set_indexed_count(name, self.totals.indexed_documents)

    def _run_job(self, job: str, work: Callable[[], T], urls: int = 0) -> T:
        self._session.check_lock()
        self._view.start_job(job, urls)
        try:
            result = work()
        except DeletionsRefusedError as error:  # the documents stay; other work is done, and the crawl ends with it
            self._refusal = self._refusal or error
            result = cast("T", JobResult(error.counters))
        self.totals.add(result)
        return result

    def _seconds_left(self) -> float:
        return math.inf if self._plan.max_minutes is None else self._plan.max_minutes * 60 - self.totals.elapsed_seconds
