"""How a process keeps its memory: what tasks have used goes back to the system, garbage is looked for seldom."""

from __future__ import annotations

import contextlib
import gc
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MAX_FREE_BYTES = 1 << 20  # bytes
_GC_THRESHOLD = 50_000  # objects


@cache
def limit_malloc_memory() -> None:
    """Have the C library keep at most a MiB of free memory at the end of each of its arenas, and no larger pieces.

    glibc raises these limits by itself, to 64 MiB, when large pieces are freed, and makes up to eight arenas for each
    core. The threads of a fetch, of the writer of an index and of libraries are new for every job, and take now one
    arena, now another: a process that does one job after the other came to hold in all of them the most that a job
    needs, and climbed by some MB with each round. Set once a process; other C libraries are left alone.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _MAX_FREE_BYTES)
        mallopt(_MMAP_THRESHOLD, _MAX_FREE_BYTES)


def reduce_gc_frequency() -> None:
    """Have Python look for cycles after 50,000 new objects instead of 700; for processes that are all ours.

    Rows, links and modules hold no cycles to speak of: looking through them after 10,000 was 3 to 10 % of a job.
    """
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
