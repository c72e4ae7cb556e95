"""How a fetch goes: a line in the log every five seconds, a short one for a terminal every second.

What follows from it: the time limit and the throughput threshold.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchState

_LOG_INTERVAL = 5.0  # seconds between lines in the log
_STATUS_INTERVAL = 1.0  # seconds between those for a terminal
_GRACE_SECONDS = 5.0  # seconds that requests under way have at the end of a fetch's time


class ThroughputThreshold(NamedTuple):
    """When a fetch is too slow to go on.

    Below ``pages_per_second`` pages per second (-1: never) more than ``max_below`` times in a row, once ``check_after`` seconds
    have passed.
    """

    pages_per_second: int
    max_below: int
    check_after: float

    @classmethod
    def from_conf(cls, conf: Configuration) -> ThroughputThreshold:
        """Read ``fetcher.throughput.threshold.*``."""
        return cls(
            conf.get_int("fetcher.throughput.threshold.pages", -1),
            conf.get_int("fetcher.throughput.threshold.sequence", 5),
            60 * conf.get_float("fetcher.throughput.threshold.check.after", 5),
        )


class FetchMonitor:
    """Watches a run and writes its log lines, in the words of Nutch's fetcher.

    ``wake`` makes the run look again whether there is anything to do; ``cut`` ends the requests under way and returns
    how many those were; ``tell`` takes the line for a terminal, which is
    the task's sign of life as well: it is told as long as the run ``waits`` for servers or for their time to come, or
    something has moved. A run that waits for nothing but the table says nothing, so that one that hangs there can be
    found and ended.
    """

    def __init__(
        self,
        state: FetchState,
        throughput: ThroughputThreshold,
        wake: Callable[[], None],
        on_status: Callable[[str], None],
        is_waiting: Callable[[], bool],
        cancel_requests: Callable[[], int],
    ) -> None:
        self._state, self._wake, self._on_status, self._is_waiting = state, wake, on_status, is_waiting
        self._cancel_requests, self._deadline_passed_at = cancel_requests, 0.0
        self._started = time.monotonic()
        self._last_logged_at = self._started
        self._last_pages = self._last_bytes = 0
        self._samples: deque[tuple[float, int, int]] = deque([(self._last_logged_at, 0, 0)], maxlen=6)
        self._threshold, self._max_below = throughput.pages_per_second, throughput.max_below
        self._check_after = self._started + throughput.check_after
        self._below_count = 0
        self._last_progress: tuple[int, ...] = ()

    def log_start(self, mode: str) -> None:
        """Write the lines with which a fetch begins."""
        log = self._state.log
        log(f"Using queue mode : {mode}")
        log(f"Fetcher: threads: {self._state.options.threads}")
        log(f"Fetcher: throughput threshold: {self._threshold}")
        log(f"Fetcher: throughput threshold sequence: {self._max_below}")

    def log_finish(self) -> None:
        """Write the lines with which a fetch ends."""
        threads = self._state.options.threads
        for number in range(threads):
            self._state.log(f"-finishing thread FetcherThread{number}, activeThreads={threads - 1 - number}")
        self._log_status(0)
        self._on_status(self.status_line())
        self._state.log("-activeThreads=0")

    async def watch(self) -> None:
        """Report until cancelled."""
        due = time.monotonic() + _LOG_INTERVAL
        while True:
            await asyncio.sleep(min(_STATUS_INTERVAL, _LOG_INTERVAL))
            self._send_progress()
            self._check_deadline()
            if time.monotonic() >= due:
                due += _LOG_INTERVAL
                self._check_throughput(self._log_status(self._state.options.threads))

    def _send_progress(self) -> None:
        run = self._state
        moved = (run.report.pages, run.report.bytes, run.active_requests, run.queues.total_size)
        text = self.status_line()
        if self._is_waiting() or moved != self._last_progress:
            self._last_progress = moved
            self._on_status(text)

    def status_line(self) -> str:
        """Return how it goes: rates of the last seconds, queues, requests, errors by kind, seconds that are left."""
        run, report, now = self._state, self._state.report, time.monotonic()
        before, pages, size = self._samples[0]
        self._samples.append((now, report.pages, report.bytes))
        since = max(0.001, now - before)
        rate = (report.pages - pages) / since
        text = (
            f"{rate:,.1f} pages/s, {(report.bytes - size) / since / 1000:,.0f} kB/s, "
            f"{len(run.queues):,} queues, {run.active_requests} active"
        )
        left = self._seconds_left(rate)
        return text + self._format_errors() + (f", {left:,.0f} s left" if left is not None else "")

    def _format_errors(self) -> str:
        """Return the failures by kind, the most frequent first."""
        kinds = [
            (count, name.removeprefix("exception_"))
            for name, count in self._state.report.counters.items()
            if name.startswith("exception_")
        ]
        answered = self._state.report.errors - sum(count for count, _ in kinds)
        kinds += [(answered, "HTTP status")] if answered > 0 else []
        return (
            f", errors: {', '.join(f'{count:,} {kind}' for count, kind in sorted(kinds, reverse=True))}"
            if kinds
            else ""
        )

    def _seconds_left(self, rate: float) -> float | None:
        """Return the seconds until the fetch ends, if it goes on as now and at the latest by its time limit."""
        run = self._state
        waiting = (
            max(run.options.expected_pages - run.report.pages, run.queues.total_size)
            if run.is_feeding
            else run.queues.total_size
        )
        ends = [waiting / rate] if rate > 0 else []
        if run.options.deadline < float("inf"):
            ends.append(max(0.0, run.options.deadline - time.time()))
        return min(ends, default=None)

    def _log_status(self, threads: int) -> float:
        """Write the status line; return the pages per second since the last one."""
        run, report = self._state, self._state.report
        now = time.monotonic()
        elapsed, since = max(1.0, now - self._started), max(0.001, now - self._last_logged_at)
        pages = (report.pages - self._last_pages) / since
        rate = (report.bytes - self._last_bytes) * 8 / 1024 / since
        waiting = max(0, threads - run.busy_threads)
        line = (
            f"{waiting}/{threads} spinwaiting/active, {report.pages} pages, {report.errors} errors, "
            f"{report.pages / elapsed:.1f} {pages:.0f} pages/s, "
            f"{int(report.bytes * 8 / 1024 / elapsed)} {rate:.0f} kb/s, "
            f"{run.queues.total_size} URLs in {len(run.queues)} queues{self._format_errors()}"
        )
        self._last_logged_at, self._last_pages, self._last_bytes = now, report.pages, report.bytes
        run.log(line)
        return pages

    def _check_deadline(self) -> None:
        if self._state.is_past_deadline:
            self._drop_waiting("HitByTimeLimit-Queues")
            now = time.monotonic()
            self._deadline_passed_at = self._deadline_passed_at or now
            if (
                now >= self._deadline_passed_at + _GRACE_SECONDS
            ):  # else a server that drips would hold the fetch for http.time.limit
                self._state.report.counters["HitByTimeLimit-Queues"] += self._cancel_requests()

    def _check_throughput(self, rate: float) -> None:
        """Stop the run when it has been slower than the threshold too many times in a row."""
        if self._threshold < 0 or time.monotonic() < self._check_after:
            return
        if rate >= self._threshold:
            self._below_count = 0
            return
        self._below_count += 1
        log = self._state.log
        log(f"{self._below_count}: dropping below configured threshold of {self._threshold} pages per second")
        if self._below_count > self._max_below:
            log("Dropped below threshold too many times in a row, killing!")
            self._threshold = -1
            self._state.is_stopped = True
            self._drop_waiting("hitByThrougputThreshold")

    def _drop_waiting(self, counter: str) -> None:
        dropped = self._state.queues.drop_all()
        if dropped:
            self._state.report.counters[counter] += dropped
        self._wake()
