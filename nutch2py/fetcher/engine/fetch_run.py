"""One run of the fetcher: fills the queues, sends requests as the queues allow, and stores finished pages.

Network I/O runs in the event loop. Reading and writing the table, and parsing, run in a single separate thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.fetcher.downloader.transport import ScrapyTransport
from nutch2py.fetcher.engine.extra_requests import ExtraRequestGate
from nutch2py.fetcher.engine.feeder import QueueFeeder, RowSource
from nutch2py.fetcher.engine.fetch_limits import FetchLimits, ThroughputThreshold
from nutch2py.fetcher.engine.fetch_monitor import FetchMonitor
from nutch2py.fetcher.engine.fetch_tail import FetchTail
from nutch2py.fetcher.engine.queue_backoff import QueueBackoff
from nutch2py.fetcher.engine.redirects import RedirectFollower
from nutch2py.fetcher.engine.robots_policy import RobotsPolicy
from nutch2py.fetcher.engine.slow_requests import SlowRequestTracker
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import LOCAL_FAILURE_COUNTER, FetchedPage, FetchReport, FetchState
from nutch2py.fetcher.output.page_buffer import PageBuffer
from nutch2py.fetcher.output.page_store import PageStore
from nutch2py.fetcher.output.page_updater import MAX_MESSAGE_LENGTH, ROBOTS_DENIED, get_protocol_status
from nutch2py.fetcher.page_renderer import PageRenderer
from nutch2py.fetcher.protocols.conditional_request import get_stored_etag
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.robots.robots_cache import RobotsCache
from nutch2py.fetcher.runtime import gc_tuning
from nutch2py.fetcher.runtime.fd_budget import FdBudget
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.records.webpage import WebPage
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.support.reporting import capture_reporting
from nutch2py.url.url_length import max_url_length

_FLUSH_INTERVAL = 1.0  # seconds after which a smaller batch is stored
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class FetchRunSettings:
    """Settings of a run, from the properties.

    Attributes:
        capacity: Maximum number of items in the queues.
        slow_after: Time after which a request releases its thread, in seconds.
        max_slow: Maximum number of requests that have released their thread.
        max_url_length: Maximum number of characters of a redirect's target.
    """

    capacity: int
    slow_after: float
    max_slow: int
    max_url_length: int

    @classmethod
    def from_conf(cls, conf: Configuration, budget: FdBudget) -> FetchRunSettings:
        """Read the properties; ``budget`` limits threads and slow requests."""
        return cls(
            capacity=budget.threads * max(1, conf.get_int("fetcher.queue.depth.multiplier", 50)),
            slow_after=max(0.0, conf.get_float("fetcher.threads.slow.after", 3.0)),
            max_slow=budget.slow_threads,
            max_url_length=max_url_length(conf),
        )


@dataclass(frozen=True)
class FetchCallbacks:
    """Functions through which a run uses the table, logs and renders; see :meth:`Fetcher.run`."""

    sink: Callable[[FetchItem], None]
    log: Callable[[str], None]
    on_status: Callable[[str], None]
    lookup_row: Callable[[str], WebPage | None] | None = None
    get_host_settings: Callable[[str], HostFetchSettings | None] | None = None
    open_renderer: Callable[[], PageRenderer] | None = None


class FetchRun:
    """One run in an event loop; see :meth:`nutch2py.fetcher.fetcher.Fetcher.run`."""

    def __init__(
        self,
        conf: Configuration,
        options: FetchOptions,
        settings: FetchRunSettings,
        queue_ids: QueueIdResolver,
        rows: RowSource,
        callbacks: FetchCallbacks,
        transport: ScrapyTransport,
        report: FetchReport,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.options, self.report, self.log = options, report, callbacks.log
        self._settings, self._queue_ids, self._transport = settings, queue_ids, transport
        self.queues = FetchItemQueues(conf, self._loop.time)
        self.state = FetchState(options, callbacks.log, self.queues, report)
        self._store = PageStore(conf, options, callbacks.sink, callbacks.log, report.filtered_links)
        self._table_executor = ThreadPoolExecutor(1, "fetcher-table", initializer=capture_reporting())
        get_host_settings = callbacks.get_host_settings
        self._feeder = QueueFeeder(
            self.state,
            rows,
            settings.capacity,
            queue_ids,
            None if get_host_settings is None else bounded_cache(65_536)(get_host_settings),
            self._table_executor,
            self._reject,
            self._start_requests,
        )
        self._redirects = RedirectFollower(
            conf,
            self.state,
            self._store.updater,
            callbacks.lookup_row,
            queue_ids,
            self._feeder,
            self._call_in_table_thread,
            self._reject,
        )
        self._slow_requests = SlowRequestTracker(
            self.state, settings.slow_after, settings.max_slow, self._start_requests
        )
        self._backoff = QueueBackoff(conf, self.queues, report, options.deadline)
        robots = RobotsCache(conf, lambda url, limit: transport.get(url, limit=limit))
        self._robots_policy = RobotsPolicy(conf, self.state, robots, self._deny, self._fail)
        self._extra_requests = ExtraRequestGate(self.queues, robots, queue_ids)
        self._monitor = FetchMonitor(
            self.state,
            FetchLimits(self.state, ThroughputThreshold.from_conf(conf), self._wake, self._cancel_requests),
            FetchTail(conf, self.state, lambda: self._feeder.has_read_all, self._drop_queue, self._wake),
            callbacks.on_status,
            self._is_waiting,
        )
        self._renderer = None if callbacks.open_renderer is None else callbacks.open_renderer()
        self._renderer_failure: asyncio.Future[None] = self._loop.create_future()
        self._idle_event = asyncio.Event()
        self._buffer = PageBuffer(options.parse)
        self._table_lookups = 0  # requests that wait for the table
        self._wake_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancelled_tasks: set[asyncio.Task[None]] = set()  # those of _tasks cancelled after the time limit

    async def run(self) -> None:
        """Fetch until all items are processed and the last page is stored."""
        self._transport.set_extra_request_policy(self._extra_requests)
        self._monitor.log_start(self._queue_ids.mode)
        flusher = asyncio.ensure_future(self._flush_until_idle())
        helpers = [asyncio.ensure_future(self._feeder.feed()), asyncio.ensure_future(self._monitor.watch()), flusher]
        idle = asyncio.ensure_future(self._idle_event.wait())
        waiting: set[asyncio.Future[Any]] = {*helpers, idle, self._renderer_failure}
        try:
            while not idle.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # an error of the iterator or the sink stops the run
            self._buffer.end_waiting()
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
        self._monitor.log_finish()

    def _is_waiting(self) -> bool:
        """Return whether the run will progress on its own: a request will finish, or a queue will become ready."""
        if self.state.active_requests > self._table_lookups:
            return True
        return self.queues.total_size > 0 and self.queues.next_ready_time() is not None and not self._buffer.is_full

    def _wake(self) -> None:
        """Check for work after the queues were emptied."""
        self._feeder.wake()
        self._start_requests()

    def _drop_queue(self, queue_id: str) -> int:
        """Drop the waiting pages of a queue, in memory and on disk; return their number."""
        return self.queues.close_queue_by_id(queue_id) + self._feeder.drop_spilled(queue_id)

    def close(self) -> None:
        """Store the fetched pages if the run was interrupted, and release the thread and the open files."""
        self._table_executor.shutdown(wait=True, cancel_futures=True)
        try:
            if not self.options.parse:  # parsing could take long; these pages are fetched again
                self._store.store(self._buffer.take()[0])
        finally:
            self._feeder.close()
            self._store.close()

    # -- requests

    def _start_requests(self) -> None:
        """Start requests while threads and queues are free; set a timer for the next ready queue."""
        while self.state.busy_threads < self.options.threads and not self._buffer.is_full:
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
        blocked = (
            self.state.busy_threads >= self.options.threads or self._buffer.is_full
        )  # the end of that state calls this method again
        if not blocked and (at := self.queues.next_ready_time()) is not None:
            self._wake_timer = self._loop.call_at(max(at, self._loop.time() + 0.001), self._start_requests)
        if not self.state.is_feeding and not self.state.active_requests and not self.queues.total_size:
            self._idle_event.set()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task in self._cancelled_tasks:  # a cancelled task does not start the next request itself
            self._cancelled_tasks.discard(task)
            self._start_requests()

    def _cancel_requests(self) -> int:
        """Cancel the active requests and return their number; the pages stay due."""
        tasks = self._tasks - self._cancelled_tasks
        for task in tasks:
            task.cancel()
        self._cancelled_tasks |= tasks
        return len(tasks)

    async def _run_worker(self, item: FetchItem | None) -> None:
        """Fetch items as one thread of Nutch's fetcher does, as long as queues are ready."""
        try:
            while item is not None:
                self._slow_requests.start(item)
                try:
                    await self._fetch(item)
                except Exception as error:  # noqa: BLE001 - an error of one URL must not stop the others
                    self.log(f"Unexpected error for {item.url}: {type(error).__name__}: {error}")
                    self.queues.finish(item)
                    self.report.counters["FAILED"] += 1
                    reason = f"{type(error).__name__}: {error}"
                    self._finish_page(item, None, ProtocolStatus(Code.FAILED, (reason[:MAX_MESSAGE_LENGTH],)))
                finally:
                    if (
                        seconds := self._slow_requests.finish(item) - item.rendering_seconds
                    ) > self._settings.slow_after:
                        self._backoff.add_slow_seconds(item, seconds)
                self._feeder.on_request_done(item)
                is_full = self._buffer.is_full or self.state.busy_threads > self.options.threads
                item = None if is_full else self.queues.get()
        finally:
            self.state.active_requests -= 1
        self._start_requests()

    async def _fetch(self, item: FetchItem) -> None:
        queue = self.queues.get_queue(item.queue_id)
        self.log(f"fetching {item.url} (queue crawl delay={int(queue.crawl_delay * 1000)}ms)")
        if not await self._robots_policy.admit(item):
            return
        page = item.page
        if self._renderer is not None and self._renderer.is_always_rendered(item.url):
            response = await self._transport.get(item.url)
        else:
            response = await self._transport.get(item.url, page.modified_time, etag=get_stored_etag(page))
        if self._renderer is not None:
            started = self._loop.time()
            try:
                response = await self._renderer.render(item.url, response, self._extra_requests.is_allowed_by_robots)
            except NutchError as error:  # no browser is available: pages stay due
                if not self._renderer_failure.done():
                    self._renderer_failure.set_exception(error)
                await asyncio.Event().wait()  # until the run stops and cancels this task
            finally:
                item.rendering_seconds = self._loop.time() - started
        self.queues.finish(item, asap=item.url.startswith("file:"))
        status = self._finish_page(item, response)
        await self._redirects.follow(item, status)

    def _reject(self, item: FetchItem, problem: str) -> None:
        self._finish_page(item, FetchResponse(item.url, failure=FetchFailure(FailureKind.URL, problem)))

    def _fail(self, item: FetchItem, response: FetchResponse) -> None:
        self.queues.finish(item)
        self._finish_page(item, response)

    def _deny(self, item: FetchItem, counter: str) -> None:
        self.queues.finish(item, asap=True)
        self.report.counters[counter] += 1
        self.report.host_failures.add(counter, item.url)
        self._finish_page(item, None, ROBOTS_DENIED)

    async def _call_in_table_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that reads the table in the table thread."""
        self._table_lookups += 1
        try:
            return await self._loop.run_in_executor(self._table_executor, partial(function, *args, **kwargs))
        finally:
            self._table_lookups -= 1

    def _finish_page(
        self, item: FetchItem, response: FetchResponse | None, status: ProtocolStatus | None = None
    ) -> ProtocolStatus:
        """Count a finished page and pass it to the table thread."""
        report = self.report
        if response is not None:
            status = get_protocol_status(item.url, response, self._settings.max_url_length)
            report.pages += 1
            report.bytes += len(response.content)
            if response.failure is None:
                report.response_times.add(response.elapsed_ms)
                report.host_times.add(item.url, response.elapsed_ms)
                report.response_sizes.add(len(response.content))
            report.counters[LOCAL_FAILURE_COUNTER if response.is_local_failure else Code(status.code).name] += 1
            if response.failure is not None:
                report.counters[f"exception_{response.failure.kind.value}"] += 1
            report.host_failures.count_response(item.url, response, status)
            if status.code == Code.EXCEPTION:
                report.errors += 1
                self.log(f"fetch of {item.url} failed with: {status.args[0]}")
            if item.queue_id:
                failure = response.failure
                self.queues.get_queue(item.queue_id).last_status = (
                    failure.kind.value if failure else str(response.status)
                )
                self._backoff.handle_response(item, response, status)
        elif status is None:
            status = ProtocolStatus(Code.FAILED)
        self._buffer.add(FetchedPage(item, response, status))
        return status

    # -- storing

    async def _flush_until_idle(self) -> None:
        """Store pages in batches at intervals, and the rest once the run is idle."""
        while not (self._idle_event.is_set() and not self._buffer):
            await self._buffer.wait_for_batch(_FLUSH_INTERVAL)
            await self._flush()
            self._start_requests()

    async def _flush(self) -> None:
        finished, size = self._buffer.take()
        if finished:
            future = self._table_executor.submit(self._store.store, finished)
            try:
                await asyncio.wrap_future(future)
            finally:
                if future.cancel():  # not started yet, and the run stops: close() stores them
                    self._buffer.put_back(finished)
            gc_tuning.add_stored_bytes(size)
