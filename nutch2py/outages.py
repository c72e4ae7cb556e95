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

from nutch2py.conf import Configuration
from nutch2py.reporting import adopt, reporter, warn

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 15.0
_WORTH_SAYING = 1.0  # seconds
_SILENCE = 10.0
"""Seconds without an answer after which the user is told that one is waited for."""
_LONGEST_WHY = 160  # characters
_lock = threading.Lock()
_tries = Counter[str]()
_told: dict[str, float] = {}
"""The services of which it was said that they are away, and since when, by :func:`time.monotonic`."""


def service_wait(conf: Configuration) -> float:
    """Return ``service.wait.seconds``: how long a service that is away is tried."""
    return conf.get_float("service.wait.seconds", 600.0)


def tries() -> int:
    """Return how often this process has met a service that is away: waiting for one is a sign of life, too."""
    return _tries.total()


class Outage:
    """One caller's tries at a service, as ``Solr at http://…``; the time counts from the first failure in a row.

    ``seconds``: for how long. ``setting``: the property of its address. ``first``: seconds before the second try, which
    double from try to try, up to 15 s.
    A try is made within :meth:`asking`, and what it raises is told to :meth:`failed`.
    """

    def __init__(self, service: str, seconds: float, setting: str, first: float = _FIRST_WAIT) -> None:
        self.service, self.seconds, self.setting, self.first = service, seconds, setting, first
        self._began: float | None = None
        self._wait = first

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Try within the block, which tells when the answer is late; without an error the outage is over."""
        with self.listening():
            yield
        self.over()

    @contextmanager
    def listening(self, silence: float = _SILENCE) -> Iterator[None]:
        """Say so when the block takes longer than ``silence`` seconds."""
        since, taken = time.monotonic(), reporter()

        def tell() -> None:
            adopt(taken)
            _tell(self.service, since, f"has not answered for {silence:g} s: waiting for its answer", self.setting)

        timer = threading.Timer(silence, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def over(self) -> None:
        """Note that the service has answered."""
        self._began, self._wait = None, self.first
        ends(self.service)

    def failed(self, why: str, *, at_once: bool = False) -> bool:
        """Wait before the next try, unless it may be made ``at_once``; return False when the time is over.

        The last try is made when all of the time has passed, never earlier. ``why``: what went wrong, in a few words.
        """
        _tries[self.service] += 1
        now = time.monotonic()
        if self._began is None:
            self._began = now
        left = self._began + self.seconds - now
        if left <= 0:
            if self.seconds > 0:  # who does not wait says nothing, and ends nobody's waiting
                with _lock:
                    _told.pop(self.service, None)
            return False
        if self.seconds - left >= _WORTH_SAYING or (not at_once and self._wait >= _WORTH_SAYING):
            begins(self.service, why, self.seconds, self.setting, self._began)
        if not at_once:
            time.sleep(min(self._wait * random.uniform(0.75, 1.25), left))
            self._wait = min(self._wait * 2, _LONGEST_WAIT)
        return True


def begins(service: str, why: str, seconds: float, setting: str = "", since: float | None = None) -> None:
    """Say that a service is away, for how long it is tried, and what may be wrong, unless that was said."""
    short = why if len(why) <= _LONGEST_WHY else f"{why[: _LONGEST_WHY - 1]}…"
    _tell(service, since, f"does not answer ({short}): trying for {seconds:g} s", setting)


def ends(service: str) -> None:
    """Say that a service is back, if it was said that it is away."""
    if not _told:  # nearly always
        return
    with _lock:
        since = _told.pop(service, None)
    if since is not None:
        warn(f"{service} answers again, after {time.monotonic() - since:.0f} s")


def _tell(service: str, since: float | None, text: str, setting: str) -> None:
    with _lock:
        if service in _told:
            return
        _told[service] = time.monotonic() if since is None else since
    warn(f"{service} {text}{f'; is {setting} right?' if setting else ''}")
