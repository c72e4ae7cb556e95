"""Tuning of the C allocator and the garbage collector for processes of jobs."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MAX_FREE_BYTES = 1 << 20  # bytes
_GC_THRESHOLD = 50_000  # objects
_GROWTH_OBJECTS, _GROWTH_SHARE = 10_000, 0.05  # growth of the oldest generation until it is collected
_TRIM_SECONDS = 5.0  # minimum time between two calls of malloc_trim(3)


@cache
def limit_malloc_memory() -> None:
    """Limit the free memory that the C library keeps to one MiB per arena, without larger blocks.

    glibc raises these limits to 64 MiB by itself when large blocks are freed, and creates up to eight arenas per core.
    The threads of a fetch, of an index writer and of libraries are new in every job and use different arenas. So a
    process that runs one job after the other kept the maximum of a job in every arena, and grew by some MB in each
    round. Takes effect once per process; other C libraries are not changed.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _MAX_FREE_BYTES)
        mallopt(_MMAP_THRESHOLD, _MAX_FREE_BYTES)


def reduce_gc_frequency() -> None:
    """Run the garbage collector after 50,000 new objects instead of 700; for processes that run only our code.

    Rows, links and modules contain almost no cycles: collections after 10,000 objects took 3 to 10 % of a job.
    """
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])


class MemoryRelease:
    """State of :func:`release_unused_memory`: the size of the oldest generation, and the time of the last trim."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._old_objects: int | None = None
        self._next_trim = 0.0

    def release(self) -> None:
        """Collect the oldest generation if it has grown; trim the C library's memory every few seconds."""
        if not self._lock.acquire(blocking=False):
            return  # a job of another thread is doing it
        try:
            self._collect_if_grown()
            if (now := time.monotonic()) >= self._next_trim:
                self._next_trim = now + _TRIM_SECONDS
                trim_malloc()
        finally:
            self._lock.release()

    def _collect_if_grown(self) -> None:
        if not gc.isenabled() or not gc.get_threshold()[0] or gc.get_freeze_count():
            return  # the program has its own policy, or a fetch of another thread is running
        count = len(gc.get_objects(generation=2))
        if self._old_objects is None:
            self._old_objects = count
        elif count > self._old_objects * (1 + _GROWTH_SHARE) + _GROWTH_OBJECTS:
            gc.collect()
            self._old_objects = len(gc.get_objects(generation=2))


_memory_release = MemoryRelease()


def release_unused_memory() -> None:
    """Free the reference cycles that jobs have left, and return free memory of the C library to the system.

    A job leaves some thousand objects in cycles, such as the parsers of mrjob's options. The collector does not free
    them by itself: each fetch freezes all objects and thaws them into the oldest generation, and this resets the
    counters by which a collection of that generation becomes due. So it is collected here when it has grown. Called
    after each job of the runner ``inline``; the first call only notes the size.
    """
    _memory_release.release()


@cache
def _malloc_trim() -> Callable[[int], object] | None:
    import ctypes

    try:
        trim: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return None
    return trim


def trim_malloc() -> None:
    """Return free memory of glibc to the system; does nothing with other C libraries."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
