"""What a bad answer means for the queue of its server: wait as told, wait longer each time, or leave the rest."""

from __future__ import annotations

import time

from nutch2py.cells import ProtocolStatus
from nutch2py.conf import Configuration
from nutch2py.fetcher.answer import Answer, FailureKind
from nutch2py.fetcher.fetch_state import FetchReport
from nutch2py.fetcher.queues import FetchItem, FetchItemQueues
from nutch2py.schedule.http_date import parse_http_date
from nutch2py.webpage import ProtocolStatusCode as Code

_OVERLOADED = frozenset({429, 503})
_OURS = frozenset(
    {FailureKind.URL, FailureKind.GATE, FailureKind.SCHEME, FailureKind.LIMIT, FailureKind.ROBOTS, FailureKind.BROWSER}
)
"""Failures that say nothing of how the server is."""


def retry_after(answer: Answer, now: float) -> float | None:
    """Return the seconds that a 429 or 503 asks for with ``Retry-After`` (seconds or a date; RFC 9110, 10.2.3).

    ``now``: seconds since 1970. None when it asks for nothing, or cannot be read.
    """
    value = answer.header("Retry-After") if answer.status in _OVERLOADED else None
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        return max(0.0, parse_http_date(value) / 1000 - now)
    except ValueError:
        return None


class Backoff:
    """Judges answers for the queues. ``deadline``: end of the fetch, seconds since 1970; ``report``: what is left."""

    def __init__(self, conf: Configuration, queues: FetchItemQueues, report: FetchReport, deadline: float) -> None:
        self._queues, self._report, self._deadline = queues, report, deadline
        self._longest = conf.get_float("fetcher.max.retry.after", 300)
        self._most_trouble = conf.get_float("fetcher.max.trouble.per.queue", 1800)

    def judge(self, item: FetchItem, answer: Answer, status: ProtocolStatus) -> None:
        """Take in an answer: pages that are left because of it stay due, and are counted."""
        if status.code != Code.EXCEPTION:
            self._queues.good(item)
            return
        failure = answer.failure
        server = (
            failure.kind not in _OURS if failure is not None else answer.status in _OVERLOADED or answer.status >= 500
        )
        self._left("AboveExceptionThresholdInQueue", item, self._queues.count_exception(item, server))
        now = time.time()
        asked = retry_after(answer, now) or 0.0
        if asked > self._longest >= 0:
            self._left("AboveMaxRetryAfter", item, self._queues.drop(item))
            return
        wait = self._queues.put_off(item, asked)
        self.endure(item, wait)
        if wait > 0 and now + wait >= self._deadline:  # it would only wait for the end
            self._left("HitByTimeLimit-Queues", item, self._queues.drop(item))

    def endure(self, item: FetchItem, seconds: float) -> None:
        """Take in that a server takes or took so long; leave the rest of its pages when that is too much in all."""
        if self._queues.add_trouble(item, seconds) > self._most_trouble >= 0:
            self._left("AboveMaxTroubleInQueue", item, self._queues.drop(item))

    def _left(self, counter: str, item: FetchItem, dropped: int) -> None:
        if dropped:
            self._report.counters[counter] += dropped
            self._report.troubles.add(counter, item.url, dropped)
