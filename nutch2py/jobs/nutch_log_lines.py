"""Log lines that every job prints, in the wording and time format of Nutch 2."""

from __future__ import annotations

import time

from nutch2py.support.reporting import log_line


def format_time(seconds: float) -> str:
    """Return local time as ``2026-11-21 03:25:32``."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def format_duration(seconds: float) -> str:
    """Return a duration as ``00:00:19``; hours may exceed 99."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class JobLogger:
    """Logs the lines of a job (:func:`nutch2py.support.reporting.log_line`), first ``NAME: starting at …``."""

    def __init__(self, name: str, announce: bool = True) -> None:
        self.name = name
        self.started = time.time()
        if announce:
            self.log(f"starting at {format_time(self.started)}")

    def log(self, text: str) -> None:
        """Log ``NAME: text``."""
        self.log_raw(f"{self.name}: {text}")

    def log_raw(self, text: str) -> None:
        """Log a line without the job's name."""
        log_line(text)

    def log_finished(self, name: str = "", label: str = "time elapsed") -> None:
        """Log when the job finished and how long it took."""
        now = time.time()
        self.log_raw(
            f"{name or self.name}: finished at {format_time(now)}, {label}: {format_duration(now - self.started)}"
        )
