"""Warns about applications that wait for resources: in a full queue, or because no node is large enough."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient
from nutch2py.support.reporting import capture_reporting, warn

MAX_QUIET_WAIT = 60.0
"""Seconds that an application may wait for YARN before the wait is logged."""
_DIAGNOSTICS = re.compile(rb"^\s*Diagnostics : (.+)$", re.MULTILINE)
_CONTAINERS = re.compile(rb"^Total number of containers\s*:\s*(\d+)", re.MULTILINE)
_ATTEMPTS = re.compile(rb"^(appattempt_\w+)\s", re.MULTILINE)


class YarnQueueMonitor:
    """Checks, some time after submission or start, whether an application is waiting, and reports the reason."""

    def __init__(self, hadoop: HadoopClient, application: str) -> None:
        self._hadoop, self._application = hadoop, application
        self._timer = self._start_timer(self._warn_not_started)
        self._is_started = False

    def report_progress(self, *, is_working: bool) -> None:
        """Record that the application is running; ``is_working``: one of its tasks has made progress."""
        if not self._is_started:
            self._is_started = True
            self._timer.cancel()
            self._timer = self._start_timer(self._warn_no_container)
        if is_working:
            self._timer.cancel()

    def cancel(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _start_timer(self, look: Callable[[], None]) -> threading.Timer:
        timer = threading.Timer(MAX_QUIET_WAIT, self._run_check, [capture_reporting(), look])
        timer.daemon = True
        timer.start()
        return timer

    @staticmethod
    def _run_check(use_context: Callable[[], None], look: Callable[[], None]) -> None:
        use_context()
        look()

    def _query_yarn(self, *words: str) -> bytes:
        return self._hadoop.query_yarn(*words) or b""

    def _warn_not_started(self) -> None:
        found = _DIAGNOSTICS.search(self._query_yarn("application", "-status", self._application))
        why = f": {found[1].decode('utf-8', 'replace').strip()}" if found else ""
        warn(f"{self._application} has waited for {MAX_QUIET_WAIT:g} s for YARN to start it{why}")

    def _warn_no_container(self) -> None:
        attempts = _ATTEMPTS.findall(self._query_yarn("applicationattempt", "-list", self._application))
        found = _CONTAINERS.search(self._query_yarn("container", "-list", attempts[-1].decode())) if attempts else None
        if found and int(found[1]) <= 1:
            warn(
                f"{self._application} has waited for {MAX_QUIET_WAIT:g} s for a container for its tasks: "
                "the queue is full, or no node has as much memory as mapreduce.map.memory.mb requests"
            )
