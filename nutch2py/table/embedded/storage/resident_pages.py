"""Releases memory-mapped pages of a table's files that a process has read.

LMDB maps its files, so all pages read count as resident memory of the process: after a scan, the whole table. The
kernel reclaims such pages when memory is short. Until then they hide the process's own memory from monitoring, and
count against the limit of a container. A process that holds more than a limit therefore releases all of them. They stay
in the page cache and are mapped again on the next read, also within a transaction.

Linux maps sixteen pages around each page read (fault-around), so ten thousand rows scattered over a large table map
gigabytes. Callers that read or write many rows do so in pieces of :data:`PIECE_READS`, with a check after each.

After a file is unmapped, its addresses may be reused, and madvise would discard other memory. So no file of a table is
closed while addresses are looked up and released.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MAX_MAPPED_BYTES = 256 << 20
"""Resident bytes of mapped files per process."""
READS_PER_CHECK = 1_000
"""Reads between two checks, at most 64 KB each."""
RUN_READS = 64
"""Number of reads that a run of consecutive keys counts as (some MB)."""
PIECE_READS = 1_000
"""Point reads between two checks."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_MADV_DONTNEED = 4  # MADV_DONTNEED of Linux: for a file mapped read-only it only drops the mapping of the pages


def pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield slices of ``items`` with the number of reads or writes between two checks."""
    for at in range(0, len(items), PIECE_READS):
        yield items[at : at + PIECE_READS]


class MappedFiles:
    """The files of a table that LMDB has mapped. ``close_lock`` guards the closing of any table's files."""

    def __init__(self, paths: Collection[Path], close_lock: threading.RLock) -> None:
        self._inodes = frozenset(str(path.stat().st_ino) for path in paths)
        self._names = frozenset(path.name for path in paths)
        self._close_lock = close_lock
        self._reads_since_check, self._is_supported = 0, True
        self._bytes_after_release = 0  # mapped bytes after the last release, of other files

    def release_if_many(self, read_count: int) -> None:
        """Release the pages if they exceed the limit; ``read_count`` is the number of reads since the last call."""
        self._reads_since_check += read_count
        if self._reads_since_check >= READS_PER_CHECK and self._is_supported:
            self._reads_since_check = 0
            held = mapped_bytes()
            # mapped by an index or another table, so a release here does not free them
            self._bytes_after_release = min(self._bytes_after_release, held)
            if held - self._bytes_after_release > MAX_MAPPED_BYTES:
                self.release()

    def release(self) -> None:
        """Release all pages (Linux only); does nothing while a table is being opened or closed."""
        import ctypes  # only needed after many reads

        libc = ctypes.CDLL(None, use_errno=True)
        if not self._close_lock.acquire(blocking=False):  # waiting here could deadlock with a store's finalizer
            return
        try:
            for first, last in self.address_ranges():
                if libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED):
                    self._is_supported = False
        except OSError:  # the system has no /proc/self/maps
            self._is_supported = False
        finally:
            self._close_lock.release()
        self._bytes_after_release = mapped_bytes()

    def address_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the addresses at which the files are mapped."""
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            where, _, _, _, inode, *path = line.split(maxsplit=5)
            if inode in self._inodes and path and path[0].rpartition("/")[2] in self._names:
                first, last = (int(end, 16) for end in where.split("-"))
                yield first, last


def mapped_bytes() -> int:
    """Return the resident bytes of mapped files of this process, 0 if unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # called often: Path doubles the cost
            return int(file.read().split()[2]) * _PAGE_SIZE
    except (OSError, ValueError, IndexError):
        return 0
