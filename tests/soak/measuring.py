"""Resources that a crawl holds, read from ``/proc``: memory of its processes, descriptors, threads, files.

Memory is the proportional share of anonymous pages (``Pss_Anon``): what the process has made itself, and only it can
give back. Pages of files that are mapped (``Pss_File``: the table, the index, libraries) are the system's cache, which
takes them back when it needs them; they grow with the table, and are shown separately.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

_PROC = Path("/proc")
_EVERY = 0.25  # seconds


class Held(NamedTuple):
    """Resources of processes: megabytes (anonymous, of files), descriptors, threads, and how many they are."""

    anonymous: float = 0.0
    files: float = 0.0
    handles: int = 0
    threads: int = 0
    processes: int = 0

    def and_(self, other: Held) -> Held:
        """Return the sum."""
        return Held(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass
class Peaks:
    """The most that was seen of a round, in megabytes: of the crawler, of any child, of all at once; and of handles."""

    crawler: float = 0.0
    child: float = 0.0
    together: float = 0.0
    handles: int = 0
    temporary: float = 0.0


def held_by(pid: int) -> Held:
    """Return what a process holds; nothing when it is gone."""
    try:
        numbers = {
            name: int(value.split()[0]) / 1024
            for name, _, value in (
                line.partition(":") for line in (_PROC / str(pid) / "smaps_rollup").read_text("ascii").splitlines()[1:]
            )
        }
        handles = len(list((_PROC / str(pid) / "fd").iterdir()))
        threads = len(list((_PROC / str(pid) / "task").iterdir()))
    except OSError:
        return Held()
    return Held(
        numbers.get("Pss_Anon", 0.0) + numbers.get("Pss_Shmem", 0.0), numbers.get("Pss_File", 0.0), handles, threads, 1
    )


def children_of(pid: int) -> Iterator[int]:
    """Yield the processes below a process."""
    try:
        tasks = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            below = [int(word) for word in (task / "children").read_text("ascii").split()]
        except OSError:
            continue
        for child in below:
            yield child
            yield from children_of(child)


def bytes_below(folder: Path) -> int:
    """Return the bytes on the disk of all files in a folder; files that are just going do not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512  # noqa: PTH118
            except OSError:
                continue
    return total


@dataclass
class Watch:
    """Samples a process and its children periodically. ``temporary``: its folder for temporary files."""

    pid: int
    temporary: Path
    peaks: Peaks = field(default_factory=Peaks)

    def __post_init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def taken(self) -> Peaks:
        """Return the peaks since the last time."""
        peaks, self.peaks = self.peaks, Peaks()
        return peaks

    def look(self) -> Held:
        """Look once; return what all hold together."""
        crawler = held_by(self.pid)
        below = [held_by(child) for child in children_of(self.pid)]
        together = crawler
        for child in below:
            together = together.and_(child)
        peaks = self.peaks
        peaks.crawler = max(peaks.crawler, crawler.anonymous)
        peaks.child = max([peaks.child, *(child.anonymous for child in below)])
        peaks.together = max(peaks.together, together.anonymous)
        peaks.handles = max(peaks.handles, together.handles)
        peaks.temporary = max(peaks.temporary, bytes_below(self.temporary) / (1 << 20))
        return together

    def _run(self) -> None:
        while not self._done.wait(_EVERY):
            self.look()
