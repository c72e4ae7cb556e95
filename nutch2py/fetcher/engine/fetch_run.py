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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.fetcher.downloader.transport import ScrapyTransport
from nutch2py.fetcher.engine.backoff import QueueBackoff
from nutch2py.fetcher.engine.feeder import QueueFeeder, RowSource
from nutch2py.fetcher.engine.fetch_monitor import FetchMonitor, ThroughputThreshold
from nutch2py.fetcher.engine.politeness import QueuePoliteness
from nutch2py.fetcher.engine.slow_requests import SlowRequestTracker
from nutch2py.fetcher.fetch_options import DEFAULT_SLOW_THREADS, FetchOptions
from nutch2py.fetcher.fetch_state import FetchedPage, FetchState
from nutch2py.fetcher.output.page_store import PageStore
from nutch2py.fetcher.output.page_updater import ROBOTS_DENIED, get_protocol_status
from nutch2py.fetcher.page_renderer import PageRenderer
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.robots.robots_cache import RobotsCache, is_allowed
from nutch2py.fetcher.runtime import gc_tuning
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.support.reporting import current_reporter, set_reporter

_STORE_BATCH = 100  # finished pages stored at a time
_MAX_WAITING_PAGES = (
    2_000  # finished pages that wait to be stored: writing can take a second; 400 where they are parsed
)
_MAX_WAITING_BYTES = 32 << 20  # of these, with their headers and what a browser made of them
_FLUSH_INTERVAL = 1.0  # seconds after which fewer are stored
P = ParamSpec("P")
T = TypeVar("T")


def _get_etag(page: WebPage) -> str:
    """Return the ETag of the copy at hand, "" when it has none, or is to be fetched whatever its state.

    That is so when the schedule forces a refetch (the page is unfetched again), and when an earlier fetch was not
    brought to its end by updatedb (the fetch mark is there): 304 would keep its content from being parsed.
    """
    if page.status not in (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED) or page.markers.get(Mark.FETCH) is not None:
        return ""
    return page.headers.get("ETag") or ""


@dataclass(frozen=True, kw_only=True)
class FetchRunSettings:
    """What the properties say of a run.

    ``capacity``: items in the queues at most. Crawl delays of robots.txt: ``max_crawl_delay_ms`` in ms (-1 for any),
    ``min_crawl_delay`` in s. ``max_redirects`` are followed at once. A visit that robots.txt puts off comes again after
    ``defer_delay`` seconds, ``defer_retries`` times. A request that takes longer than ``slow_after`` seconds gives its
    thread back, as long as no more than ``max_slow`` have done so.
    """

    capacity: int
    max_crawl_delay_ms: int
    min_crawl_delay: float
    max_redirects: int
    defer_delay: float
    defer_retries: int
    slow_after: float
    max_slow: int

    @classmethod
    def from_conf(cls, conf: Configuration, threads: int) -> FetchRunSettings:
        """Read the properties."""
        server_delay = conf.get_float("fetcher.server.delay", 5.0)
        return cls(
            capacity=threads * max(1, conf.get_int("fetcher.queue.depth.multiplier", 50)),
            max_crawl_delay_ms=conf.get_int("fetcher.max.crawl.delay", 30) * 1000,
            min_crawl_delay=conf.get_float("fetcher.min.crawl.delay", server_delay),
            max_redirects=conf.get_int("http.redirect.max", 0),
            defer_delay=conf.get_int("http.robots.503.defer.visits.delay", 300_000) / 1000,
            defer_retries=conf.get_int("http.robots.503.defer.visits.retries", 3),
            slow_after=max(0.0, conf.get_float("fetcher.threads.slow.after", 3.0)),
            max_slow=conf.get_int("fetcher.threads.slow", DEFAULT_SLOW_THREADS),
        )


