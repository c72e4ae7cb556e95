"""Output of jobs: log lines, warnings and progress, printed or passed to callbacks.

Commands print them. A program that calls a job passes a :class:`Reporter` with callbacks; nothing is printed then. The
reporter belongs to the calling context (:func:`use_reporter`); a job passes it to its threads with
:func:`capture_reporting`. Every line also goes to the log file (:mod:`nutch2py.support.log_file`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple

from nutch2py.conf.redaction import redact
from nutch2py.support import log_file
from nutch2py.support.terminal import escape_controls


class Progress(NamedTuple):
    """Progress of a job: ``rows`` done, of about ``expected`` (None: unknown), ``seconds`` since its start.

    ``title``: the job, and its batch if any. ``notes``: short status texts of its tasks.
    """

    title: str
    rows: int
    expected: int | None
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Reporter:
    """Receives the output of jobs; a callback that is None discards it.

    Callbacks are called from the thread that runs the job and from its threads, one after the other.
    ``prints_output``: results are printed nevertheless, as by a command with ``-q``.
    """

    on_line: Callable[[str], None] | None = None
    on_warning: Callable[[str], None] | None = None
    on_progress: Callable[[Progress], None] | None = None
    prints_output: bool = False
    _lock: RLock = field(default_factory=RLock, repr=False)

    def report_line(self, text: str) -> None:
        """Receive a line of a job's log."""
        if self.on_line is not None:
            with self._lock:
                self.on_line(text)

    def report_warning(self, message: str) -> None:
        """Receive a warning."""
        if self.on_warning is not None:
            with self._lock:
                self.on_warning(message)

    def report_progress(self, progress: Progress) -> None:
        """Receive the progress of a job."""
        if self.on_progress is not None:
            with self._lock:
                self.on_progress(progress)


_current_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


def current_reporter() -> Reporter | None:
    """Return the reporter of this context; None when output is printed."""
    return _current_reporter.get()


def set_reporter(reporter: Reporter | None) -> None:
    """Set the reporter of this thread."""
    _current_reporter.set(reporter)


def capture_reporting() -> Callable[[], None]:
    """Return a function that sets reporter, job and batch of this context in another thread."""
    reporter, job = current_reporter(), log_file.current_log_job()

    def use_context() -> None:
        set_reporter(reporter)
        log_file.set_log_job(job)

    return use_context


@contextmanager
def use_reporter(reporter: Reporter | None) -> Iterator[None]:
    """Pass the output of jobs in the block to ``reporter`` instead of printing it; print it when that is None."""
    token = _current_reporter.set(reporter)
    try:
        yield
    finally:
        _current_reporter.reset(token)


def print_output(text: str) -> None:
    """Print a line of a result, such as a statistic, on standard output, or pass it to the reporter."""
    log_file.write_log_lines("INFO", text)
    reporter = _current_reporter.get()
    if reporter is None or reporter.prints_output:
        _print_line(text)
    else:
        reporter.report_line(text)


def log_line(text: str) -> None:
    """Print a line of a job's log on standard output, or pass it to the reporter, which may discard it (``-q``).

    Logins in URLs are removed, as they are in errors.
    """
    text = redact(text, ())
    log_file.write_log_lines("INFO", text)
    reporter = _current_reporter.get()
    if reporter is None:
        _print_line(text)
    else:
        reporter.report_line(text)


def warnings_only_reporter() -> Reporter:
    """Return the reporter of ``-q``: prints warnings and results only."""
    return Reporter(on_warning=_print_warning, prints_output=True)


def _print_line(text: str) -> None:
    try:
        print(escape_controls(text))  # a program that uses the library has streams of its own
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "standard output"  # for the error message
        raise


def _print_warning(message: str) -> None:
    with suppress(OSError):  # a full disk must not stop the job
        print(escape_controls(f"WARN {message}"), file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning on standard error, or pass it to the reporter. Logins in URLs are removed."""
    message = redact(message, ())
    log_file.write_log_lines("WARNING", message)
    reporter = _current_reporter.get()
    if reporter is None:
        _print_warning(message)
    else:
        reporter.report_warning(message)
