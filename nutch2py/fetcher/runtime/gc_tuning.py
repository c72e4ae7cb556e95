"""Tunes Python's garbage collector during a fetch, which leaves few reference cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_YOUNG_THRESHOLD = 100_000  # net allocations before a collection; Python's default is 700
_COLLECT_AFTER_BYTES = 64 << 20  # stored bytes before a collection, since few objects can hold much memory


class _GcTuner:
    """Collects less often and skips older objects while fetches run."""

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
            if self._frozen:  # else the program froze its objects itself, and they must stay frozen
                gc.freeze()
            if self._saved_thresholds[0]:  # 0 disables the collector
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
    """Count bytes of stored pages; reference cycles are collected at intervals of these."""
    _tuner.add_bytes(size)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Relax the garbage collector; the last active fetch restores its settings."""
    _tuner.start()
    try:
        yield
    finally:
        _tuner.stop()
