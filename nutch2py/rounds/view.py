"""What is seen of a crawl while it runs: a few lines that change on a terminal, else a line now and then."""

from __future__ import annotations

import os
import shutil
import time
from typing import TextIO

from nutch2py.jobs.tally import Tally
from nutch2py.pictures.words import span
from nutch2py.reporting import Progress

_REDRAWN = 0.2  # seconds between two pictures
_PLAIN = 30.0  # seconds between two lines about one job
_BAR = 24  # characters
JOBS = {
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


def view_of(stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> View:
    """Return the view for a stream. ``every_line``: with all that the jobs say; ``quiet``: warnings and the end."""
    if every_line or quiet or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return View(stream, every_line=every_line, quiet=quiet)
    return LiveView(stream)


class View:
    """Lines, one after the other."""

    def __init__(self, stream: TextIO, *, every_line: bool = False, quiet: bool = False) -> None:
        self._stream, self._every_line, self._quiet = stream, every_line, quiet
        self.tally = Tally()
        self._job, self._of, self._begun, self._url = "", 0, 0, ""
        self._notes = ""
        self._next = 0.0

    def say(self, text: str) -> None:
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

    def warning(self, message: str) -> None:
        """Take a warning."""
        self._print(f"WARN {message}")

    def begin(self, job: str, urls: int = 0) -> None:
        """Note that a job begins, on so many URLs."""
        self._job, self._of, self._begun, self._url, self._notes = job, urls, 0, "", ""
        self._next = time.monotonic() + _PLAIN

    def line(self, text: str) -> None:
        """Take a line of a job's log."""
        if self._every_line:
            self._print(text)
        if text.startswith("fetching "):
            self._begun += 1
            self._url = text.split(" ", 2)[1]

    def progress(self, progress: Progress) -> None:
        """Take word of how far a job is."""
        self._notes = ", ".join(progress.notes)
        if self._job != "fetch":
            self._begun = progress.rows
        self._show()

    def _show(self) -> None:
        if self._quiet or self._every_line or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PLAIN
        self._print(f"  {self._state()}")

    def _state(self) -> str:
        of = f" {min(self._begun, self._of):,} of {self._of:,}" if self._of else ""
        return f"{JOBS.get(self._job, self._job)}{of}" + (f": {self._notes}" if self._notes else "")

    def close(self) -> None:
        """End; what is printed from now on comes after all else."""


class LiveView(View):
    """A few lines at the end of a terminal that are drawn anew; what stays scrolls above them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._drawn = 0

    def _print(self, text: str) -> None:
        self._erase()
        super()._print(text)

    def begin(self, job: str, urls: int = 0) -> None:
        """Note that a job begins, on so many URLs."""
        super().begin(job, urls)
        self._next = 0.0
        self._show()

    def line(self, text: str) -> None:
        """Take a line of a job's log."""
        super().line(text)
        self._show()

    def close(self) -> None:
        """Take the lines that change away."""
        self._erase()
        self._stream.flush()

    def _show(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REDRAWN
        width = max(20, shutil.get_terminal_size().columns - 1)
        lines = [line[:width] for line in self._lines(width)]
        self._erase()
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._drawn = len(lines)

    def _lines(self, width: int) -> list[str]:
        tally = self.tally
        found, new = tally.links
        total = f"{span(1000 * tally.seconds)}: {tally.in_a_line()}"
        bar = ""
        if self._of:
            done = min(self._begun, self._of) * _BAR // self._of
            bar = f"[{'#' * done}{'.' * (_BAR - done)}] "
        return [
            "-" * width,
            f"{total}; {found:,} links, {new:,} of them new" if found else total,
            f"round {tally.rounds + 1}: {bar}{self._state()}",
            self._url,
        ]

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}A\r\x1b[J")
            self._drawn = 0
