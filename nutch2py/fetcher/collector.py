"""Python's garbage collector during a fetch: a page leaves no cycles, so there is little for it to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_YOUNG = 10_000  # objects made and not gone, before it looks at them; Python's default is 700


class _Calm:
    """Has the collector look less often, and not at what was there before, while a fetch here is under way."""

    def __init__(self) -> None:
        self._lock, self._fetches = Lock(), 0
        self._before, self._frozen = gc.get_threshold(), False

    def begin(self) -> None:
        with self._lock:
            self._fetches += 1
            if self._fetches > 1:
                return
            self._before, self._frozen = gc.get_threshold(), not gc.get_freeze_count()
            if self._frozen:  # else the program has done so, and its objects must stay so
                gc.freeze()
            if self._before[0]:  # 0: it is off
                gc.set_threshold(max(_YOUNG, self._before[0]), *self._before[1:])

    def end(self) -> None:
        with self._lock:
            self._fetches -= 1
            if self._fetches:
                return
            gc.set_threshold(*self._before)
            if self._frozen:
                gc.unfreeze()


_of_process = _Calm()


@contextmanager
def calm_collector() -> Iterator[None]:
    """Keep the collector calm; the last fetch that ends leaves it as it was."""
    _of_process.begin()
    try:
        yield
    finally:
        _of_process.end()
