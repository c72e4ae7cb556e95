"""The log lines that every job prints, with the wording and the clock format of Nutch 2."""

from __future__ import annotations

import time

from nutch2py.support.reporting import log_line


def format_time(seconds: float) -> str:
    """Return local time as ``2026-11-21 03:25:32``."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def format_duration(seconds: float) -> str:
    """Return a duration as ``00:00:19``; hours may pass 99."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class JobLogger:
    """Says a job's lines (:func:`nutch2py.support.reporting.log_line`), ``NAME: starting at …`` when it is made."""

    def __init__(self, name: str, announce: bool = True) -> None:
        self.name = name
        self.started = time.time()
        if announce:
            self.log(f"starting at {format_time(self.started)}")

    def log(self, text: str) -> None:
        """Say ``NAME: text``."""
        self.log_raw(f"{self.name}: {text}")

    def log_raw(self, text: str) -> None:
        """Say a line without the job's name."""
        log_line(text)

    def log_finished(self, name: str = "", label: str = "time elapsed") -> None:
        """Say when the job ended and how long it took."""
        now = time.time()
        self.log_raw(
            f"{name or self.name}: finished at {format_time(now)}, {label}: {format_duration(now - self.started)}"
        )
