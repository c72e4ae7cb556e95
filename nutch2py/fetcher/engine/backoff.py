"""Backoff of a server's queue after failures: Retry-After, growing delays, or closing the queue."""

from __future__ import annotations

import time

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.support.http_date import parse_http_date

_OVERLOADED = frozenset({429, 503})
_NOT_SERVER_FAILURES = frozenset(
    {
        FailureKind.URL,
        FailureKind.ADDRESS_FILTER,
        FailureKind.SCHEME,
        FailureKind.LIMIT,
        FailureKind.ROBOTS,
        FailureKind.BROWSER,
    }
)
"""Failures that do not indicate a problem of the server."""


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
    """Adjusts the queues by response; ``deadline``: end of the fetch, in seconds since 1970."""

    def __init__(self, conf: Configuration, queues: FetchItemQueues, report: FetchReport, deadline: float) -> None:
        self._queues, self._report, self._deadline = queues, report, deadline
        self._max_retry_after = conf.get_float("fetcher.max.retry.after", 300)
        self._max_trouble = conf.get_float("fetcher.max.trouble.per.queue", 1800)

    def handle_response(self, item: FetchItem, response: FetchResponse, status: ProtocolStatus) -> None:
        """Process the response of an item; skipped pages stay due and are counted."""
        if status.code != Code.EXCEPTION:
            self._queues.record_success(item)
            return
        failure = response.failure
        is_server_failure = (
            failure.kind not in _NOT_SERVER_FAILURES
            if failure is not None
            else response.status in _OVERLOADED or response.status >= 500
        )
        self._count_skipped(
            "AboveExceptionThresholdInQueue", item, self._queues.count_exception(item, is_server_failure)
        )
        now = time.time()
        retry_after = parse_retry_after(response, now) or 0.0
        if retry_after > self._max_retry_after >= 0:
            self._count_skipped("AboveMaxRetryAfter", item, self._queues.close_queue(item))
            return
        delay = self._queues.delay_queue(item, retry_after)
        self.add_slow_seconds(item, delay)
        if delay > 0 and now + delay >= self._deadline:  # the queue would not become ready before the deadline
            self._count_skipped("HitByTimeLimit-Queues", item, self._queues.close_queue(item))

    def add_slow_seconds(self, item: FetchItem, seconds: float) -> None:
        """Count the time lost to a slow server; close its queue once the total is too high."""
        if self._queues.add_trouble_seconds(item, seconds) > self._max_trouble >= 0:
            self._count_skipped("AboveMaxTroubleInQueue", item, self._queues.close_queue(item))

    def _count_skipped(self, counter: str, item: FetchItem, dropped: int) -> None:
        if dropped:
            self._report.counters[counter] += dropped
            self._report.host_failures.add(counter, item.url, dropped)