class FetchRun:
    """The state of one run; see :meth:`nutch2py.fetcher.page_fetcher.Fetcher.run`."""

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        queue_ids: QueueIdResolver,
        get_host_settings: Callable[[str], HostFetchSettings | None] | None,
        log: Callable[[str], None],
        rows: RowSource,
        sink: Callable[[FetchItem], None],
        on_status: Callable[[str], None] | None,
        lookup_row: Callable[[str], WebPage | None] | None,
        open_renderer: Callable[[], PageRenderer] | None = None,
    ) -> None:
        self._open_renderer = open_renderer
        self._renderer: PageRenderer | None = None
        self.conf, self.options, self.log = conf, options, log
        self.state = FetchState(options, log)
        self.report = self.state.report
        self._settings = FetchRunSettings.from_conf(conf, options.threads)
        self._store = PageStore(conf, options, sink, lookup_row, log, self.report.filtered_links)
        self._on_status = on_status or (lambda _: None)
        self._table_executor = ThreadPoolExecutor(
            1, "fetcher-table", initializer=set_reporter, initargs=(current_reporter(),)
        )
        self._queue_ids, self._mode = queue_ids, queue_ids.mode
        self._feeder = QueueFeeder(
            self.state,
            rows,
            self._settings.capacity,
            queue_ids,
            None if get_host_settings is None else bounded_cache(65_536)(get_host_settings),
            self._table_executor,
            self._reject,
            self._start_requests,
        )
        self._finished_pages: list[FetchedPage] = []
        self._waiting_bytes = 0  # bytes of these
        self._max_waiting = 4 * _STORE_BATCH if options.parse else _MAX_WAITING_PAGES
        self._table_lookups = 0  # threads that wait for the table
        self._wake_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancelled_tasks: set[asyncio.Task[None]] = set()  # of these, at the end of the fetch's time

    @property
    def _is_backed_up(self) -> bool:
        """Whether pages come in faster than they are stored."""
        return len(self._finished_pages) >= self._max_waiting or self._waiting_bytes >= _MAX_WAITING_BYTES

    async def main(self, transport: ScrapyTransport) -> None:
        """Fetch until the items are used up and the last page is stored."""
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._renderer = None if self._open_renderer is None else self._open_renderer()
        self._renderer_failure: asyncio.Future[None] = self._loop.create_future()
        self.queues = self.state.queues = FetchItemQueues(self.conf, self._loop.time)
        self._slow_requests = SlowRequestTracker(
            self.state, self._settings.slow_after, self._settings.max_slow, self._start_requests
        )
        self._backoff = QueueBackoff(self.conf, self.queues, self.report, self.options.deadline)
        self._robots = RobotsCache(self.conf, lambda url, limit: transport.get(url, limit=limit))
        self._batch_ready, self._idle_event = asyncio.Event(), asyncio.Event()
        self._politeness = QueuePoliteness(self.queues, self._robots, self._queue_ids)
        transport.set_politeness(self._politeness)
        monitor = FetchMonitor(
            self.state,
            ThroughputThreshold.from_conf(self.conf),
            self._wake,
            self._on_status,
            self._is_waiting,
            self._cancel_requests,
        )
        monitor.log_start(self._mode)
        flusher = asyncio.ensure_future(self._flush_until_idle())
        helpers = [asyncio.ensure_future(self._feeder.feed()), asyncio.ensure_future(monitor.watch()), flusher]
        idle = asyncio.ensure_future(self._idle_event.wait())
        waiting: set[asyncio.Future[Any]] = {*helpers, idle, self._renderer_failure}
        try:
            while not idle.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # an error of the iterator or the sink ends the run
            self._batch_ready.set()
            await flusher
        finally:
            for task in (*helpers, *self._tasks, idle):
                task.cancel()
            await asyncio.gather(*helpers, *self._tasks, idle, return_exceptions=True)
            self._renderer_failure.cancel()
            if self._renderer is not None:
                await self._renderer.close()
                self.report.counters.update(self._renderer.counters)
            if self._wake_timer is not None:
                self._wake_timer.cancel()
        monitor.log_finish()

    def _is_waiting(self) -> bool:
        """Whether the run goes on by itself: a request will end, or the time of a queue will come."""
        if self.state.active_requests > self._table_lookups:
            return True
        return self.queues.total_size > 0 and self.queues.next_ready_time() is not None and not self._is_backed_up

    def _wake(self) -> None:
        """Look again whether there is anything to do: the queues were emptied."""
        self._feeder.wake()
        self._start_requests()

    def close(self) -> None:
        """Store what was fetched when the run was ended from outside, and let go of the thread and of open files."""
        self._table_executor.shutdown(wait=True, cancel_futures=True)
        try:
            if not self.options.parse:  # parsing could take long: these pages are fetched again
                self._store.store(self._finished_pages)
        finally:
            self._feeder.close()
            self._store.close()

    # -- requests

    def _start_requests(self) -> None:
        """Start requests while there are free threads and ready queues; wake up when the next queue is ready."""
        while self.state.busy_threads < self.options.threads and not self._is_backed_up:
            item = self.queues.get()
            if item is None:
                self._feeder.wake()
                break
            self.state.active_requests += 1
            task = asyncio.ensure_future(self._run_worker(item))
            self._tasks.add(task)
            task.add_done_callback(self._on_task_done)
        if self._wake_timer is not None:
            self._wake_timer.cancel()
            self._wake_timer = None
        blocked = self.state.busy_threads >= self.options.threads or self._is_backed_up  # who ends that calls again
        if not blocked and (at := self.queues.next_ready_time()) is not None:
            self._wake_timer = self._loop.call_at(max(at, self._loop.time() + 0.001), self._start_requests)
        if not self.state.is_feeding and not self.state.active_requests and not self.queues.total_size:
            self._idle_event.set()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task in self._cancelled_tasks:  # it could not do so itself
            self._cancelled_tasks.discard(task)
            self._start_requests()

    def _cancel_requests(self) -> int:
        """End the requests under way, whose pages stay due; return how many."""
        cut = self._tasks - self._cancelled_tasks
        for task in cut:
            task.cancel()
        self._cancelled_tasks |= cut
        return len(cut)

    async def _run_worker(self, item: FetchItem | None) -> None:
        """Be a fetcher thread for as long as queues are ready."""
        try:
            while item is not None:
                self._slow_requests.start(item)
                try:
                    await self._fetch(item)
                except Exception as error:  # noqa: BLE001 - one URL must not end the others
                    self.log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                    self.queues.finish(item)
                    self.report.counters["FAILED"] += 1
                    self._finish_page(item, None, ProtocolStatus(Code.FAILED))
                finally:
                    if (took := self._slow_requests.finish(item) - item.rendering_seconds) > self._settings.slow_after:
                        self._backoff.add_slow_seconds(item, took)
                self._feeder.on_request_done(item)
                crowded = self._is_backed_up or self.state.busy_threads > self.options.threads
                item = None if crowded else self.queues.get()
        finally:
            self.state.active_requests -= 1
        self._start_requests()

    async def _fetch(self, item: FetchItem) -> None:
        queue = self.queues.get_queue(item.queue_id)
        self.log(f"fetching {item.url} (queue crawl delay={int(queue.crawl_delay * 1000)}ms)")
        rules = await self._robots.get_rules(item.url)
        if rules.is_deferred:
            self.report.counters["robots_defer_visits"] += 1
            if dropped := self.queues.defer(item, self._settings.defer_delay, self._settings.defer_retries):
                self.report.counters["robots_defer_visits_dropped"] += dropped
                self.report.host_failures.add("robots_defer_visits_dropped", item.url, dropped)
            return
        if rules.fetch_failure:
            self.queues.finish(item)
            self._finish_page(item, FetchResponse(item.url, failure=rules.fetch_failure))
            return
        if not await is_allowed(rules, item.url):
            self._deny(item, "ROBOTS_DENIED")
            return
        if (delay := rules.crawl_delay_ms or 0) > self._settings.max_crawl_delay_ms >= 0:
            self._deny(item, "ROBOTS_DENIED_MAXCRAWLDELAY")
            return
        if delay > 0:
            queue.crawl_delay = max(delay / 1000, self._settings.min_crawl_delay)
        if self.options.detect_sitemaps and rules.sitemaps and item.url.split("://", 1)[1].partition("/")[2] == "":
            item.page.sitemaps = dict.fromkeys(rules.sitemaps, "")
        page = item.page
        if self._renderer is not None and self._renderer.is_always_rendered(item.url):
            answer = await self._transport.get(item.url)
        else:
            answer = await self._transport.get(item.url, page.modified_time, etag=_get_etag(page))
        if self._renderer is not None:
            began = self._loop.time()
            try:
                answer = await self._renderer.render(item.url, answer, self._politeness.is_allowed_by_robots)
            except NutchError as error:  # there is no browser: pages stay due
                if not self._renderer_failure.done():
                    self._renderer_failure.set_exception(error)
                await asyncio.Event().wait()  # until the run ends, and this with it
            finally:
                item.rendering_seconds = self._loop.time() - began
        self.queues.finish(item, asap=item.url.startswith("file:"))
        status = self._finish_page(item, answer)
        if status.code in (Code.MOVED, Code.TEMP_MOVED) and len(item.redirect_chain) < self._settings.max_redirects:
            await self._follow_redirect(item, status)

    def _reject(self, item: FetchItem, problem: str) -> None:
        self._finish_page(item, FetchResponse(item.url, failure=FetchFailure(FailureKind.URL, problem)))

    def _deny(self, item: FetchItem, counter: str) -> None:
        self.queues.finish(item, asap=True)
        self.report.counters[counter] += 1
        self.report.host_failures.add(counter, item.url)
        self._finish_page(item, None, ROBOTS_DENIED)

    async def _follow_redirect(self, item: FetchItem, status: ProtocolStatus) -> None:
        """Put the target of a redirect into its own queue, so that it is fetched in this run, as politely as any."""
        try:
            target = await self._call_in_table_thread(self._store.make_redirect_item, item, status)
        except PluginError:  # the page itself meets it when it is stored
            return
        if target is None:
            return
        await self._queue_ids.resolve_hosts((target.url,))  # its address names its queue with byIP
        if problem := await self._call_in_table_thread(self._feeder.assign_queue, target):
            self._reject(target, problem)
        elif left_out := self._feeder.limit_counter or self.queues.add(target):
            self.report.counters[left_out] += 1

    async def _call_in_table_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what reads the table in its thread."""
        self._table_lookups += 1
        try:
            return await self._loop.run_in_executor(self._table_executor, partial(function, *args, **kwargs))
        finally:
            self._table_lookups -= 1

    def _finish_page(
        self, item: FetchItem, response: FetchResponse | None, status: ProtocolStatus | None = None
    ) -> ProtocolStatus:
        """Count a page that is done and hand it to the thread that stores it."""
        report = self.report
        if response is not None:
            status = get_protocol_status(item.url, response)
            report.pages += 1
            report.bytes += len(response.content)
            if response.failure is None:
                report.response_times.add(response.elapsed_ms)
                report.response_sizes.add(len(response.content))
            report.counters[Code(status.code).name] += 1
            if response.failure is not None:
                report.counters[f"exception_{response.failure.kind.value}"] += 1
            report.host_failures.count_response(item.url, response, status)
            if status.code == Code.EXCEPTION:
                report.errors += 1
                self.log(f"fetch of {item.url} failed with: {status.args[0]}")
            if item.queue_id:
                self._backoff.handle_response(item, response, status)
        elif status is None:
            status = ProtocolStatus(Code.FAILED)
        self._finished_pages.append(FetchedPage(item, response, status))
        self._waiting_bytes += 0 if response is None else response.memory_size
        if len(self._finished_pages) >= _STORE_BATCH or 4 * self._waiting_bytes >= _MAX_WAITING_BYTES:
            self._batch_ready.set()
        return status

    # -- storing

    async def _flush_until_idle(self) -> None:
        """Store pages in batches, now and then, and what is left when the run has become idle."""
        while not (self._idle_event.is_set() and not self._finished_pages):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._batch_ready.wait(), _FLUSH_INTERVAL)
            self._batch_ready.clear()
            await self._flush()
            self._start_requests()

    async def _flush(self) -> None:
        finished, self._finished_pages, size, self._waiting_bytes = self._finished_pages, [], self._waiting_bytes, 0
        if finished:
            storing = self._table_executor.submit(self._store.store, finished)
            try:
                await asyncio.wrap_future(storing)
            finally:
                if storing.cancel():  # its thread had not begun with them, and the run ends: close stores them
                    self._finished_pages[:0] = finished
            gc_tuning.add_stored_bytes(size)
