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

_CHUNK_KEYS, _CHUNK_CHARS = 64, 8192  # of the keys of a queue that are written and read at once


@dataclass(slots=True)
class _SpilledKeys:
    """The keys of one queue: ``head`` are read again, then come chunks at ``chunk_offsets`` of the file, then ``tail``."""

    head: deque[str] = field(default_factory=deque)
    chunk_offsets: array[int] = field(default_factory=lambda: array("Q"))
    chunks_read: int = 0  # places before this are used up
    tail: list[str] = field(default_factory=list)
    tail_chars: int = 0  # of ``last``
    count: int = 0


class Spill:
    """Keys by queue, each queue's in the order in which they came.

    Of each queue at most two chunks are in memory, the rest in a file without a name, which is gone with its process.
    Raises OSError when the disk takes no more.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._queues: dict[str, _SpilledKeys] = {}
        self.total_keys = 0

    def __contains__(self, queue_id: str) -> bool:
        """Tell whether keys of a queue wait here."""
        return queue_id in self._queues

    @property
    def queue_ids(self) -> Iterable[str]:
        """The queues whose keys wait here."""
        return self._queues

    def append(self, queue_id: str, key: str) -> None:
        """Add a key behind the others of its queue."""
        keys = self._get_or_create(queue_id)
        keys.tail.append(key)
        keys.tail_chars += len(key)
        keys.count += 1
        self.total_keys += 1
        if len(keys.tail) >= _CHUNK_KEYS or keys.tail_chars >= _CHUNK_CHARS:
            keys.chunk_offsets.append(self._write_chunk(keys.tail))
            keys.tail, keys.tail_chars = [], 0

    def prepend(self, queue_id: str, earlier: Sequence[str]) -> None:
        """Put keys before the others of their queue."""
        keys = self._get_or_create(queue_id)
        keys.count += len(earlier)
        self.total_keys += len(earlier)
        first = [*earlier, *keys.head]
        keys.head.clear()
        places = [self._write_chunk(first[n : n + _CHUNK_KEYS]) for n in range(0, len(first), _CHUNK_KEYS)]
        keys.chunk_offsets = array("Q", [*places, *keys.chunk_offsets[keys.chunks_read :]])
        keys.chunks_read = 0

    def _get_or_create(self, queue_id: str) -> _SpilledKeys:
        keys = self._queues.get(queue_id)
        if keys is None:
            keys = self._queues[queue_id] = _SpilledKeys()
        return keys

    def take(self, queue_id: str, max_keys: int) -> list[str]:
        """Take the next keys of a queue, at most so many."""
        keys = self._queues.get(queue_id)
        if keys is None:
            return []
        taken: list[str] = []
        while len(taken) < max_keys and keys.count:
            if not keys.head:
                self._read_next_chunk(keys)
            taken.append(keys.head.popleft())
            keys.count -= 1
        self.total_keys -= len(taken)
        if not keys.count:
            del self._queues[queue_id]
        return taken

    def drop(self, queue_id: str) -> int:
        """Forget the keys of a queue; return how many those were."""
        keys = self._queues.pop(queue_id, None)
        if keys is None:
            return 0
        self.total_keys -= keys.count
        return keys.count

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            with suppress(OSError):  # what it could not write, on a full disk, nobody will read
                self._file.close()

    def _write_chunk(self, keys: list[str]) -> int:
        """Write a chunk; return its place."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nutch2py-queues-")  # noqa: SIM115 - open as long as this is
        data = msgspec.msgpack.encode([key.encode("utf-8", "surrogateescape") for key in keys])
        place = self._file.seek(0, 2)
        self._file.write(len(data).to_bytes(8, "big") + data)
        return place

    def _read_next_chunk(self, keys: _SpilledKeys) -> None:
        if keys.chunks_read < len(keys.chunk_offsets):
            assert self._file is not None
            self._file.seek(keys.chunk_offsets[keys.chunks_read])
            keys.chunks_read += 1
            data = self._file.read(int.from_bytes(self._file.read(8), "big"))
            keys.head.extend(
                key.decode("utf-8", "surrogateescape") for key in msgspec.msgpack.decode(data, type=list[bytes])
            )
        else:
            keys.head.extend(keys.tail)
            keys.tail, keys.tail_chars = [], 0
