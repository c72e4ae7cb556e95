"""Row keys that wait on disk for room in their queues: a host with very many pages takes no memory for them."""

from __future__ import annotations

import tempfile
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import msgspec

_CHUNK_KEYS, _CHUNK_CHARACTERS = 64, 8192  # of the keys of a queue that are written and read at once


@dataclass(slots=True)
class _Keys:
    """The keys of one queue: ``first`` are read again, then come chunks at ``places`` of the file, then ``last``."""

    first: deque[str] = field(default_factory=deque)
    places: array[int] = field(default_factory=lambda: array("Q"))
    read: int = 0  # places before this are used up
    last: list[str] = field(default_factory=list)
    characters: int = 0  # of ``last``
    count: int = 0


class Spill:
    """Keys by queue, each queue's in the order in which they came.

    Of each queue at most two chunks are in memory, the rest in a file without a name, which is gone with its process.
    Raises OSError when the disk takes no more.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._queues: dict[str, _Keys] = {}
        self.total = 0

    def __contains__(self, queue_id: str) -> bool:
        """Tell whether keys of a queue wait here."""
        return queue_id in self._queues

    @property
    def queues(self) -> Iterable[str]:
        """The queues whose keys wait here."""
        return self._queues

    def put(self, queue_id: str, key: str) -> None:
        """Add a key behind the others of its queue."""
        keys = self._of(queue_id)
        keys.last.append(key)
        keys.characters += len(key)
        keys.count += 1
        self.total += 1
        if len(keys.last) >= _CHUNK_KEYS or keys.characters >= _CHUNK_CHARACTERS:
            keys.places.append(self._write(keys.last))
            keys.last, keys.characters = [], 0

    def put_back(self, queue_id: str, earlier: Sequence[str]) -> None:
        """Put keys before the others of their queue."""
        keys = self._of(queue_id)
        keys.count += len(earlier)
        self.total += len(earlier)
        first = [*earlier, *keys.first]
        keys.first.clear()
        places = [self._write(first[n : n + _CHUNK_KEYS]) for n in range(0, len(first), _CHUNK_KEYS)]
        keys.places = array("Q", [*places, *keys.places[keys.read :]])
        keys.read = 0

    def _of(self, queue_id: str) -> _Keys:
        keys = self._queues.get(queue_id)
        if keys is None:
            keys = self._queues[queue_id] = _Keys()
        return keys

    def take(self, queue_id: str, most: int) -> list[str]:
        """Take the next keys of a queue, at most so many."""
        keys = self._queues.get(queue_id)
        if keys is None:
            return []
        taken: list[str] = []
        while len(taken) < most and keys.count:
            if not keys.first:
                self._next(keys)
            taken.append(keys.first.popleft())
            keys.count -= 1
        self.total -= len(taken)
        if not keys.count:
            del self._queues[queue_id]
        return taken

    def drop(self, queue_id: str) -> int:
        """Forget the keys of a queue; return how many those were."""
        keys = self._queues.pop(queue_id, None)
        if keys is None:
            return 0
        self.total -= keys.count
        return keys.count

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            with suppress(OSError):  # what it could not write, on a full disk, nobody will read
                self._file.close()

    def _write(self, keys: list[str]) -> int:
        """Write a chunk; return its place."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nutch2py-queues-")  # noqa: SIM115 - open as long as this is
        data = msgspec.msgpack.encode([key.encode("utf-8", "surrogateescape") for key in keys])
        place = self._file.seek(0, 2)
        self._file.write(len(data).to_bytes(8, "big") + data)
        return place

    def _next(self, keys: _Keys) -> None:
        if keys.read < len(keys.places):
            assert self._file is not None
            self._file.seek(keys.places[keys.read])
            keys.read += 1
            data = self._file.read(int.from_bytes(self._file.read(8), "big"))
            keys.first.extend(
                key.decode("utf-8", "surrogateescape") for key in msgspec.msgpack.decode(data, type=list[bytes])
            )
        else:
            keys.first.extend(keys.last)
            keys.last, keys.characters = [], 0
