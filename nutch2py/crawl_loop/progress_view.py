"""What is seen of a crawl while it runs: a few lines that change on a terminal, else a line now and then."""

from __future__ import annotations

import os
import shutil
import time
from typing import TextIO

from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.support.formatting import format_duration
from nutch2py.support.reporting import Progress

_REDRAW_SECONDS = 0.2  # seconds between two pictures
_LINE_SECONDS = 30.0  # seconds between two lines about one job
_BAR_WIDTH = 24  # characters
JOB_LABELS = {
    "generate": "choosing what to fetch",
    "fetch": "fetching",
    "parse": "parsing",
    "updatedb": "taking in links",
    "index": "indexing",
    "pagerank": "ranking",
    "scores": "telling the index of ranks",
    "dedup": "looking for duplicates",
    "clean": "cleaning the index",
}
"""What each job does, for people."""


def create_view(stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> ProgressView:
    """Return the view for a stream. ``every_line``: with all that the jobs say; ``quiet``: warnings and the end."""
    if every_line or quiet or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return ProgressView(stream, every_line=every_line, quiet=quiet)
    return LiveProgressView(stream)


class ProgressView:
    """Lines, one after the other."""

    def __init__(self, stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> None:
        self._stream, self._every_line, self._quiet = stream, every_line, quiet
        self.totals = CounterTotals()
        self._job, self._url_count, self._started, self._url = "", 0, 0, ""
        self._notes = ""
        self._next_refresh = 0.0

    def print_line(self, text: str) -> None:
        """Print lines that stay."""
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        try:
            self._stream.write(f"{text}\n")
            self._stream.flush()
        except OSError as error:
            error.filename = error.filename or "standard output"  # said to whom it ends
            raise

    def on_warning(self, message: str) -> None:
        """Take a warning."""
        self._print(f"WARN {message}")

    def start_job(self, job: str, urls: int = 0) -> None:
        """Note that a job begins, on so many URLs."""
        self._job, self._url_count, self._started, self._url, self._notes = job, urls, 0, "", ""
        self._next_refresh = time.monotonic() + _LINE_SECONDS

    def on_line(self, text: str) -> None:
        """Take a line of a job's log."""
        if self._every_line:
            self._print(text)
        if text.startswith("fetching "):
            self._started += 1
            self._url = text.split(" ", 2)[1]

    def on_progress(self, progress: Progress) -> None:
        """Take word of how far a job is."""
        self._notes = ", ".join(progress.notes)
        if self._job != "fetch":
            self._started = progress.rows
        self._refresh()

    def _refresh(self) -> None:
        if self._quiet or self._every_line or time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + _LINE_SECONDS
        self._print(f"  {self._state_text()}")

    def _state_text(self) -> str:
        of = f" {min(self._started, self._url_count):,} of {self._url_count:,}" if self._url_count else ""
        return f"{JOB_LABELS.get(self._job, self._job)}{of}" + (f": {self._notes}" if self._notes else "")

    def close(self) -> None:
        """End; what is printed from now on comes after all else."""


class LiveProgressView(ProgressView):
    """A few lines at the end of a terminal that are drawn anew; what stays scrolls above them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._drawn_lines = 0

    def _print(self, text: str) -> None:
        self._erase()
        super()._print(text)

    def start_job(self, job: str, urls: int = 0) -> None:
        """Note that a job begins, on so many URLs."""
        super().start_job(job, urls)
        self._next_refresh = 0.0
        self._refresh()

    def on_line(self, text: str) -> None:
        """Take a line of a job's log."""
        super().on_line(text)
        self._refresh()

    def close(self) -> None:
        """Take the lines that change away."""
        self._erase()
        self._stream.flush()

    def _refresh(self) -> None:
        if time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + _REDRAW_SECONDS
        width = max(20, shutil.get_terminal_size().columns - 1)
        lines = [line[:width] for line in self._build_lines(width)]
        self._erase()
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._drawn_lines = len(lines)

    def _build_lines(self, width: int) -> list[str]:
        tally = self.totals
        found, new = tally.link_counts
        total = f"{format_duration(1000 * tally.elapsed_seconds)}: {tally.format_summary()}"
        bar = ""
        if self._url_count:
            done = min(self._started, self._url_count) * _BAR_WIDTH // self._url_count
            bar = f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] "
        return [
            "-" * width,
            f"{total}; {found:,} links, {new:,} of them new" if found else total,
            f"round {tally.rounds + 1}: {bar}{self._state_text()}",
            self._url,
        ]

    def _erase(self) -> None:
        if self._drawn_lines:
            self._stream.write(f"\x1b[{self._drawn_lines}A\r\x1b[J")
            self._drawn_lines = 0
