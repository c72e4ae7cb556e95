"""One run of the fetcher: the feeder fills the queues, requests run as the queues allow, finished pages are stored.

Everything that waits for the network is in the event loop; everything that reads or writes the table, or parses, is in
one thread beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from nutch2py.cells import ProtocolStatus
from nutch2py.conf import Configuration
from nutch2py.errors import NutchError
from nutch2py.fetcher import collector
from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.backoff import Backoff
from nutch2py.fetcher.feeder import Feeder, Rows
from nutch2py.fetcher.fetch_options import MOST_SLOW, FetchOptions
from nutch2py.fetcher.fetch_state import FetchState, Finished
from nutch2py.fetcher.manners import QueueManners
from nutch2py.fetcher.monitor import Monitor, Throughput
from nutch2py.fetcher.outcome import ROBOTS_DENIED, protocol_status
from nutch2py.fetcher.page_store import PageStore
from nutch2py.fetcher.patience import Patience
from nutch2py.fetcher.queue_keys import QueueKeys
from nutch2py.fetcher.queues import FetchItem, FetchItemQueues, HostSettings
from nutch2py.fetcher.rendering import Renderer
from nutch2py.fetcher.robots import RobotsCache, is_allowed
from nutch2py.fetcher.transport import Transport
from nutch2py.plugin_guard import PluginError
from nutch2py.reporting import adopt, reporter
from nutch2py.short_cache import short_cache
from nutch2py.webpage import CrawlStatus, Mark, WebPage
from nutch2py.webpage import ProtocolStatusCode as Code

_BATCH = 100  # finished pages stored at a time
_MOST_WAITING = 2_000  # finished pages that wait to be stored: writing can take a second; 400 where they are parsed
_MOST_BYTES = 32 << 20  # of these, with their headers and what a browser made of them
_FLUSH = 1.0  # seconds after which fewer are stored
P = ParamSpec("P")
T = TypeVar("T")


def _etag(page: WebPage) -> str:
    """Return the ETag of the copy at hand, "" when it has none, or is to be fetched whatever its state.

    That is so when the schedule forces a refetch (the page is unfetched again), and when an earlier fetch was not
    brought to its end by updatedb (the fetch mark is there): 304 would keep its content from being parsed.
    """
    if page.status not in (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED) or page.markers.get(Mark.FETCH) is not None:
        return ""
    return page.headers.get("ETag") or ""


@dataclass(frozen=True, kw_only=True)
class FetchRules:
    """What the properties say of a run.

    ``capacity``: items in the queues at most. Crawl delays of robots.txt: ``max_crawl_delay`` in ms (-1 for any),
    ``min_crawl_delay`` in s. ``max_redirects`` are followed at once. A visit that robots.txt puts off comes again after
    ``defer_delay`` seconds, ``defer_retries`` times. A request that takes longer than ``slow_after`` seconds gives its
    thread back, as long as no more than ``most_slow`` have done so.
    """

    capacity: int
    max_crawl_delay: int
    min_crawl_delay: float
    max_redirects: int
    defer_delay: float
    defer_retries: int
    slow_after: float
    most_slow: int

    @classmethod
    def of(cls, conf: Configuration, threads: int) -> FetchRules:
        """Read the properties."""
        server_delay = conf.get_float("fetcher.server.delay", 5.0)
        return cls(
            capacity=threads * max(1, conf.get_int("fetcher.queue.depth.multiplier", 50)),
            max_crawl_delay=conf.get_int("fetcher.max.crawl.delay", 30) * 1000,
            min_crawl_delay=conf.get_float("fetcher.min.crawl.delay", server_delay),
            max_redirects=conf.get_int("http.redirect.max", 0),
            defer_delay=conf.get_int("http.robots.503.defer.visits.delay", 300_000) / 1000,
            defer_retries=conf.get_int("http.robots.503.defer.visits.retries", 3),
            slow_after=max(0.0, conf.get_float("fetcher.threads.slow.after", 3.0)),
            most_slow=conf.get_int("fetcher.threads.slow", MOST_SLOW),
        )


class FetchRun:
    """The state of one run; see :meth:`nutch2py.fetcher.fetcher.Fetcher.run`."""

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        keys: QueueKeys,
        host_settings: Callable[[str], HostSettings | None] | None,
        log: Callable[[str], None],
        rows: Rows,
        sink: Callable[[FetchItem], None],
        status: Callable[[str], None] | None,
        lookup: Callable[[str], WebPage | None] | None,
        open_renderer: Callable[[], Renderer] | None = None,
    ) -> None:
        self._open_renderer = open_renderer
        self._renderer: Renderer | None = None
        self.conf, self.options, self.log = conf, options, log
        self.state = FetchState(options, log)
        self.report = self.state.report
        self._rules = FetchRules.of(conf, options.threads)
        self._store = PageStore(conf, options, sink, lookup, log, self.report.links)
        self._tell = status or (lambda _: None)
        self._io = ThreadPoolExecutor(1, "fetcher-table", initializer=adopt, initargs=(reporter(),))
        self._keys, self._mode = keys, keys.mode
        self._feeder = Feeder(
            self.state,
            rows,
            self._rules.capacity,
            keys,
            None if host_settings is None else short_cache(65_536)(host_settings),
            self._io,
            self._refuse,
            self._pump,
        )
        self._finished: list[Finished] = []
        self._waiting = 0  # bytes of these
        self._most_waiting = 4 * _BATCH if options.parse else _MOST_WAITING
        self._looking_up = 0  # threads that wait for the table
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: set[asyncio.Task[None]] = set()  # of these, at the end of the fetch's time

    @property
    def _backed_up(self) -> bool:
        """Whether pages come in faster than they are stored."""
        return len(self._finished) >= self._most_waiting or self._waiting >= _MOST_BYTES

    async def main(self, transport: Transport) -> None:
        """Fetch until the items are used up and the last page is stored."""
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._renderer = None if self._open_renderer is None else self._open_renderer()
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self.queues = self.state.queues = FetchItemQueues(self.conf, self._loop.time)
        self._patience = Patience(self.state, self._rules.slow_after, self._rules.most_slow, self._pump)
        self._backoff = Backoff(self.conf, self.queues, self.report, self.options.deadline)
        self._robots = RobotsCache(self.conf, lambda url, limit: transport.get(url, limit=limit))
        self._full, self._idle = asyncio.Event(), asyncio.Event()
        self._manners = QueueManners(self.queues, self._robots, self._keys)
        transport.behave(self._manners)
        monitor = Monitor(self.state, Throughput.of(self.conf), self._wake, self._tell, self._waits, self._cut)
        monitor.begin(self._mode)
        flusher = asyncio.ensure_future(self._flush_until_idle())
        helpers = [asyncio.ensure_future(self._feeder.feed()), asyncio.ensure_future(monitor.watch()), flusher]
        idle = asyncio.ensure_future(self._idle.wait())
        waiting: set[asyncio.Future[Any]] = {*helpers, idle, self._broken}
        try:
            while not idle.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # an error of the iterator or the sink ends the run
            self._full.set()
            await flusher
        finally:
            for task in (*helpers, *self._tasks, idle):
                task.cancel()
            await asyncio.gather(*helpers, *self._tasks, idle, return_exceptions=True)
            self._broken.cancel()
            if self._renderer is not None:
                await self._renderer.close()
                self.report.counters.update(self._renderer.counters)
            if self._timer is not None:
                self._timer.cancel()
        monitor.end()

    def _waits(self) -> bool:
        """Whether the run goes on by itself: a request will end, or the time of a queue will come."""
        if self.state.active > self._looking_up:
            return True
        return self.queues.total_size > 0 and self.queues.next_time() is not None and not self._backed_up

    def _wake(self) -> None:
        """Look again whether there is anything to do: the queues were emptied."""
        self._feeder.wake()
        self._pump()

    def close(self) -> None:
        """Store what was fetched when the run was ended from outside, and let go of the thread and of open files."""
        self._io.shutdown(wait=True, cancel_futures=True)
        try:
            if not self.options.parse:  # parsing could take long: these pages are fetched again
                self._store.put(self._finished)
        finally:
            self._feeder.close()
            self._store.close()

    # -- requests

    def _pump(self) -> None:
        """Start requests while there are free threads and ready queues; wake up when the next queue is ready."""
        while self.state.busy < self.options.threads and not self._backed_up:
            item = self.queues.get()
            if item is None:
                self._feeder.wake()
                break
            self.state.active += 1
            task = asyncio.ensure_future(self._work(item))
            self._tasks.add(task)
            task.add_done_callback(self._worked)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        blocked = self.state.busy >= self.options.threads or self._backed_up  # who ends that calls again
        if not blocked and (at := self.queues.next_time()) is not None:
            self._timer = self._loop.call_at(max(at, self._loop.time() + 0.001), self._pump)
        if not self.state.feeding and not self.state.active and not self.queues.total_size:
            self._idle.set()

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task in self._ended:  # it could not do so itself
            self._ended.discard(task)
            self._pump()

    def _cut(self) -> int:
        """End the requests under way, whose pages stay due; return how many."""
        cut = self._tasks - self._ended
        for task in cut:
            task.cancel()
        self._ended |= cut
        return len(cut)

    async def _work(self, item: FetchItem | None) -> None:
        """Be a fetcher thread for as long as queues are ready."""
        try:
            while item is not None:
                self._patience.begin(item)
                try:
                    await self._fetch(item)
                except Exception as error:  # noqa: BLE001 - one URL must not end the others
                    self.log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                    self.queues.finish(item)
                    self.report.counters["FAILED"] += 1
                    self._finish(item, None, ProtocolStatus(Code.FAILED))
                finally:
                    if (took := self._patience.end(item) - item.rendering) > self._rules.slow_after:
                        self._backoff.endure(item, took)
                self._feeder.look(item)
                crowded = self._backed_up or self.state.busy > self.options.threads
                item = None if crowded else self.queues.get()
        finally:
            self.state.active -= 1
        self._pump()

    async def _fetch(self, item: FetchItem) -> None:
        queue = self.queues.queue(item.queue_id)
        self.log(f"fetching {item.url} (queue crawl delay={int(queue.crawl_delay * 1000)}ms)")
        rules = await self._robots.rules(item.url)
        if rules.deferred:
            self.report.counters["robots_defer_visits"] += 1
            if dropped := self.queues.defer(item, self._rules.defer_delay, self._rules.defer_retries):
                self.report.counters["robots_defer_visits_dropped"] += dropped
                self.report.troubles.add("robots_defer_visits_dropped", item.url, dropped)
            return
        if rules.unreachable:
            self.queues.finish(item)
            self._finish(item, Answer(item.url, failure=rules.unreachable))
            return
        if not await is_allowed(rules, item.url):
            self._deny(item, "ROBOTS_DENIED")
            return
        if (delay := rules.crawl_delay or 0) > self._rules.max_crawl_delay >= 0:
            self._deny(item, "ROBOTS_DENIED_MAXCRAWLDELAY")
            return
        if delay > 0:
            queue.crawl_delay = max(delay / 1000, self._rules.min_crawl_delay)
        if self.options.detect_sitemaps and rules.sitemaps and item.url.split("://", 1)[1].partition("/")[2] == "":
            item.page.sitemaps = dict.fromkeys(rules.sitemaps, "")
        page = item.page
        if self._renderer is not None and self._renderer.always(item.url):
            answer = await self._transport.get(item.url)
        else:
            answer = await self._transport.get(item.url, page.modified_time, etag=_etag(page))
        if self._renderer is not None:
            began = self._loop.time()
            try:
                answer = await self._renderer.render(item.url, answer, self._manners.permitted)
            except NutchError as error:  # there is no browser: pages stay due
                if not self._broken.done():
                    self._broken.set_exception(error)
                await asyncio.Event().wait()  # until the run ends, and this with it
            finally:
                item.rendering = self._loop.time() - began
        self.queues.finish(item, asap=item.url.startswith("file:"))
        status = self._finish(item, answer)
        if status.code in (Code.MOVED, Code.TEMP_MOVED) and len(item.chain) < self._rules.max_redirects:
            await self._follow(item, status)

    def _refuse(self, item: FetchItem, problem: str) -> None:
        self._finish(item, Answer(item.url, failure=Failure(FailureKind.URL, problem)))

    def _deny(self, item: FetchItem, counter: str) -> None:
        self.queues.finish(item, asap=True)
        self.report.counters[counter] += 1
        self.report.troubles.add(counter, item.url)
        self._finish(item, None, ROBOTS_DENIED)

    async def _follow(self, item: FetchItem, status: ProtocolStatus) -> None:
        """Put the target of a redirect into its own queue, so that it is fetched in this run, as politely as any."""
        try:
            target = await self._look_up(self._store.target_of, item, status)
        except PluginError:  # the page itself meets it when it is stored
            return
        if target is None:
            return
        await self._keys.prepare((target.url,))  # its address names its queue with byIP
        if problem := await self._look_up(self._feeder.assign, target):
            self._refuse(target, problem)
        elif left_out := self._feeder.over or self.queues.add(target):
            self.report.counters[left_out] += 1

    async def _look_up(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what reads the table in its thread."""
        self._looking_up += 1
        try:
            return await self._loop.run_in_executor(self._io, partial(function, *args, **kwargs))
        finally:
            self._looking_up -= 1

    def _finish(self, item: FetchItem, answer: Answer | None, status: ProtocolStatus | None = None) -> ProtocolStatus:
        """Count a page that is done and hand it to the thread that stores it."""
        report = self.report
        if answer is not None:
            status = protocol_status(item.url, answer)
            report.pages += 1
            report.bytes += len(answer.content)
            if answer.failure is None:
                report.times.add(answer.elapsed)
                report.sizes.add(len(answer.content))
            report.counters[Code(status.code).name] += 1
            if answer.failure is not None:
                report.counters[f"exception_{answer.failure.kind.value}"] += 1
            report.troubles.judge(item.url, answer, status)
            if status.code == Code.EXCEPTION:
                report.errors += 1
                self.log(f"fetch of {item.url} failed with: {status.args[0]}")
            if item.queue_id:
                self._backoff.judge(item, answer, status)
        elif status is None:
            status = ProtocolStatus(Code.FAILED)
        self._finished.append(Finished(item, answer, status))
        self._waiting += 0 if answer is None else answer.held
        if len(self._finished) >= _BATCH or 4 * self._waiting >= _MOST_BYTES:
            self._full.set()
        return status

    # -- storing

    async def _flush_until_idle(self) -> None:
        """Store pages in batches, now and then, and what is left when the run has become idle."""
        while not (self._idle.is_set() and not self._finished):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), _FLUSH)
            self._full.clear()
            await self._flush()
            self._pump()

    async def _flush(self) -> None:
        finished, self._finished, size, self._waiting = self._finished, [], self._waiting, 0
        if finished:
            storing = self._io.submit(self._store.put, finished)
            try:
                await asyncio.wrap_future(storing)
            finally:
                if storing.cancel():  # its thread had not begun with them, and the run ends: close stores them
                    self._finished[:0] = finished
            collector.took(size)
