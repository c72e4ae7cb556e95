"""SearchMetrics: numbers of a server's searches, by the process that ran them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple

SERVER, WORKER = "server", "worker"
"""Processes in which searches run."""


class SearchCounts(NamedTuple):
    """Numbers since the start of the server.

    ``searches``: by process and outcome (``ok``, ``error``, ``rejected``: too many waited, ``stopped``: a limit or the
    end of the worker); ``seconds``: by process, waiting included; ``waiting``: calls in or before a worker now.
    """

    searches: dict[tuple[str, str], int]
    seconds: dict[str, float]
    cpu_seconds: float
    starts: int
    waiting: int


class SearchMetrics:
    """Counts searches; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._searches: Counter[tuple[str, str]] = Counter()
        self._seconds = {SERVER: 0.0, WORKER: 0.0}
        self._cpu_seconds = 0.0
        self._starts = self._waiting = 0

    def count_search(self, process: str, outcome: str, seconds: float) -> None:
        """Count a search."""
        with self._lock:
            self._searches[process, outcome] += 1
            self._seconds[process] += seconds

    def count_start(self) -> None:
        """Count the start of a worker."""
        with self._lock:
            self._starts += 1

    def count_cpu(self, seconds: float) -> None:
        """Add the CPU time of a worker."""
        with self._lock:
            self._cpu_seconds += seconds

    def set_waiting(self, number: int) -> None:
        """Set the number of calls in or before a worker."""
        self._waiting = number

    def counts(self) -> SearchCounts:
        """Return the numbers."""
        with self._lock:
            return SearchCounts(
                dict(self._searches), dict(self._seconds), self._cpu_seconds, self._starts, self._waiting
            )
