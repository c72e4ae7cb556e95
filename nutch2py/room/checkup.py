"""The page of ``doctor``: what a crawl stands on, looked at when somebody asks, and no more often than is useful."""

from __future__ import annotations

import threading
import time

from nutch2py.conf import Configuration
from nutch2py.doctor.examination import examine
from nutch2py.doctor.finding import Finding, State
from nutch2py.room.answers import Look
from nutch2py.secrets import concealed

_KEPT = 10.0
"""Seconds for which findings hold: services that are away are tried for five."""
_ORDER = {State.BAD: 0, State.DOUBTFUL: 1, State.GOOD: 2}


class Checkup:
    """Looks at what the crawl of a configuration stands on; one look at a time, however many ask."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._until, self._found = 0.0, list[Finding]()

    def __call__(self, _: dict[str, str]) -> Look:
        """Show the findings: what is bad first."""
        found = sorted(self.findings(), key=lambda each: _ORDER[each.state])
        return Look("doctor.html", "Doctor", {"findings": found})

    def findings(self) -> list[Finding]:
        """Return what each look found, without secrets."""
        with self._lock:
            if time.monotonic() >= self._until:
                secrets = self._conf.secrets()
                found = [each._replace(told=concealed(each.told, secrets)) for each in examine(self._conf)]
                self._until, self._found = time.monotonic() + _KEPT, found
            return self._found
