"""How a fetch goes: a line in the log every five seconds, a short one for a terminal every second.

What follows from it: the time limit and the throughput threshold.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.fetcher.fetch_state import FetchState

_INTERVAL = 5.0  # seconds between lines in the log
_LIVE = 1.0  # seconds between those for a terminal
_GRACE = 5.0  # seconds that requests under way have at the end of a fetch's time


class Throughput(NamedTuple):
    """When a fetch is too slow to go on.

    Below ``threshold`` pages per second (-1: never) more than ``sequence`` times in a row, once ``check_after`` seconds
    have passed.
    """

    threshold: int
    sequence: int
    check_after: float

    @classmethod
    def of(cls, conf: Configuration) -> Throughput:
        """Read ``fetcher.throughput.threshold.*``."""
        return cls(
            conf.get_int("fetcher.throughput.threshold.pages", -1),
            conf.get_int("fetcher.throughput.threshold.sequence", 5),
            60 * conf.get_float("fetcher.throughput.threshold.check.after", 5),
        )


class Monitor:
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
        throughput: Throughput,
        wake: Callable[[], None],
        tell: Callable[[str], None],
        waits: Callable[[], bool],
        cut: Callable[[], int],
    ) -> None:
        self._state, self._wake, self._tell, self._waits = state, wake, tell, waits
        self._cut, self._over = cut, 0.0
        self._started = time.monotonic()
        self._last = self._started
        self._last_pages = self._last_bytes = 0
        self._seen: deque[tuple[float, int, int]] = deque([(self._last, 0, 0)], maxlen=6)
        self._threshold, self._sequence = throughput.threshold, throughput.sequence
        self._check_after = self._started + throughput.check_after
        self._below = 0
        self._told: tuple[int, ...] = ()

    def begin(self, mode: str) -> None:
        """Write the lines with which a fetch begins."""
        log = self._state.log
        log(f"Using queue mode : {mode}")
        log(f"Fetcher: threads: {self._state.options.threads}")
        log(f"Fetcher: throughput threshold: {self._threshold}")
        log(f"Fetcher: throughput threshold sequence: {self._sequence}")

    def end(self) -> None:
        """Write the lines with which a fetch ends."""
        threads = self._state.options.threads
        for number in range(threads):
            self._state.log(f"-finishing thread FetcherThread{number}, activeThreads={threads - 1 - number}")
        self._report(0)
        self._tell(self.live())
        self._state.log("-activeThreads=0")

    async def watch(self) -> None:
        """Report until cancelled."""
        due = time.monotonic() + _INTERVAL
        while True:
            await asyncio.sleep(min(_LIVE, _INTERVAL))
            self._give_life()
            self._check_time()
            if time.monotonic() >= due:
                due += _INTERVAL
                self._check_throughput(self._report(self._state.options.threads))

    def _give_life(self) -> None:
        run = self._state
        moved = (run.report.pages, run.report.bytes, run.active, run.queues.total_size)
        text = self.live()
        if self._waits() or moved != self._told:
            self._told = moved
            self._tell(text)

    def live(self) -> str:
        """Return how it goes: rates of the last seconds, queues, requests, errors by kind, seconds that are left."""
        run, report, now = self._state, self._state.report, time.monotonic()
        before, pages, size = self._seen[0]
        self._seen.append((now, report.pages, report.bytes))
        since = max(0.001, now - before)
        rate = (report.pages - pages) / since
        text = (
            f"{rate:,.1f} pages/s, {(report.bytes - size) / since / 1000:,.0f} kB/s, "
            f"{len(run.queues):,} queues, {run.active} active"
        )
        left = self._left(rate)
        return text + self._errors() + (f", {left:,.0f} s left" if left is not None else "")

    def _errors(self) -> str:
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

    def _left(self, rate: float) -> float | None:
        """Return the seconds until the fetch ends, if it goes on as now and at the latest by its time limit."""
        run = self._state
        waiting = (
            max(run.options.expected - run.report.pages, run.queues.total_size)
            if run.feeding
            else run.queues.total_size
        )
        ends = [waiting / rate] if rate > 0 else []
        if run.options.deadline < float("inf"):
            ends.append(max(0.0, run.options.deadline - time.time()))
        return min(ends, default=None)

    def _report(self, threads: int) -> float:
        """Write the status line; return the pages per second since the last one."""
        run, report = self._state, self._state.report
        now = time.monotonic()
        elapsed, since = max(1.0, now - self._started), max(0.001, now - self._last)
        pages = (report.pages - self._last_pages) / since
        rate = (report.bytes - self._last_bytes) * 8 / 1024 / since
        waiting = max(0, threads - run.busy)
        line = (
            f"{waiting}/{threads} spinwaiting/active, {report.pages} pages, {report.errors} errors, "
            f"{report.pages / elapsed:.1f} {pages:.0f} pages/s, "
            f"{int(report.bytes * 8 / 1024 / elapsed)} {rate:.0f} kb/s, "
            f"{run.queues.total_size} URLs in {len(run.queues)} queues{self._errors()}"
        )
        self._last, self._last_pages, self._last_bytes = now, report.pages, report.bytes
        run.log(line)
        return pages

    def _check_time(self) -> None:
        if self._state.late:
            self._drop("HitByTimeLimit-Queues")
            now = time.monotonic()
            self._over = self._over or now
            if now >= self._over + _GRACE:  # else a server that drips would hold the fetch for http.time.limit
                self._state.report.counters["HitByTimeLimit-Queues"] += self._cut()

    def _check_throughput(self, rate: float) -> None:
        """Stop the run when it has been slower than the threshold too many times in a row."""
        if self._threshold < 0 or time.monotonic() < self._check_after:
            return
        if rate >= self._threshold:
            self._below = 0
            return
        self._below += 1
        log = self._state.log
        log(f"{self._below}: dropping below configured threshold of {self._threshold} pages per second")
        if self._below > self._sequence:
            log("Dropped below threshold too many times in a row, killing!")
            self._threshold = -1
            self._state.stopped = True
            self._drop("hitByThrougputThreshold")

    def _drop(self, counter: str) -> None:
        dropped = self._state.queues.empty()
        if dropped:
            self._state.report.counters[counter] += dropped
        self._wake()
