"""A limit on the time that a piece of work takes, without a process or thread for each page.

In the main thread a signal (SIGALRM) interrupts, also a regular expression that has run away; in other threads a
watchdog thread raises the exception at the next bytecode. Neither can stop C code that does not return to the
interpreter: what is parsed in C must bound its own time (see :func:`nutch2py.parser.dom.parse_tree`), or run in a
process that can be killed.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_TICK = 0.25  # seconds between two looks of the watchdog


class TimeLimitExceeded(BaseException):
    """The time is over. Not an ``Exception``, so that a parser that catches everything does not swallow it."""


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TimeLimitExceeded


class _Watchdog:
    """One daemon thread that raises :class:`TimeLimitExceeded` in threads whose time is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}  # thread -> end on the monotonic clock; inf: raised
        self._thread: threading.Thread | None = None

    def begin(self, thread: int, seconds: float) -> None:
        with self._lock:
            self._deadlines[thread] = time.monotonic() + seconds
            if self._thread is None or not self._thread.is_alive():  # not yet, or lost in a fork
                self._thread = threading.Thread(target=self._watch, name="parse-watchdog", daemon=True)
                self._thread.start()

    def end(self, thread: int) -> None:
        with self._lock:
            if self._deadlines.pop(thread, 0.0) == float("inf"):  # take back what has not arrived yet
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)

    def _watch(self) -> None:
        while True:
            time.sleep(_TICK)
            now = time.monotonic()
            with self._lock:
                for thread, end in self._deadlines.items():
                    if end <= now:
                        self._deadlines[thread] = float("inf")
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(
                            ctypes.c_ulong(thread), ctypes.py_object(TimeLimitExceeded)
                        )


_watchdog = _Watchdog()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TimeLimitExceeded` in the block when it takes longer; no limit when ``seconds`` is not positive."""
    if seconds <= 0:
        yield
    elif threading.current_thread() is threading.main_thread():
        previous = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
    else:
        thread = threading.get_ident()
        _watchdog.begin(thread, seconds)
        try:
            yield
        finally:
            _watchdog.end(thread)
