"""Tuning of the C allocator and the garbage collector for processes of jobs."""

from __future__ import annotations

import contextlib
import gc
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MAX_FREE_BYTES = 1 << 20  # bytes
_GC_THRESHOLD = 50_000  # objects


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
