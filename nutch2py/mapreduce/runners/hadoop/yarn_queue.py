"""An application to which YARN gives nothing: it may wait for hours in a full queue, for ever for what no node has."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient
from nutch2py.support.reporting import Reporter, current_reporter, set_reporter, warn

_MAX_QUIET_WAIT = 60.0  # seconds
_DIAGNOSTICS = re.compile(rb"^\s*Diagnostics : (.+)$", re.MULTILINE)
_CONTAINERS = re.compile(rb"^Total number of containers\s*:\s*(\d+)", re.MULTILINE)
_ATTEMPTS = re.compile(rb"^(appattempt_\w+)\s", re.MULTILINE)


class YarnQueueMonitor:
    """Looks, some time after an application was submitted or started, whether it waits, and says for what."""

    def __init__(self, hadoop: HadoopClient, application: str) -> None:
        self._hadoop, self._application = hadoop, application
        self._timer = self._start_timer(self._warn_not_started)
        self._is_started = False

    def report_progress(self, *, is_working: bool) -> None:
        """Note that the application runs; ``is_working``: a task of it has done something."""
        if not self._is_started:
            self._is_started = True
            self._timer.cancel()
            self._timer = self._start_timer(self._warn_no_container)
        if is_working:
            self._timer.cancel()

    def cancel(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _start_timer(self, look: Callable[[], None]) -> threading.Timer:
        timer = threading.Timer(_MAX_QUIET_WAIT, self._run_check, [current_reporter(), look])
        timer.daemon = True
        timer.start()
        return timer

    @staticmethod
    def _run_check(taken: Reporter | None, look: Callable[[], None]) -> None:
        set_reporter(taken)
        look()

    def _query_yarn(self, *words: str) -> bytes:
        return self._hadoop.query_yarn(*words) or b""

    def _warn_not_started(self) -> None:
        found = _DIAGNOSTICS.search(self._query_yarn("application", "-status", self._application))
        why = f": {found[1].decode('utf-8', 'replace').strip()}" if found else ""
        warn(f"{self._application} has waited for {_MAX_QUIET_WAIT:g} s for YARN to start it{why}")

    def _warn_no_container(self) -> None:
        attempts = _ATTEMPTS.findall(self._query_yarn("applicationattempt", "-list", self._application))
        found = _CONTAINERS.search(self._query_yarn("container", "-list", attempts[-1].decode())) if attempts else None
        if found and int(found[1]) <= 1:
            warn(
                f"{self._application} has waited for {_MAX_QUIET_WAIT:g} s for a container for its tasks: the queue is full, or "
                "no node has room for as much as mapreduce.map.memory.mb asks for"
            )
