"""Backoff of a queue after failures: exponential delays, Retry-After, or closing the queue for this batch."""

from __future__ import annotations

import time

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FailureOrigin, FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.support.http_date import parse_http_date

_OVERLOADED = frozenset({429, 503})


def parse_retry_after(response: FetchResponse, now: float) -> float | None:
    """Return the delay requested by ``Retry-After`` of a 429 or 503, in seconds (RFC 9110, 10.2.3).

    Args:
        response: Response of the server.
        now: Current time, in seconds since 1970.

    Returns:
        The delay, or None if the header is missing or malformed.
    """
    value = response.get_header("Retry-After") if response.status in _OVERLOADED else None
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        return max(0.0, parse_http_date(value) / 1000 - now)
    except ValueError:
        return None


class QueueBackoff:
    """Delays or closes the queue of a failing server.

    Args:
        conf: Configuration with ``fetcher.*``.
        queues: The queues of the run.
        report: Receives the numbers of skipped pages.
        deadline: End of the fetch, in seconds since 1970.
    """

    def __init__(self, conf: Configuration, queues: FetchItemQueues, report: FetchReport, deadline: float) -> None:
        self._queues, self._report, self._deadline = queues, report, deadline
        self._max_exceptions = conf.get_int("fetcher.max.exceptions.per.queue", -1)
        self._exception_delay = conf.get_float(
            "fetcher.exceptions.per.queue.delay", conf.get_float("fetcher.server.delay", 5.0)
        )
        self._max_retry_after = conf.get_float("fetcher.max.retry.after", 300)
        self._max_trouble = conf.get_float("fetcher.max.trouble.per.queue", 1800)

    def handle_response(self, item: FetchItem, response: FetchResponse, status: ProtocolStatus) -> None:
        """Process the response of an item; skipped pages stay due and are counted."""
        if status.code != Code.EXCEPTION:
            self._queues.get_queue(item.queue_id).failures_in_row = 0
            return
        failure = response.failure
        if failure is not None and failure.is_local and failure.kind != FailureKind.SOCKET:  # sockets may become free
            return
        is_server_failure = (
            failure.kind.origin is not FailureOrigin.PAGE
            if failure is not None
            else response.status in _OVERLOADED or response.status >= 500
        )
        self._count_skipped("AboveExceptionThresholdInQueue", item, self.count_exception(item, is_server_failure))
        now = time.time()
        retry_after = parse_retry_after(response, now) or 0.0
        if retry_after > self._max_retry_after >= 0:
            self._count_skipped("AboveMaxRetryAfter", item, self._queues.close_queue(item))
            return
        delay = self._queues.delay_queue(item, retry_after)
        self.add_slow_seconds(item, delay)
        if delay > 0 and now + delay >= self._deadline:  # the queue would not become ready before the deadline
            self._count_skipped("HitByTimeLimit-Queues", item, self._queues.close_queue(item))

    def count_exception(self, item: FetchItem, is_server_failure: bool = True) -> int:
        """Count a failure; return the number of items dropped because of too many failures.

        A failure of the server delays the queue by ``fetcher.exceptions.per.queue.delay``, which doubles with each
        consecutive failure up to ``fetcher.exceptions.per.queue.clear.after``.
        """
        queue, now = self._queues.get_queue(item.queue_id), self._queues.clock()
        if now >= queue.last_exception_at + self._queues.forget_failures_after:
            queue.exceptions = queue.failures_in_row = 0
        queue.exceptions += 1
        queue.last_exception_at = now
        if is_server_failure:
            queue.failures_in_row += 1
            delay = self._exception_delay * 2 ** min(queue.failures_in_row - 1, 30)
            delay = max(0.0, min(delay, self._queues.forget_failures_after))
            if delay > 0:
                queue.hold(max(queue.next_fetch_time, now) + delay, "failures of the server")
        if self._max_exceptions < 0 or queue.exceptions < self._max_exceptions or queue.is_closed:
            return 0
        return self._queues.close_queue(item)

    def add_slow_seconds(self, item: FetchItem, seconds: float) -> None:
        """Count the time lost to a slow server; close its queue if that is too much and most of the time."""
        queue = self._queues.get_queue(item.queue_id)
        queue.trouble_seconds += seconds
        is_mostly_slow = 2 * queue.trouble_seconds > self._queues.clock() - queue.started_at
        if is_mostly_slow and queue.trouble_seconds > self._max_trouble >= 0:
            self._count_skipped("AboveMaxTroubleInQueue", item, self._queues.close_queue(item))

    def _count_skipped(self, counter: str, item: FetchItem, dropped: int) -> None:
        if dropped:
            self._report.counters[counter] += dropped
            self._report.host_failures.add(counter, item.url, dropped)
