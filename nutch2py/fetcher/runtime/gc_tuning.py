"""Python's garbage collector during a fetch: a page leaves no cycles, so there is little for it to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_YOUNG_THRESHOLD = 100_000  # objects made and not gone, before it looks at them; Python's default is 700
_COLLECT_AFTER_BYTES = 64 << 20  # of pages, after which it looks all the same: few objects can hold much


class _GcTuner:
    """Has the collector look less often, and not at what was there before, while a fetch here is under way."""

    def __init__(self) -> None:
        self._lock, self._active_fetches = Lock(), 0
        self._saved_thresholds, self._frozen = gc.get_threshold(), False
        self._stored_bytes = 0

    def start(self) -> None:
        with self._lock:
            self._active_fetches += 1
            if self._active_fetches > 1:
                return
            self._saved_thresholds, self._frozen = gc.get_threshold(), not gc.get_freeze_count()
            if self._frozen:  # else the program has done so, and its objects must stay so
                gc.freeze()
            if self._saved_thresholds[0]:  # 0: it is off
                gc.set_threshold(max(_YOUNG_THRESHOLD, self._saved_thresholds[0]), *self._saved_thresholds[1:])

    def add_bytes(self, size: int) -> None:
        self._stored_bytes += size
        if self._stored_bytes >= _COLLECT_AFTER_BYTES:
            self._stored_bytes = 0
            if self._saved_thresholds[0] and gc.isenabled():
                gc.collect(1)

    def stop(self) -> None:
        with self._lock:
            self._active_fetches -= 1
            if self._active_fetches:
                return
            gc.set_threshold(*self._saved_thresholds)
            if self._frozen:
                gc.unfreeze()


_tuner = _GcTuner()


def add_stored_bytes(size: int) -> None:
    """Count bytes of pages that are stored: what cycles hold of them is looked for after so many."""
    _tuner.add_bytes(size)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Keep the collector calm; the last fetch that ends leaves it as it was."""
    _tuner.start()
    try:
        yield
    finally:
        _tuner.stop()
