"""Spill file for row keys that wait for capacity in their queues; it bounds the memory of large hosts."""

from __future__ import annotations

import tempfile
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import msgspec

from nutch2py.support.invariants import not_none

CHUNK_KEYS, _CHUNK_CHARS = 64, 8192
"""Keys and characters written and read in one piece."""


@dataclass(slots=True)
class SpilledKeys:
    """Spilled keys of one queue.

    The order is: ``head`` (read back), the chunks at ``chunk_offsets`` of the file, ``tail`` (not written yet).
    """

    head: deque[str] = field(default_factory=deque)
    chunk_offsets: array[int] = field(default_factory=lambda: array("Q"))
    chunks_read: int = 0  # index of the next chunk to read
    tail: list[str] = field(default_factory=list)
    tail_chars: int = 0  # characters in ``tail``
    count: int = 0


class Spill:
    """Keys by queue, each queue in the order of arrival.

    At most two chunks per queue are in memory; the rest is in an unnamed file that disappears with the process.

    Attributes:
        queues: Spilled keys by queue id.
        total_keys: Number of spilled keys.

    Raises:
        OSError: The disk is full or fails.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self.queues: dict[str, SpilledKeys] = {}
        self.total_keys = 0

    def __contains__(self, queue_id: str) -> bool:
        """Return whether a queue has spilled keys."""
        return queue_id in self.queues

    @property
    def queue_ids(self) -> Iterable[str]:
        """Queues with spilled keys."""
        return self.queues

    def append(self, queue_id: str, key: str) -> None:
        """Add a key at the end of its queue."""
        keys = self._get_or_create(queue_id)
        keys.tail.append(key)
        keys.tail_chars += len(key)
        keys.count += 1
        self.total_keys += 1
        if len(keys.tail) >= CHUNK_KEYS or keys.tail_chars >= _CHUNK_CHARS:
            keys.chunk_offsets.append(self._write_chunk(keys.tail))
            keys.tail, keys.tail_chars = [], 0

    def prepend(self, queue_id: str, earlier: Sequence[str]) -> None:
        """Insert keys at the start of their queue."""
        keys = self._get_or_create(queue_id)
        keys.count += len(earlier)
        self.total_keys += len(earlier)
        keys_to_write = [*earlier, *keys.head]
        keys.head.clear()
        offsets = [
            self._write_chunk(keys_to_write[n : n + CHUNK_KEYS]) for n in range(0, len(keys_to_write), CHUNK_KEYS)
        ]
        keys.chunk_offsets = array("Q", [*offsets, *keys.chunk_offsets[keys.chunks_read :]])
        keys.chunks_read = 0

    def _get_or_create(self, queue_id: str) -> SpilledKeys:
        keys = self.queues.get(queue_id)
        if keys is None:
            keys = self.queues[queue_id] = SpilledKeys()
        return keys

    def take(self, queue_id: str, max_keys: int) -> list[str]:
        """Remove and return the next keys of a queue, at most ``max_keys``."""
        keys = self.queues.get(queue_id)
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
            del self.queues[queue_id]
        return taken

    def drop(self, queue_id: str) -> int:
        """Discard the keys of a queue; return their number."""
        keys = self.queues.pop(queue_id, None)
        if keys is None:
            return 0
        self.total_keys -= keys.count
        return keys.count

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            with suppress(OSError):  # buffered data that a full disk rejected is no longer needed
                self._file.close()

    def _write_chunk(self, keys: list[str]) -> int:
        """Write a chunk; return its offset."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nutch2py-queues-")  # noqa: SIM115 - open for the lifetime of the object
        data = msgspec.msgpack.encode([key.encode("utf-8", "surrogateescape") for key in keys])
        offset = self._file.seek(0, 2)
        self._file.write(len(data).to_bytes(8, "big") + data)
        return offset

    def _read_next_chunk(self, keys: SpilledKeys) -> None:
        if keys.chunks_read < len(keys.chunk_offsets):
            file = not_none(self._file, "file of the queues")
            file.seek(keys.chunk_offsets[keys.chunks_read])
            keys.chunks_read += 1
            data = file.read(int.from_bytes(file.read(8), "big"))
            keys.head.extend(
                key.decode("utf-8", "surrogateescape") for key in msgspec.msgpack.decode(data, type=list[bytes])
            )
        else:
            keys.head.extend(keys.tail)
            keys.tail, keys.tail_chars = [], 0
