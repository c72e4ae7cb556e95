"""Python's garbage collector during a fetch: a page leaves no cycles, so there is little for it to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_YOUNG = 100_000  # objects made and not gone, before it looks at them; Python's default is 700
_MOST_BYTES = 64 << 20  # of pages, after which it looks all the same: few objects can hold much


class _Calm:
    """Has the collector look less often, and not at what was there before, while a fetch here is under way."""

    def __init__(self) -> None:
        self._lock, self._fetches = Lock(), 0
        self._before, self._frozen = gc.get_threshold(), False
        self._bytes = 0

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

    def took(self, size: int) -> None:
        self._bytes += size
        if self._bytes >= _MOST_BYTES:
            self._bytes = 0
            if self._before[0] and gc.isenabled():
                gc.collect(1)

    def end(self) -> None:
        with self._lock:
            self._fetches -= 1
            if self._fetches:
                return
            gc.set_threshold(*self._before)
            if self._frozen:
                gc.unfreeze()


_of_process = _Calm()


def took(size: int) -> None:
    """Count bytes of pages that are stored: what cycles hold of them is looked for after so many."""
    _of_process.took(size)


@contextmanager
def calm_collector() -> Iterator[None]:
    """Keep the collector calm; the last fetch that ends leaves it as it was."""
    _of_process.begin()
    try:
        yield
    finally:
        _of_process.end()
