"""Monitor of a fetch: a log line every five seconds and a status line for the terminal every second."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from nutch2py.fetcher.engine.fetch_limits import FetchLimits
from nutch2py.fetcher.engine.fetch_tail import FetchTail
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.queue_snapshot import snapshot_queues

LOG_INTERVAL = 5.0
"""Seconds between log lines."""
STATUS_INTERVAL = 1.0
"""Seconds between status lines."""


class FetchMonitor:
    """Watches a run and writes the log lines of Nutch's fetcher.

    A status line is also the sign of life of the task. It is sent while the run waits for servers or queues, or has
    made progress. A run that only waits for the table sends none, so that a hung task can be detected and killed.

    Args:
        state: Progress of the fetch.
        limits: Time limit and minimum throughput, which are checked between status lines.
        tail: Ends a fetch that only waits for a few hosts.
        on_status: Receives the status line.
        is_waiting: Returns whether the run will progress on its own.
    """

    def __init__(
        self,
        state: FetchState,
        limits: FetchLimits,
        tail: FetchTail,
        on_status: Callable[[str], None],
        is_waiting: Callable[[], bool],
    ) -> None:
        self._state, self._limits, self._tail, self._on_status = state, limits, tail, on_status
        self._is_waiting = is_waiting
        self._started = time.monotonic()
        self._last_logged_at = self._started
        self._last_pages = self._last_bytes = 0
        self._samples: deque[tuple[float, int, int]] = deque([(self._last_logged_at, 0, 0)], maxlen=6)
        self._last_progress: tuple[int, ...] = ()
        self._next_snapshot = 0.0

    def log_start(self, mode: str) -> None:
        """Write the first log lines of a fetch."""
        log = self._state.log
        log(f"Using queue mode : {mode}")
        log(f"Fetcher: threads: {self._state.options.threads}")
        log(f"Fetcher: throughput threshold: {self._limits.throughput.pages_per_second}")
        log(f"Fetcher: throughput threshold sequence: {self._limits.throughput.max_below}")

    def log_finish(self) -> None:
        """Write the last log lines of a fetch."""
        threads = self._state.options.threads
        for number in range(threads):
            self._state.log(f"-finishing thread FetcherThread{number}, activeThreads={threads - 1 - number}")
        self._log_status(0)
        self._on_status(self.status_line())
        self._state.log("-activeThreads=0")

    async def watch(self) -> None:
        """Report until cancelled."""
        due = time.monotonic() + LOG_INTERVAL
        while True:
            await asyncio.sleep(min(STATUS_INTERVAL, LOG_INTERVAL))
            self._send_progress()
            self._limits.check_deadline()
            self._tail.check()
            if time.monotonic() >= due:
                due += LOG_INTERVAL
                self._limits.check_throughput(self._log_status(self._state.options.threads))

    def _send_progress(self) -> None:
        state = self._state
        progress = (state.report.pages, state.report.bytes, state.active_requests, state.queues.total_size)
        text = self.status_line()
        self._snapshot_queues()
        if self._is_waiting() or progress != self._last_progress:
            self._last_progress = progress
            self._on_status(text)

    def _snapshot_queues(self) -> None:
        """Take a snapshot of the queues, so seldom that it costs less than a hundredth of the time."""
        started = time.monotonic()
        if started >= self._next_snapshot:
            self._state.report.queues = snapshot_queues(self._state.queues)
            self._next_snapshot = started + 100 * (time.monotonic() - started)

    def status_line(self) -> str:
        """Return recent rates, queues, requests, errors by kind and the remaining time in seconds."""
        state, report, now = self._state, self._state.report, time.monotonic()
        before, pages, size = self._samples[0]
        self._samples.append((now, report.pages, report.bytes))
        since = max(0.001, now - before)
        rate = (report.pages - pages) / since
        text = (
            f"{rate:,.1f} pages/s, {(report.bytes - size) / since / 1000:,.0f} kB/s, "
            f"{len(state.queues):,} queues, {state.active_requests} active"
        )
        remaining = self._seconds_left(rate)
        text += self._format_hold()
        return text + self._format_errors() + (f", {remaining:,.0f} s left" if remaining is not None else "")

    def _format_hold(self) -> str:
        """Return for which host a fetch without requests waits, how long and why."""
        queue = None if self._state.active_requests else self._state.queues.next_queue()
        seconds = 0.0 if queue is None else queue.next_fetch_time - self._state.queues.clock()
        if queue is None or seconds < 1:
            return ""
        reason = f" ({queue.hold_reason})" if queue.held_until >= queue.next_fetch_time else ""
        return f", waiting {seconds:,.0f} s for {queue.id}{reason}"

    def _format_errors(self) -> str:
        """Return the failures by kind, most frequent first."""
        kinds = [
            (count, name.removeprefix("exception_"))
            for name, count in self._state.report.counters.items()
            if name.startswith("exception_")
        ]
        http_errors = self._state.report.errors - sum(count for count, _ in kinds)
        kinds += [(http_errors, "HTTP status")] if http_errors > 0 else []
        return (
            f", errors: {', '.join(f'{count:,} {kind}' for count, kind in sorted(kinds, reverse=True))}"
            if kinds
            else ""
        )

    def _seconds_left(self, rate: float) -> float | None:
        """Return the estimated remaining time in seconds, at most until the time limit."""
        state = self._state
        waiting = (
            max(state.options.expected_pages - state.report.pages, state.queues.total_size)
            if state.is_feeding
            else state.queues.total_size
        )
        ends = [waiting / rate] if rate > 0 else []
        if state.options.deadline < float("inf"):
            ends.append(max(0.0, state.options.deadline - time.time()))
        return min(ends, default=None)

    def _log_status(self, threads: int) -> float:
        """Write the status line; return the pages per second since the previous one."""
        state, report = self._state, self._state.report
        now = time.monotonic()
        elapsed, since = max(1.0, now - self._started), max(0.001, now - self._last_logged_at)
        pages = (report.pages - self._last_pages) / since
        rate = (report.bytes - self._last_bytes) * 8 / 1024 / since
        waiting = max(0, threads - state.busy_threads)
        message = (
            f"{waiting}/{threads} spinwaiting/active, {report.pages} pages, {report.errors} errors, "
            f"{report.pages / elapsed:.1f} {pages:.0f} pages/s, "
            f"{int(report.bytes * 8 / 1024 / elapsed)} {rate:.0f} kb/s, "
            f"{state.queues.total_size} URLs in {len(state.queues)} queues{self._format_errors()}"
        )
        self._last_logged_at, self._last_pages, self._last_bytes = now, report.pages, report.bytes
        state.log(message)
        return pages
