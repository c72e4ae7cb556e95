"""Retries unavailable services, and reports outages and recoveries.

The one retry loop for HBase gateways, Solr, Elasticsearch, OpenSearch, HDFS and YARN; ``service.wait.seconds`` limits
it. A process warns once when a service becomes unavailable, and once when it has recovered, however many threads use
it. Outages of less than a second are not reported.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.support.reporting import capture_reporting, warn

_FIRST_DELAY, _MAX_DELAY = 0.25, 15.0
_MIN_REPORTED_OUTAGE = 1.0  # seconds
_SLOW_RESPONSE = 10.0
"""Seconds without a response after which the user is warned."""
_MAX_REASON_LENGTH = 160  # characters
_lock = threading.Lock()
_failed_attempts = Counter[str]()
_reported_since: dict[str, float] = {}
"""Reported outages: service -> start by :func:`time.monotonic`."""


def service_wait_seconds(conf: Configuration) -> float:
    """Return ``service.wait.seconds``: how long an unavailable service is retried."""
    return conf.get_float("service.wait.seconds", 600.0)


def reported_outages() -> list[str]:
    """Return the services whose outage was reported and is not over."""
    with _lock:
        return [*_reported_since]


def failed_attempt_count() -> int:
    """Return the number of failed attempts in this process: waiting for a service counts as activity of a task."""
    return _failed_attempts.total()


class ServiceRetry:
    """Retry state of one caller of a service; the time limit starts at the first of consecutive failures.

    Make each attempt within :meth:`attempt`, and call :meth:`wait_before_retry` after a failure.

    Args:
        service: Name and address for messages, as ``Solr at http://…``.
        max_seconds: Time limit of the retries.
        property_name: The property with the address of the service.
        first_delay: Seconds before the first retry; doubled for each further one, up to 15 s.
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
        """Make an attempt in the block; warn if it is slow. Without an error the outage is over."""
        with self.warn_if_slow():
            yield
        self.succeeded()

    @contextmanager
    def warn_if_slow(self, seconds: float = _SLOW_RESPONSE) -> Iterator[None]:
        """Warn when the block takes longer than ``seconds`` seconds."""
        since, use_context = time.monotonic(), capture_reporting()

        def warn_slow() -> None:
            use_context()
            _report_once(
                self.service,
                since,
                f"has not responded for {seconds:g} s: waiting for its response",
                self.property_name,
            )

        timer = threading.Timer(seconds, warn_slow)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def succeeded(self) -> None:
        """Record that the service has responded."""
        self._first_failure, self._delay = None, self.first_delay
        report_recovery(self.service)

    def wait_before_retry(self, reason: str, *, immediately: bool = False) -> bool:
        """Wait before the next attempt, not at all if ``immediately``; return False when the time limit is reached.

        The last attempt is made at the time limit, never earlier. ``reason``: short description of the error.
        """
        _failed_attempts[self.service] += 1
        now = time.monotonic()
        if self._first_failure is None:
            self._first_failure = now
        left = self._first_failure + self.max_seconds - now
        if left <= 0:
            if self.max_seconds > 0:  # without waiting there is no report that this caller could end
                with _lock:
                    _reported_since.pop(self.service, None)
            return False
        if self.max_seconds - left >= _MIN_REPORTED_OUTAGE or (not immediately and self._delay >= _MIN_REPORTED_OUTAGE):
            report_outage(self.service, reason, self.max_seconds, self.property_name, self._first_failure)
        if not immediately:
            time.sleep(min(self._delay * random.uniform(0.75, 1.25), left))  # noqa: S311 - jitter
            self._delay = min(self._delay * 2, _MAX_DELAY)
        return True


def report_outage(
    service: str, reason: str, seconds: float, property_name: str = "", since: float | None = None
) -> None:
    """Report that a service is unavailable, how long it is retried, and a possible cause, unless reported already."""
    short = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…"
    _report_once(service, since, f"does not respond ({short}): trying for {seconds:g} s", property_name)


def report_recovery(service: str) -> None:
    """Report that a service has recovered, if its outage was reported."""
    if not _reported_since:  # the usual case
        return
    with _lock:
        since = _reported_since.pop(service, None)
    if since is not None:
        warn(f"{service} responds again, after {time.monotonic() - since:.0f} s")


def _report_once(service: str, since: float | None, text: str, setting: str) -> None:
    with _lock:
        if service in _reported_since:
            return
        _reported_since[service] = time.monotonic() if since is None else since
    warn(f"{service} {text}{f'; is {setting} right?' if setting else ''}")
