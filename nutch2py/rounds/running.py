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
from nutch2py.mapreduce.driver import JobResult, stoppable
from nutch2py.mapreduce.parameters import REINDEX
from nutch2py.rounds.plan import ROUND_URLS, Plan, Stay
from nutch2py.rounds.seeds import Seed, seeds_of, with_troubles
from nutch2py.url.parts import domain_of, host_of
from nutch2py.url.url_normalizers import URLNormalizers
from nutch2py.webpage import ProtocolStatusCode, WebPage

if TYPE_CHECKING:
    from nutch2py.rounds.view import View

T = TypeVar("T", bound=JobResult)
_MOVED = (ProtocolStatusCode.MOVED, ProtocolStatusCode.TEMP_MOVED)
_MOST_MOVES = 5  # of a seed, from site to site
_ROUND_BEGUN = (State.GENERATED, INTERRUPTED, FETCHED, PARSED)


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
        self.conf = self._crawl.conf
        self.tally = view.tally
        self.seeds: list[Seed] = []
        self.end = End.DONE
        self._unasked: list[Seed] = []
        self._requested = self._moves = 0

    def run(self) -> None:
        """Crawl until nothing is due, or a limit of the plan is met.

        Raise NothingFetchedError when nothing can be fetched of any seed, before anything is made.
        """
        plan, conf = self._plan, self.conf
        plan.configure(conf)
        self.seeds = with_troubles(seeds_of(plan.words, conf), conf)
        troubles = [seed for seed in self.seeds if seed.trouble]
        if len(troubles) == len(self.seeds):
            raise NothingFetchedError("nothing can be fetched: " + "; ".join(seed.trouble for seed in troubles))
        for seed in troubles:
            self._view.warning(seed.trouble)
        self._unasked = [*self.seeds]
        with self._crawl, stoppable():
            self._inject(self.seeds)
            self._finish_what_was_begun()
            if count := allow_again(conf):
                self._view.say(f"{count:,} pages that were refused for their addresses are allowed now, and due")
            while self._round():
                self._follow_moved_seeds()
            self._rank()

    def _inject(self, seeds: list[Seed]) -> None:
        self._plan.keep_below(self.conf, [seed.url for seed in self.seeds])
        self._crawl.inject([seed.line for seed in seeds])

    def _finish_what_was_begun(self) -> None:
        """Take up the batches that a crawl which was stopped has left."""
        for batch in self._crawl.batches():
            if batch.state not in _ROUND_BEGUN:
                continue
            self._view.say(f"going on with batch {batch.batch_id} ({batch.state})")
            if batch.state == INTERRUPTED:
                self._do("generate", partial(self._crawl.generate, top_n=ROUND_URLS, batch_id=batch.batch_id))
            self._work_on(batch.batch_id, max(batch.count, 0))

    def _round(self) -> bool:
        """Run a round; return whether another may follow."""
        left = None if self._plan.pages is None else self._plan.pages - self._requested
        if left is not None and left <= 0:
            self.end = End.PAGES
            return False
        if self._seconds_left() <= 0:
            self.end = End.TIME
            return False
        made = self._do("generate", lambda: self._crawl.generate(top_n=min(left or ROUND_URLS, ROUND_URLS)))
        self.tally.left = made.group("generator")
        if not made.urls:
            return False
        self._requested += made.urls
        self._work_on(made.batch_id, made.urls)
        return True

    def _work_on(self, batch_id: str, urls: int) -> None:
        """Fetch a batch, and all that follows."""
        crawl = self._crawl
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
        found: list[Seed] = []
        waiting, self._unasked = self._unasked, []
        for seed in waiting:
            page = self._crawl.page(seed.url, {WebPage.protocol_status})
            status = None if page is None else page.protocol_status
            if page is not None and status is None:
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
            found.append(Seed(target, target))
            self._view.say(f"{seed.url} leads to {target}: that is crawled, too")
        if found:
            self.seeds += found
            self._unasked += found
            self._inject(found)

    def _rank(self) -> None:
        """Rank all pages, leave out duplicates, and tell the index."""
        if not self.tally.rounds:
            return
        self._view.begin("pagerank")
        self._crawl.pagerank()
        self._do("dedup", self._crawl.dedup)
        if self._index:
            result = self._do("index", lambda: self._crawl.index(REINDEX))
            self.tally.documents = result.count("IndexerStatus", "added")
            self._do("clean", self._crawl.clean)

    def _do(self, job: str, work: Callable[[], T], urls: int = 0) -> T:
        self._view.begin(job, urls)
        result = work()
        self.tally.add(result)
        return result

    def _seconds_left(self) -> float:
        return math.inf if self._plan.minutes is None else self._plan.minutes * 60 - self.tally.seconds
