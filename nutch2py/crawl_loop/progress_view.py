"""Progress display of a crawl: a few live lines on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import os
import shutil
import time
from typing import TextIO

from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.support.formatting import format_duration
from nutch2py.support.reporting import Progress
from nutch2py.support.terminal import StyledText, escape_controls

_REDRAW_SECONDS = 0.2  # between two updates of the live lines
_LINE_SECONDS = 30.0  # between two lines about one job
_BAR_WIDTH = 24  # characters
JOB_LABELS = {
    "generate": "selecting URLs",
    "fetch": "fetching",
    "parse": "parsing",
    "updatedb": "updating the table",
    "index": "indexing",
    "pagerank": "ranking",
    "scores": "updating scores in the index",
    "dedup": "finding duplicates",
    "clean": "cleaning the index",
}
"""Labels of the jobs in the display."""


def create_view(stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> ProgressView:
    """Return the view for a stream. ``every_line``: show the job logs; ``quiet``: only warnings and the summary."""
    if every_line or quiet or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return ProgressView(stream, every_line=every_line, quiet=quiet)
    return LiveProgressView(stream)


class ProgressView:
    """Prints lines, without live updates."""

    def __init__(self, stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> None:
        self._stream, self._every_line, self._quiet = stream, every_line, quiet
        self.totals = CounterTotals()
        self._job, self._url_count, self._started, self._url = "", 0, 0, ""
        self._notes = ""
        self._next_refresh = 0.0

    def print_line(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        try:
            self._stream.write(f"{text}\n")
            self._stream.flush()
        except OSError as error:
            error.filename = error.filename or "standard output"  # for the error message
            raise

    def on_warning(self, message: str) -> None:
        """Print a warning."""
        self._print(f"WARN {message}")

    def start_job(self, job: str, urls: int = 0) -> None:
        """Start the display of a job on ``urls`` URLs, 0 if unknown."""
        self._job, self._url_count, self._started, self._url, self._notes = job, urls, 0, "", ""
        self._next_refresh = time.monotonic() + _LINE_SECONDS

    def on_line(self, text: str) -> None:
        """Handle a line of a job's log."""
        if self._every_line:
            self._print(text)
        if text.startswith("fetching "):
            self._started += 1
            self._url = text.split(" ", 2)[1]

    def on_progress(self, progress: Progress) -> None:
        """Handle the progress of a job."""
        self._notes = ", ".join(progress.notes)
        if self._job != "fetch":
            self._started = progress.rows
        self._refresh()

    def _refresh(self) -> None:
        if self._quiet or self._every_line or not self._job or time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + _LINE_SECONDS
        self._print(f"  {self._state_text()}")

    def _state_text(self) -> str:
        of = f" {min(self._started, self._url_count):,} of {self._url_count:,}" if self._url_count else ""
        return f"{JOB_LABELS.get(self._job, self._job)}{of}" + (f": {self._notes}" if self._notes else "")

    def close(self) -> None:
        """Close the display before other output."""


class LiveProgressView(ProgressView):
    """A few live lines at the bottom of a terminal, which are redrawn; permanent lines scroll above them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._drawn_lines = 0

    def _print(self, text: str) -> None:
        self._erase()
        super()._print(text)

    def start_job(self, job: str, urls: int = 0) -> None:
        """Start the display of a job on ``urls`` URLs, 0 if unknown."""
        super().start_job(job, urls)
        self._next_refresh = 0.0
        self._refresh()

    def on_line(self, text: str) -> None:
        """Handle a line of a job's log."""
        super().on_line(text)
        self._refresh()

    def close(self) -> None:
        """Erase the live lines."""
        self._erase()
        self._stream.flush()

    def _refresh(self) -> None:
        if time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + _REDRAW_SECONDS
        width = max(20, shutil.get_terminal_size().columns - 1)
        lines = [escape_controls(line)[:width] for line in self._build_lines(width)]
        self._erase()
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._drawn_lines = len(lines)

    def _build_lines(self, width: int) -> list[str]:
        totals = self.totals
        links, new = totals.link_counts
        summary = f"{format_duration(1000 * totals.elapsed_seconds)}: {totals.format_summary()}"
        bar = ""
        if self._url_count:
            done = min(self._started, self._url_count) * _BAR_WIDTH // self._url_count
            bar = f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] "
        return [
            "-" * width,
            f"{summary}; {links:,} links, {new:,} of them new" if links else summary,
            f"round {totals.rounds + 1}: {bar}{self._state_text()}",
            self._url,
        ]

    def _erase(self) -> None:
        if self._drawn_lines:
            self._stream.write(StyledText(f"\x1b[{self._drawn_lines}A\r\x1b[J"))
            self._drawn_lines = 0
