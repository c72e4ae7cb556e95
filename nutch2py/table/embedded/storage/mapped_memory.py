"""Letting go of the pages of a table's files that a process has looked at.

LMDB maps its files, so whatever is read of them counts as memory of the process that has read it: after a scan, the
whole table. The system takes such pages back when memory is short. Until then they hide what a process needs itself
from whoever looks on, and count against the limit of a container. So a process that holds more than a bound of them
lets go of all: they stay in the system's cache, and are mapped again when they are read again. That may happen within a
transaction, too.

Linux maps sixteen pages where one is asked for. Ten thousand rows from all over a large table, each in some databases,
are gigabytes so: who reads or writes so many asks in pieces of :data:`PIECE_READS`, and looks at each.

Memory that another file leaves may be given to anything at once, and would be emptied. So no file of a table is closed
between the look at where it is and the end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_MAX_MAPPED_BYTES = 256 << 20  # bytes of mapped files that a process holds
_READS_PER_CHECK = 1_000  # places that are read between two looks: 64 KB each at the most
RUN_READS = 64
"""As many places a run of neighbours counts: some MB."""
PIECE_READS = 1_000
"""Places that are read one by one before the next look."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_MADV_DONTNEED = 4  # Linux's MADV_DONTNEED: of a file that is mapped to be read, only the mapping of its pages goes


def pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield so many of them at a time as are read, or written, between two looks."""
    for at in range(0, len(items), PIECE_READS):
        yield items[at : at + PIECE_READS]


class MappedFiles:
    """The files of a table that LMDB has mapped. ``closing``: the lock under which those of any table are closed."""

    def __init__(self, paths: Collection[Path], close_lock: threading.RLock) -> None:
        self._inodes = frozenset(str(path.stat().st_ino) for path in paths)
        self._names = frozenset(path.name for path in paths)
        self._close_lock = close_lock
        self._reads_since_check, self._is_supported = 0, True
        self._bytes_after_release = 0  # bytes that were left when these files had let go

    def release_if_many(self, read_count: int) -> None:
        """Let go of the pages when they are many; called with the number of places that were read since."""
        self._reads_since_check += read_count
        if self._reads_since_check >= _READS_PER_CHECK and self._is_supported:
            self._reads_since_check = 0
            held = _mapped_bytes()
            self._bytes_after_release = min(
                self._bytes_after_release, held
            )  # of an index, or another table: letting go again frees nothing
            if held - self._bytes_after_release > _MAX_MAPPED_BYTES:
                self.release()

    def release(self) -> None:
        """Let go of all pages; only Linux can tell where they are. Later, where a table is just opened or closed."""
        import ctypes  # only who reads much needs it

        libc = ctypes.CDLL(None, use_errno=True)
        if not self._close_lock.acquire(blocking=False):  # who waits, and is collected from, could wait for ever
            return
        try:
            for first, last in self._address_ranges():
                if libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED):
                    self._is_supported = False
        except OSError:  # a system that tells how much, but not where
            self._is_supported = False
        finally:
            self._close_lock.release()
        self._bytes_after_release = _mapped_bytes()

    def _address_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the addresses at which the files are mapped."""
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            where, _, _, _, inode, *path = line.split(maxsplit=5)
            if inode in self._inodes and path and path[0].rpartition("/")[2] in self._names:
                first, last = (int(end, 16) for end in where.split("-"))
                yield first, last


def _mapped_bytes() -> int:
    """Return how many bytes of mapped files this process holds, 0 where that is not told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # asked often: a Path costs as much again
            return int(file.read().split()[2]) * _PAGE_SIZE
    except (OSError, ValueError, IndexError):
        return 0
