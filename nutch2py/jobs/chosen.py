"""Entries from which generate cuts a batch: each reduce task keeps the best of its share in blocks, the driver cuts.

The derived table has them as ``c/<batch>/<bucket>/<number>``, best first, until the batch is made. What the driver is
told of a block is its first entry and how many it has; that places the cut in a few blocks, which are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from nutch2py.jobs.batchlist import chosen_prefix, pack, unpack
from nutch2py.mapreduce.protocol import escape_key, unescape_key
from nutch2py.mapreduce.splits import SideSplit
from nutch2py.table import DataStore, KeyRange, Query, WriteBatch
from nutch2py.webpage import BatchEntry

_ENTRIES = 1_000  # of a block
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[bytes])
Told = tuple[str, int]
"""The first entry of a block (hexadecimal), and how many it has."""


class Block(NamedTuple):
    """A block: the key of its row, its first entry, how many it has."""

    key: str
    first: bytes
    entries: int


def line_of(text: str) -> bytes:
    """Return an entry as the shuffle sorts it."""
    return escape_key(text).encode("utf-8", "surrogateescape")


def text_of(line: bytes) -> str:
    """Return what :func:`line_of` was given."""
    return unescape_key(line.decode("utf-8", "surrogateescape"))


class BlockWriter:
    """Writes the entries of one bucket, which come best first; a repeat writes the same rows."""

    def __init__(self, batch: WriteBatch, batch_id: str, bucket: str) -> None:
        self._batch, self._prefix = batch, f"{chosen_prefix(batch_id)}{bucket}/"
        self._lines: list[bytes] = []
        self._told: list[Told] = []

    def add(self, text: str) -> None:
        """Keep an entry."""
        self._lines.append(line_of(text))
        if len(self._lines) >= _ENTRIES:
            self._write()

    def _write(self) -> None:
        if self._lines:
            entry = BatchEntry()
            entry.data = pack(_ENCODER.encode(self._lines))
            self._batch.put(f"{self._prefix}{len(self._told):09d}", entry)
            self._told.append((self._lines[0].hex(), len(self._lines)))
            self._lines = []

    def close(self) -> list[Told]:
        """Write the rest, and return what there is to tell of the blocks."""
        self._write()
        return self._told


def blocks_of(batch_id: str, bucket: str, told: Sequence[Told]) -> list[Block]:
    """Return the blocks of a bucket, in their order."""
    prefix = f"{chosen_prefix(batch_id)}{bucket}/"
    return [Block(f"{prefix}{number:09d}", bytes.fromhex(first), count) for number, (first, count) in enumerate(told)]


def read_lines(store: DataStore[BatchEntry], key_range: KeyRange) -> Iterator[list[bytes]]:
    """Yield the entries of the blocks in a range of rows, block by block."""
    for _, entry in store.scan(Query(frozenset({BatchEntry.data}), key_range)):
        assert entry.data is not None
        yield _DECODER.decode(unpack(entry.data))


def cut(buckets: Sequence[Sequence[Block]], limit: int, read: Callable[[Block], list[bytes]]) -> bytes | None:
    """Return the last of the best ``limit`` entries over all buckets, None when there are no more than these.

    How many entries stand before a given one is known but for one block of each bucket; so of each bucket only the
    blocks are read between the first place that can be the last one's and the first that is surely behind it.
    """
    if sum(block.entries for blocks in buckets for block in blocks) <= limit:
        return None
    begun = before = 0
    low = high = b""
    under_way = [0] * len(buckets)
    starts = sorted((block.first, number, block.entries) for number, each in enumerate(buckets) for block in each)
    for first, bucket, count in starts:
        before += under_way[bucket]  # its block ends here
        under_way[bucket] = count
        if before >= limit:
            high = first
            break
        begun += count
        if not low and begun >= limit:
            low = first
    rank = limit
    found: list[bytes] = []
    for blocks in buckets:
        for place, block in enumerate(blocks, 1):
            if high and block.first >= high:
                break
            if place < len(blocks) and blocks[place].first <= low:
                rank -= block.entries
            else:
                found += read(block)
    found.sort()
    return found[rank - 1]


def splits(buckets: Sequence[Sequence[Block]], last: bytes | None, tasks: int) -> list[SideSplit]:
    """Return map input of about ``tasks`` tasks, at least one for each bucket: the blocks that begin before the cut."""
    found: list[SideSplit] = []
    for blocks in buckets:
        wanted = [block for block in blocks if last is None or block.first <= last]
        pieces = min(len(wanted), max(1, tasks // len(buckets)))
        ends = [len(wanted) * number // pieces for number in range(pieces + 1)] if pieces else []
        found += [SideSplit(KeyRange(wanted[start].key, f"{wanted[end - 1].key}\x00")) for start, end in pairwise(ends)]
    return found
