"""Where what a job has to say goes: the lines of its log, warnings, progress.

Commands print them. Whoever calls a job from a program takes them with callbacks, or leaves them: nothing is printed
then. Which of the two it is belongs to the calling thread (:func:`reporting_to`); threads that a job starts are given
it with :func:`adopt`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple

from nutch2py import log_file


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
    ``answers``: what was asked for is printed all the same, as by a command that is quiet.
    """

    line: Callable[[str], None] | None = None
    warning: Callable[[str], None] | None = None
    progress: Callable[[Progress], None] | None = None
    answers: bool = False
    _one: RLock = field(default_factory=RLock, repr=False)

    def take_line(self, text: str) -> None:
        """Take a line of a job's log."""
        if self.line is not None:
            with self._one:
                self.line(text)

    def take_warning(self, message: str) -> None:
        """Take a warning."""
        if self.warning is not None:
            with self._one:
                self.warning(message)

    def take_progress(self, progress: Progress) -> None:
        """Take word of how far a job is."""
        if self.progress is not None:
            with self._one:
                self.progress(progress)


_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


def reporter() -> Reporter | None:
    """Return who takes what jobs of this thread say; None when it is printed."""
    return _reporter.get()


def adopt(taken: Reporter | None) -> None:
    """Let this thread, which a job has started, say things to whom the job says them."""
    _reporter.set(taken)


@contextmanager
def reporting_to(taken: Reporter | None) -> Iterator[None]:
    """Give what the jobs of the block say to ``taken``, and print none of it; print it when that is None."""
    token = _reporter.set(taken)
    try:
        yield
    finally:
        _reporter.reset(token)


def say(text: str) -> None:
    """Say a line that was asked for, as a statistic is: on standard output, unless somebody takes it."""
    log_file.note("INFO", text)
    taken = _reporter.get()
    if taken is None or taken.answers:
        _print(text)
    else:
        taken.take_line(text)


def tell(text: str) -> None:
    """Say a line of a job's log: on standard output, unless somebody takes it or wants to hear none (``-q``)."""
    log_file.note("INFO", text)
    taken = _reporter.get()
    if taken is None:
        _print(text)
    else:
        taken.take_line(text)


def quiet() -> Reporter:
    """Return who takes what jobs tell and shows warnings alone."""
    return Reporter(warning=_print_warning, answers=True)


def _print(text: str) -> None:
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
    log_file.note("WARNING", message)
    taken = _reporter.get()
    if taken is None:
        _print_warning(message)
    else:
        taken.take_warning(message)
