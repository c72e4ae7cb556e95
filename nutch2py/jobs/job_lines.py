"""The log lines that every job prints, with the wording and the clock format of Nutch 2."""

from __future__ import annotations

import time

from nutch2py.reporting import tell


def clock(seconds: float) -> str:
    """Return local time as ``2026-11-21 03:25:32``."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def elapsed(seconds: float) -> str:
    """Return a duration as ``00:00:19``; hours may pass 99."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class JobLines:
    """Says a job's lines (:func:`nutch2py.reporting.tell`), ``NAME: starting at …`` when it is made."""

    def __init__(self, name: str, announce: bool = True) -> None:
        self.name = name
        self.started = time.time()
        if announce:
            self.line(f"starting at {clock(self.started)}")

    def line(self, text: str) -> None:
        """Say ``NAME: text``."""
        self.raw(f"{self.name}: {text}")

    def raw(self, text: str) -> None:
        """Say a line without the job's name."""
        tell(text)

    def finished(self, name: str = "", wording: str = "time elapsed") -> None:
        """Say when the job ended and how long it took."""
        now = time.time()
        self.raw(f"{name or self.name}: finished at {clock(now)}, {wording}: {elapsed(now - self.started)}")
