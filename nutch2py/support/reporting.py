"""Where what a job has to say goes: the lines of its log, warnings, progress.

Commands print them. Whoever calls a job from a program takes them with callbacks, or leaves them: nothing is printed
then. Which of the two it is belongs to the calling thread (:func:`use_reporter`); threads that a job starts are given
it with :func:`set_reporter`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple

from nutch2py.support import log_file


class Progress(NamedTuple):
    """How far a job is: ``rows`` done, of about ``expected`` (None: not known), ``seconds`` after its beginning.

    ``title``: the job, and the batch if it works on one. ``notes``: what tasks say of themselves, in a few words.
    """

    title: str
    rows: int
    expected: int | None
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Reporter:
    """Takes what jobs say; None for what nobody wants to hear.

    The callbacks are called from the thread that runs the job and from those that it starts, never two at a time.
    ``prints_output``: what was asked for is printed all the same, as by a command that is quiet.
    """

    on_line: Callable[[str], None] | None = None
    on_warning: Callable[[str], None] | None = None
    on_progress: Callable[[Progress], None] | None = None
    prints_output: bool = False
    _lock: RLock = field(default_factory=RLock, repr=False)

    def report_line(self, text: str) -> None:
        """Take a line of a job's log."""
        if self.on_line is not None:
            with self._lock:
                self.on_line(text)

    def report_warning(self, message: str) -> None:
        """Take a warning."""
        if self.on_warning is not None:
            with self._lock:
                self.on_warning(message)

    def report_progress(self, progress: Progress) -> None:
        """Take word of how far a job is."""
        if self.on_progress is not None:
            with self._lock:
                self.on_progress(progress)


_current_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


def current_reporter() -> Reporter | None:
    """Return who takes what jobs of this thread say; None when it is printed."""
    return _current_reporter.get()


def set_reporter(reporter: Reporter | None) -> None:
    """Let this thread, which a job has started, say things to whom the job says them."""
    _current_reporter.set(reporter)


@contextmanager
def use_reporter(reporter: Reporter | None) -> Iterator[None]:
    """Give what the jobs of the block say to ``reporter``, and print none of it; print it when that is None."""
    token = _current_reporter.set(reporter)
    try:
        yield
    finally:
        _current_reporter.reset(token)


def print_output(text: str) -> None:
    """Say a line that was asked for, as a statistic is: on standard output, unless somebody takes it."""
    log_file.write_log_lines("INFO", text)
    taken = _current_reporter.get()
    if taken is None or taken.prints_output:
        _print_line(text)
    else:
        taken.report_line(text)


def log_line(text: str) -> None:
    """Say a line of a job's log: on standard output, unless somebody takes it or wants to hear none (``-q``)."""
    log_file.write_log_lines("INFO", text)
    taken = _current_reporter.get()
    if taken is None:
        _print_line(text)
    else:
        taken.report_line(text)


def warnings_only_reporter() -> Reporter:
    """Return who takes what jobs tell and shows warnings alone."""
    return Reporter(on_warning=_print_warning, prints_output=True)


def _print_line(text: str) -> None:
    try:
        print(text)
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "standard output"  # said to whom it ends
        raise


def _print_warning(message: str) -> None:
    with suppress(OSError):  # a disk that takes no warnings is no reason to stop
        print(f"WARN {message}", file=sys.stderr)


def warn(message: str) -> None:
    """Warn the user: on standard error, unless somebody takes it."""
    log_file.write_log_lines("WARNING", message)
    taken = _current_reporter.get()
    if taken is None:
        _print_warning(message)
    else:
        taken.report_warning(message)
