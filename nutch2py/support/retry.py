"""Services that are away for a while: how long they are tried, and the lines that tell of it.

HBase's gateways, Solr, Elasticsearch, OpenSearch, HDFS and YARN are waited for here and nowhere else, for
``service.wait.seconds``. A process says one line when a service goes, and one when it is back, however many threads
ask for it; what passes within a second is not worth one.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.support.reporting import current_reporter, set_reporter, warn

_FIRST_DELAY, _MAX_DELAY = 0.25, 15.0
_MIN_REPORTED_OUTAGE = 1.0  # seconds
_SLOW_RESPONSE = 10.0
"""Seconds without an answer after which the user is told that one is waited for."""
_MAX_REASON_LENGTH = 160  # characters
_lock = threading.Lock()
_failed_attempts = Counter[str]()
_reported_since: dict[str, float] = {}
"""The services of which it was said that they are away, and since when, by :func:`time.monotonic`."""


def service_wait_seconds(conf: Configuration) -> float:
    """Return ``service.wait.seconds``: how long a service that is away is tried."""
    return conf.get_float("service.wait.seconds", 600.0)


def failed_attempt_count() -> int:
    """Return how often this process has met a service that is away: waiting for one is a sign of life, too."""
    return _failed_attempts.total()


class ServiceRetry:
    """One caller's tries at a service, as ``Solr at http://…``; the time counts from the first failure in a row.

    ``max_seconds``: for how long. ``property_name``: the property of its address. ``first_delay``: seconds before the
    second try, which double from try to try, up to 15 s. A try is made within :meth:`attempt`, and what it raises is
    told to :meth:`wait_before_retry`.
    """

    def __init__(self, service: str, max_seconds: float, property_name: str, first_delay: float = _FIRST_DELAY) -> None:
        self.service, self.max_seconds, self.property_name, self.first_delay = (
            service,
            max_seconds,
            property_name,
            first_delay,
        )
        self._first_failure: float | None = None
        self._delay = first_delay

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Try within the block, which tells when the answer is late; without an error the outage is over."""
        with self.warn_if_slow():
            yield
        self.succeeded()

    @contextmanager
    def warn_if_slow(self, seconds: float = _SLOW_RESPONSE) -> Iterator[None]:
        """Say so when the block takes longer than ``seconds`` seconds."""
        since, taken = time.monotonic(), current_reporter()

        def tell() -> None:
            set_reporter(taken)
            _report_once(
                self.service, since, f"has not answered for {seconds:g} s: waiting for its answer", self.property_name
            )

        timer = threading.Timer(seconds, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def succeeded(self) -> None:
        """Note that the service has answered."""
        self._first_failure, self._delay = None, self.first_delay
        report_recovery(self.service)

    def wait_before_retry(self, reason: str, *, immediately: bool = False) -> bool:
        """Wait before the next try, unless it may be made ``immediately``; return False when the time is over.

        The last try is made when all of the time has passed, never earlier. ``reason``: what went wrong, in a few
        words.
        """
        _failed_attempts[self.service] += 1
        now = time.monotonic()
        if self._first_failure is None:
            self._first_failure = now
        left = self._first_failure + self.max_seconds - now
        if left <= 0:
            if self.max_seconds > 0:  # who does not wait says nothing, and ends nobody's waiting
                with _lock:
                    _reported_since.pop(self.service, None)
            return False
        if self.max_seconds - left >= _MIN_REPORTED_OUTAGE or (not immediately and self._delay >= _MIN_REPORTED_OUTAGE):
            report_outage(self.service, reason, self.max_seconds, self.property_name, self._first_failure)
        if not immediately:
            time.sleep(min(self._delay * random.uniform(0.75, 1.25), left))
            self._delay = min(self._delay * 2, _MAX_DELAY)
        return True


def report_outage(
    service: str, reason: str, seconds: float, property_name: str = "", since: float | None = None
) -> None:
    """Say that a service is away, for how long it is tried, and what may be wrong, unless that was said."""
    short = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…"
    _report_once(service, since, f"does not answer ({short}): trying for {seconds:g} s", property_name)


def report_recovery(service: str) -> None:
    """Say that a service is back, if it was said that it is away."""
    if not _reported_since:  # nearly always
        return
    with _lock:
        since = _reported_since.pop(service, None)
    if since is not None:
        warn(f"{service} answers again, after {time.monotonic() - since:.0f} s")


def _report_once(service: str, since: float | None, text: str, setting: str) -> None:
    with _lock:
        if service in _reported_since:
            return
        _reported_since[service] = time.monotonic() if since is None else since
    warn(f"{service} {text}{f'; is {setting} right?' if setting else ''}")
