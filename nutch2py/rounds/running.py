"""The rounds of a crawl: what was begun is finished, then batch after batch as far as the plan allows, then ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nutch2py.conf import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import NothingFetchedError
from nutch2py.jobs.allowed import allow_again
from nutch2py.jobs.batch_report import FETCHED, INTERRUPTED, PARSED
from nutch2py.jobs.batchlist import State
from nutch2py.jobs.index_scores import told
from nutch2py.jobs.link_news import LinkNews
from nutch2py.jobs.whole_crawl import WholeCrawl, whole_crawl
from nutch2py.mapreduce.driver import JobResult, stoppable
from nutch2py.mapreduce.parameters import REINDEX, SCORES
from nutch2py.reporting import Reporter, reporting_to
from nutch2py.rounds.indexed import documents_in_index, index_name
from nutch2py.rounds.plan import ROUND_URLS, Plan, Stay
from nutch2py.rounds.seeds import Seed, seeds_of, with_troubles
from nutch2py.url.parts import domain_of, host_of
from nutch2py.url.url_filters import URLFilters
from nutch2py.url.url_normalizers import URLNormalizers
from nutch2py.webpage import ProtocolStatusCode, WebPage

if TYPE_CHECKING:
    from nutch2py.rounds.view import View

T = TypeVar("T", bound=JobResult)
_MOVED = (ProtocolStatusCode.MOVED, ProtocolStatusCode.TEMP_MOVED)
_MOST_OF = 0.9  # of the documents that an index had: one with less was made anew, or is another
_MOST_MOVES = 5  # of a seed, from site to site
_BEGUN = (State.GENERATED, INTERRUPTED, FETCHED, PARSED, State.UPDATED)


class End(StrEnum):
    """Why a crawl ended."""

    DONE = "done"
    PAGES = "pages"
    TIME = "time"


class Rounds:
    """A crawl by plan. ``tally`` says what came of it so far, whenever it ends; ``seeds`` what was to be crawled."""

    def __init__(self, conf: Configuration, plan: Plan, view: View, *, index: bool = True) -> None:
        self._plan, self._view, self._index = plan, view, index
        self._crawl = Crawl(conf, on_line=view.line, on_warning=view.warning, on_progress=view.progress)
        self._reporter = Reporter(view.line, view.warning, view.progress)
        self.conf = self._crawl.conf
        self.tally = view.tally
        self.seeds: list[Seed] = []
        self.end = End.DONE
        self._whole: WholeCrawl
        self._unasked: list[Seed] = []
        self.went_on = False
        """Whether pages that an earlier run had fetched were parsed, indexed or ranked."""
        self._requested = self._moves = 0

    def run(self) -> None:
        """Crawl until nothing is due, or a limit of the plan is met.

        Raise NothingFetchedError when nothing can be fetched of any seed, before anything is made; LockedError beside
        another crawl.
        """
        plan, conf = self._plan, self.conf
        plan.configure(conf)
        self.seeds = with_troubles(seeds_of(plan.words, conf), conf)
        troubles = [seed for seed in self.seeds if seed.trouble]
        if len(troubles) == len(self.seeds):
            raise NothingFetchedError("nothing can be fetched: " + "; ".join(seed.trouble for seed in troubles))
        for seed in troubles:
            self._view.warning(seed.trouble)
        self._check_filters()
        self._unasked = [*self.seeds]
        with self._crawl, stoppable(), reporting_to(self._reporter), whole_crawl(conf) as self._whole:
            self._inject_seeds()
            self._follow_moved_seeds()  # those that an earlier run has met: what is begun may lead there
            self._finish_what_was_begun()
            if count := allow_again(conf):
                self._view.say(f"{count:,} pages that were refused for their addresses are allowed now, and due")
            self._follow_moved_seeds()
            while self._round():
                self._follow_moved_seeds()
            self._rank()

    def _check_filters(self) -> None:
        """Raise NothingFetchedError when the URL filters refuse every seed, while nothing is made."""
        self._plan.keep_below(self.conf, [seed.url for seed in self.seeds])
        filters = URLFilters(self.conf)
        if all(filters.filter(seed.url) is None for seed in self.seeds):
            raise NothingFetchedError(f"nothing can be fetched: {self._refused(len(self.seeds))}")

    def _refused(self, count: int) -> str:
        return f"{count:,} of {len(self.seeds):,} seeds are refused by the URL filters (see filterchecker)"

    def _inject_seeds(self) -> None:
        made = self._inject(self.seeds)
        refused = made.count("injector", "urls_filtered")
        if refused:
            if not made.count("injector", "urls_injected"):
                raise NothingFetchedError(f"nothing can be fetched: {self._refused(refused)}")
            self._view.warning(self._refused(refused))

    def _inject(self, seeds: list[Seed]) -> JobResult:
        self._plan.keep_below(self.conf, [seed.url for seed in self.seeds])
        return self._crawl.inject([seed.line for seed in seeds])

    def _finish_what_was_begun(self) -> None:
        """Take up the batches that a crawl which was stopped has left; what is fetched of them is of this run."""
        for batch in self._crawl.batches():
            if batch.state not in _BEGUN or (batch.state == State.UPDATED and not self._index):
                continue
            self._view.say(f"going on with batch {batch.batch_id} ({batch.state})")
            self.went_on |= batch.state in (FETCHED, PARSED, State.UPDATED)
            if batch.state == INTERRUPTED:
                if self._left() > 0:
                    self._work_on_new(batch.batch_id)
            elif batch.state == State.UPDATED:
                self._whole.note_unranked()
                self._do("index", partial(self._crawl.index, batch.batch_id), max(batch.count, 0))
            else:
                if batch.state != PARSED:
                    fetched = batch.done or 0 if batch.state == FETCHED else 0
                    self._requested += max(batch.count - fetched, 0)
                self._work_on(batch.batch_id, max(batch.count, 0))

    def _round(self) -> bool:
        """Run a round; return whether another may follow."""
        if self._left() <= 0:
            self.end = End.PAGES
            return False
        if self._seconds_left() <= 0:
            self.end = End.TIME
            return False
        return self._work_on_new()

    def _left(self) -> int:
        """Return how many URLs a batch may have: so many of the plan's pages are left, or a round's."""
        return ROUND_URLS if self._plan.pages is None else min(self._plan.pages - self._requested, ROUND_URLS)

    def _work_on_new(self, batch_id: str = "") -> bool:
        """Make a batch, one that was interrupted anew, and work on it; return whether any URL is due."""
        made = self._do("generate", lambda: self._crawl.generate(top_n=self._left(), batch_id=batch_id))
        self.tally.left = made.group("generator")
        if not made.urls:
            return False
        self._requested += made.urls
        self._work_on(made.batch_id, made.urls)
        return True

    def _work_on(self, batch_id: str, urls: int) -> None:
        """Fetch a batch, and all that follows."""
        crawl = self._crawl
        self._whole.note_unranked()
        seconds, pages = self.tally.seconds, self.tally.good
        if self._plan.minutes is not None:
            self.conf.set("fetcher.timelimit.mins", max(1, math.ceil(self._seconds_left() / 60)))
        self._do("fetch", lambda: crawl.fetch(batch_id, resume=True), urls)
        self._do("parse", lambda: crawl.parse(batch_id, resume=True), urls)
        self._do("updatedb", lambda: crawl.updatedb(batch_id), urls)
        if self._index:
            self._do("index", lambda: crawl.index(batch_id), urls)
        self.tally.rounds += 1
        self._view.say(
            f"round {self.tally.rounds}: {self.tally.good - pages:,} of {urls:,} URLs fetched in "
            f"{self.tally.seconds - seconds:.0f} s; so far {self.tally.in_a_line()}"
        )

    def _follow_moved_seeds(self) -> None:
        """Make seeds of the other sites that seeds lead to: ``example.org`` is often at ``www.example.org``."""
        if self._plan.stay == Stay.ANYWHERE or not self._unasked:
            return
        normalizers = URLNormalizers(self.conf, "fetcher")
        place = domain_of if self._plan.stay == Stay.DOMAIN else host_of
        known = {seed.url for seed in self.seeds}
        found: dict[str, Seed] = {}
        waiting, self._unasked = self._unasked, []
        for seed in waiting:
            page = self._crawl.page(seed.url, {WebPage.protocol_status, WebPage.fetch_time})
            status = None if page is None else page.protocol_status
            if status is None and (page is not None or seed.url in found):
                self._unasked.append(seed)  # its turn is yet to come
            if status is None or status.code not in _MOVED or not status.args:
                continue
            target = normalizers.normalize(status.args[0])
            if target is None or target in known or self._moves >= _MOST_MOVES * len(known):
                continue
            if place(target) == place(seed.url) and self._plan.stay != Stay.PATH:
                continue  # a link like any other
            self._moves += 1
            known.add(target)
            found[target] = Seed(target, target)
            waiting.append(found[target])  # which may have been fetched by an earlier run, and lead further
            self._view.say(f"{seed.url} leads to {target}: that is crawled, too")
        if found:
            self.seeds += found.values()
            self._inject([*found.values()])

    def _rank(self) -> None:
        """Rank all pages, leave out duplicates, and tell the index, unless nothing was fetched since that was done.

        Ranks are made anew when links have changed enough. What was done before a kill the job log tells.
        """
        if not self._whole.unranked():
            return
        self._whole.check()
        before = LinkNews.of(self.conf)
        enough = before.is_more(self.conf.get_float("crawl.pagerank.share", 0.05), before.since_ranks)
        self.tally.ranks = f"{before.told()}: {'ranking anew' if enough else 'ranks stay as they are'}"
        self._view.say(self.tally.ranks)
        if enough:
            self._view.begin("pagerank")
            self._crawl.pagerank()
        self._do("dedup", self._crawl.dedup)
        self._do("updatehostdb", lambda: self._crawl.updatehostdb(links=True))  # what the report tells of hosts
        if self._index:
            self._tell_index()
            self._do("clean", self._crawl.clean)
        self._whole.ranked()
        self.went_on |= not self.tally.rounds

    def _tell_index(self) -> None:
        """Send all documents, where their anchors have changed enough or the index lacks any; else scores alone."""
        news = LinkNews.of(self.conf)
        name, there = index_name(self.conf), documents_in_index(self.conf)
        known = self._whole.indexed(name)
        lacks = news.freed > 0 or known is None or there is None or there < known * _MOST_OF
        boosted = not news.sent and self.conf.get_bool("pagerank.update.score", False)  # boost is no score of a rank
        if lacks or boosted or news.is_more(self.conf.get_float("crawl.reindex.share", 0.2), news.since_index):
            result = self._do("index", lambda: self._crawl.index(REINDEX))
            self.tally.documents = result.count("IndexerStatus", "added")
        else:
            if not news.sent:
                result = self._do("scores", lambda: self._crawl.index(SCORES))
                self.tally.ranks += f"; {told(result)}"
            self.tally.documents = there or 0
        self._whole.note_indexed(name, self.tally.documents)

    def _do(self, job: str, work: Callable[[], T], urls: int = 0) -> T:
        self._whole.check()
        self._view.begin(job, urls)
        result = work()
        self.tally.add(result)
        return result

    def _seconds_left(self) -> float:
        return math.inf if self._plan.minutes is None else self._plan.minutes * 60 - self.tally.seconds
