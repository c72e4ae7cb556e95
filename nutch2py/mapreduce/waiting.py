"""An application to which YARN gives nothing: it may wait for hours in a full queue, for ever for what no node has."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from nutch2py.mapreduce.hadoop import Hadoop
from nutch2py.reporting import Reporter, adopt, reporter, warn

_LONG = 60.0  # seconds
_DIAGNOSTICS = re.compile(rb"^\s*Diagnostics : (.+)$", re.MULTILINE)
_CONTAINERS = re.compile(rb"^Total number of containers\s*:\s*(\d+)", re.MULTILINE)
_ATTEMPTS = re.compile(rb"^(appattempt_\w+)\s", re.MULTILINE)


class Waiting:
    """Looks, some time after an application was submitted or started, whether it waits, and says for what."""

    def __init__(self, hadoop: Hadoop, application: str) -> None:
        self._hadoop, self._application = hadoop, application
        self._timer = self._begin(self._not_started)
        self._started = False

    def progress(self, *, begun: bool) -> None:
        """Note that the application runs; ``begun``: a task of it has done something."""
        if not self._started:
            self._started = True
            self._timer.cancel()
            self._timer = self._begin(self._no_container)
        if begun:
            self._timer.cancel()

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _begin(self, look: Callable[[], None]) -> threading.Timer:
        timer = threading.Timer(_LONG, self._reporting, [reporter(), look])
        timer.daemon = True
        timer.start()
        return timer

    @staticmethod
    def _reporting(taken: Reporter | None, look: Callable[[], None]) -> None:
        adopt(taken)
        look()

    def _ask(self, *words: str) -> bytes:
        return self._hadoop.ask(*words) or b""

    def _not_started(self) -> None:
        found = _DIAGNOSTICS.search(self._ask("application", "-status", self._application))
        why = f": {found[1].decode('utf-8', 'replace').strip()}" if found else ""
        warn(f"{self._application} has waited for {_LONG:g} s for YARN to start it{why}")

    def _no_container(self) -> None:
        attempts = _ATTEMPTS.findall(self._ask("applicationattempt", "-list", self._application))
        found = _CONTAINERS.search(self._ask("container", "-list", attempts[-1].decode())) if attempts else None
        if found and int(found[1]) <= 1:
            warn(
                f"{self._application} has waited for {_LONG:g} s for a container for its tasks: the queue is full, or "
                "no node has room for as much as mapreduce.map.memory.mb asks for"
            )
