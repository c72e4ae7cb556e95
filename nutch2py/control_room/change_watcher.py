"""Watch: whether something has changed, asked of the log once in a while, however many look on."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import NutchError


class ChangeWatcher:
    """Knows a sign of what the newest jobs are and how far; it differs when anything has changed."""

    POLL_SECONDS = 1.0
    """Seconds for which a sign holds."""
    _JOBS_CHECKED = 20

    def __init__(self, reader: Callable[[], CrawlReader]) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._valid_until, self._fingerprint = 0.0, ""

    def fingerprint(self) -> str:
        """Return the sign, which is made anew when it is older than :attr:`PERIOD`."""
        with self._lock:
            if time.monotonic() >= self._valid_until:
                self._fingerprint = self._compute_fingerprint()
                self._valid_until = time.monotonic() + self.POLL_SECONDS
            return self._fingerprint

    def _compute_fingerprint(self) -> str:
        try:
            with self._reader() as crawl:
                entries = crawl.jobs(self._JOBS_CHECKED)
        except NutchError as error:  # no crawl yet, or its store is away: a page says so, and a change is worth a look
            return f"none {type(error).__name__}"
        told = repr([(each.id, each.state, each.rows, each.expected, each.notes, each.finish_time) for each in entries])
        return hashlib.blake2b(told.encode(), digest_size=9).hexdigest()
