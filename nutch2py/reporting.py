"""Where what a job has to say goes: the lines of its log, warnings, progress.

Commands print them. Whoever calls a job from a program takes them with callbacks, or leaves them: nothing is printed
then. Which of the two it is belongs to the calling thread (:func:`reporting_to`); threads that a job starts are given
it with :func:`adopt`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a step of a job is: ``rows`` done, of about ``expected`` (None: not known), after ``seconds``.

    ``notes``: what tasks say of themselves, in a few words.
    """

    title: str
    rows: int
    expected: int | None
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reporter:
    """Takes what jobs say; None for what nobody wants to hear. ``progress`` is called from another thread."""

    line: Callable[[str], None] | None = None
    warning: Callable[[str], None] | None = None
    progress: Callable[[Progress], None] | None = None


_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


def reporter() -> Reporter | None:
    """Return who takes what jobs of this thread say; None when it is printed."""
    return _reporter.get()


def adopt(taken: Reporter | None) -> None:
    """Let this thread, which a job has started, say things to whom the job says them."""
    _reporter.set(taken)


@contextmanager
def reporting_to(taken: Reporter) -> Iterator[None]:
    """Give what the jobs of the block say to ``taken``, and print none of it."""
    token = _reporter.set(taken)
    try:
        yield
    finally:
        _reporter.reset(token)


def say(text: str) -> None:
    """Say a line of a job's log: on standard output, unless somebody takes it."""
    taken = _reporter.get()
    if taken is None:
        print(text)
        sys.stdout.flush()
    elif taken.line is not None:
        taken.line(text)


def warn(message: str) -> None:
    """Warn the user: on standard error, unless somebody takes it."""
    taken = _reporter.get()
    if taken is None:
        print(f"WARN {message}", file=sys.stderr)
    elif taken.warning is not None:
        taken.warning(message)
