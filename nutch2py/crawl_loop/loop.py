"""The rounds of a crawl: what was begun is finished, then batch after batch as far as the plan allows, then ranks.

Which index a crawl sends to, and whether it can be told scores alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.crawl_loop.crawl_plan import ROUND_URLS, CrawlPlan, CrawlScope
from nutch2py.crawl_loop.crawl_session import CrawlSession, open_crawl_session
from nutch2py.crawl_loop.link_changes import LinkChanges
from nutch2py.crawl_loop.seed_arguments import SeedArgument, check_seeds, resolve_seeds
from nutch2py.errors import NothingFetchedError, NutchError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.jobs.fetch.address_recheck import reschedule_allowed_pages
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
    """Return a name of the index, which is another one when its place or its settings are others."""
    return hashlib.sha256(IndexWriters(conf).describe().encode()).hexdigest()


def count_index_documents(conf: Configuration) -> int | None:
    """Return how many documents are in the index; None when it is not one that is asked and takes scores alone."""
    try:
        check_score_updates(conf)
        return open_search_backend(conf).count()
    except NutchError:
        return None


T = TypeVar("T", bound=JobResult)
_REDIRECT_CODES = (ProtocolStatusCode.MOVED, ProtocolStatusCode.TEMP_MOVED)
_MIN_INDEXED_SHARE = 0.9  # of the documents that an index had: one with less was made anew, or is another
_MAX_SEED_REDIRECTS = 5  # of a seed, from site to site
_UNFINISHED_STATES = (BatchState.GENERATED, INTERRUPTED, FETCHED, PARSED, BatchState.UPDATED)


class StopReason(StrEnum):
    """Why a crawl ended."""

    FINISHED = "done"
    PAGE_LIMIT = "pages"
    TIME_LIMIT = "time"


class CrawlLoop:
    """A crawl by plan. ``totals`` says what came of it so far, whenever it ends; ``seeds`` what was to be crawled."""

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
        """Whether pages that an earlier run had fetched were parsed, indexed or ranked."""
        self._requested = self._seed_redirects = 0

    def run(self) -> None:
        """Crawl until nothing is due, or a limit of the plan is met.

        Raise NothingFetchedError when nothing can be fetched of any seed, before anything is made; LockedError beside
        another crawl.
        """
        plan, conf = self._plan, self.conf
        plan.configure(conf)
        self.seeds = check_seeds(resolve_seeds(plan.seed_arguments, conf), conf)
        troubles = [seed for seed in self.seeds if seed.problem]
        if len(troubles) == len(self.seeds):
            raise NothingFetchedError("nothing can be fetched: " + "; ".join(seed.problem for seed in troubles))
        for seed in troubles:
            self._view.on_warning(seed.problem)
        self._check_filters()
        self._pending_seeds = [*self.seeds]
        with self._crawl, raise_on_sigterm(), use_reporter(self._reporter), open_crawl_session(conf) as self._session:
            self._inject_seeds()
            self._follow_redirected_seeds()  # those that an earlier run has met: what is begun may lead there
            self._finish_open_batches()
            if count := reschedule_allowed_pages(conf):
                self._view.print_line(f"{count:,} pages that were refused for their addresses are allowed now, and due")
            self._follow_redirected_seeds()
            while self._run_round():
                self._follow_redirected_seeds()
            self._rank_and_index()

    def _check_filters(self) -> None:
        """Raise NothingFetchedError when the URL filters refuse every seed, while nothing is made."""
        self._plan.restrict_to_paths(self.conf, [seed.url for seed in self.seeds])
        filters = URLFilters(self.conf)
        if all(filters.filter(seed.url) is None for seed in self.seeds):
            raise NothingFetchedError(f"nothing can be fetched: {self._filtered_message(len(self.seeds))}")

    def _filtered_message(self, count: int) -> str:
        return f"{count:,} of {len(self.seeds):,} seeds are refused by the URL filters (see filterchecker)"

    def _inject_seeds(self) -> None:
        made = self._inject(self.seeds)
        refused = made.count("injector", "urls_filtered")
        if refused:
            if not made.count("injector", "urls_injected"):
                raise NothingFetchedError(f"nothing can be fetched: {self._filtered_message(refused)}")
            self._view.on_warning(self._filtered_message(refused))

    def _inject(self, seeds: list[SeedArgument]) -> JobResult:
        self._plan.restrict_to_paths(self.conf, [seed.url for seed in self.seeds])
        return self._crawl.inject([seed.line for seed in seeds])

    def _finish_open_batches(self) -> None:
        """Take up the batches that a crawl which was stopped has left; what is fetched of them is of this run."""
        for batch in self._crawl.batches():
            if batch.state not in _UNFINISHED_STATES or (batch.state == BatchState.UPDATED and not self._index):
                continue
            self._view.print_line(f"going on with batch {batch.batch_id} ({batch.state})")
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
        """Return how many URLs a batch may have: so many of the plan's pages are left, or a round's."""
        return ROUND_URLS if self._plan.max_pages is None else min(self._plan.max_pages - self._requested, ROUND_URLS)

    def _run_new_batch(self, batch_id: str = "") -> bool:
        """Make a batch, one that was interrupted anew, and work on it; return whether any URL is due."""
        made = self._run_job("generate", lambda: self._crawl.generate(top_n=self._urls_left(), batch_id=batch_id))
        self.totals.generate_counters = made.group("generator")
        if not made.urls:
            return False
        self._requested += made.urls
        self._run_batch(made.batch_id, made.urls)
        return True

    def _run_batch(self, batch_id: str, urls: int) -> None:
        """Fetch a batch, and all that follows."""
        crawl = self._crawl
        self._session.mark_unranked()
        seconds, pages = self.totals.elapsed_seconds, self.totals.fetched_count
        if self._plan.max_minutes is not None:
            self.conf.set("fetcher.timelimit.mins", max(1, math.ceil(self._seconds_left() / 60)))
        self._run_job("fetch", lambda: crawl.fetch(batch_id, resume=True), urls)
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
        """Make seeds of the other sites that seeds lead to: ``example.org`` is often at ``www.example.org``."""
        if self._plan.scope == CrawlScope.ANYWHERE or not self._pending_seeds:
            return
        normalizers = URLNormalizers(self.conf, "fetcher")
        place = domain_of if self._plan.scope == CrawlScope.DOMAIN else host_of
        known = {seed.url for seed in self.seeds}
        found: dict[str, SeedArgument] = {}
        waiting, self._pending_seeds = self._pending_seeds, []
        for seed in waiting:
            page = self._crawl.page(seed.url, {WebPage.protocol_status, WebPage.fetch_time})
            status = None if page is None else page.protocol_status
            if status is None and (page is not None or seed.url in found):
                self._pending_seeds.append(seed)  # its turn is yet to come
            if status is None or status.code not in _REDIRECT_CODES or not status.args:
                continue
            target = normalizers.normalize(status.args[0])
            if target is None or target in known or self._seed_redirects >= _MAX_SEED_REDIRECTS * len(known):
                continue
            if place(target) == place(seed.url) and self._plan.scope != CrawlScope.PATH:
                continue  # a link like any other
            self._seed_redirects += 1
            known.add(target)
            found[target] = SeedArgument(target, target)
            waiting.append(found[target])  # which may have been fetched by an earlier run, and lead further
            self._view.print_line(f"{seed.url} leads to {target}: that is crawled, too")
        if found:
            self.seeds += found.values()
            self._inject([*found.values()])

    def _rank_and_index(self) -> None:
        """Rank all pages, leave out duplicates, and tell the index, unless nothing was fetched since that was done.

        Ranks are made anew when links have changed enough. What was done before a kill the job log tells.
        """
        if not self._session.has_unranked_pages():
            return
        self._session.check_lock()
        before = LinkChanges.from_job_log(self.conf)
        enough = before.exceeds_share(self.conf.get_float("crawl.pagerank.share", 0.05), before.changed_since_ranks)
        self.totals.rank_message = f"{before.describe()}: {'ranking anew' if enough else 'ranks stay as they are'}"
        self._view.print_line(self.totals.rank_message)
        if enough:
            self._view.start_job("pagerank")
            self._crawl.pagerank()
        self._run_job("dedup", self._crawl.dedup)
        self._run_job("updatehostdb", lambda: self._crawl.updatehostdb(links=True))  # what the report tells of hosts
        if self._index:
            self._update_index()
            self._run_job("clean", self._crawl.clean)
        self._session.clear_unranked()
        self.has_resumed |= not self.totals.rounds

    def _update_index(self) -> None:
        """Send all documents, where their anchors have changed enough or the index lacks any; else scores alone."""
        news = LinkChanges.from_job_log(self.conf)
        name, there = index_fingerprint(self.conf), count_index_documents(self.conf)
        known = self._session.get_indexed_count(name)
        lacks = news.freed_duplicates > 0 or known is None or there is None or there < known * _MIN_INDEXED_SHARE
        boosted = not news.ranks_are_indexed and self.conf.get_bool(
            "pagerank.update.score", False
        )  # boost is no score of a rank
        if (
            lacks
            or boosted
            or news.exceeds_share(self.conf.get_float("crawl.reindex.share", 0.2), news.changed_since_index)
        ):
            result = self._run_job("index", lambda: self._crawl.index(REINDEX))
            self.totals.indexed_documents = result.count("IndexerStatus", "added")
        else:
            if not news.ranks_are_indexed:
                result = self._run_job("scores", lambda: self._crawl.index(SCORES))
                self.totals.rank_message += f"; {format_score_summary(result)}"
            self.totals.indexed_documents = there or 0
        self._session.set_indexed_count(name, self.totals.indexed_documents)

    def _run_job(self, job: str, work: Callable[[], T], urls: int = 0) -> T:
        self._session.check_lock()
        self._view.start_job(job, urls)
        result = work()
        self.totals.add(result)
        return result

    def _seconds_left(self) -> float:
        return math.inf if self._plan.max_minutes is None else self._plan.max_minutes * 60 - self.totals.elapsed_seconds
