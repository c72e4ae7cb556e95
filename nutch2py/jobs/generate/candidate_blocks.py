"""Entries from which generate cuts a batch: each reduce task keeps the best of its share in blocks, the driver cuts.

The derived table has them as ``c/<batch>/<bucket>/<number>``, best first, until the batch is made. What the driver is
told of a block is its first entry and how many it has; that places the cut in a few blocks, which are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from nutch2py.jobs.batches.batch_lists import candidate_prefix, compress_cell, decompress_cell
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.mapreduce.mrjob_protocols import escape_key, unescape_key
from nutch2py.records.webpage import DerivedRow
from nutch2py.table import DataStore, KeyRange, TableQuery, WriteBatch

_ENTRIES_PER_BLOCK = 1_000  # of a block
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[bytes])
BlockSummary = tuple[str, int]
"""The first entry of a block (hexadecimal), and how many it has."""


class CandidateBlock(NamedTuple):
    """A block: the key of its row, its first entry, how many it has."""

    key: str
    first_entry: bytes
    entry_count: int


def encode_entry(entry: str) -> bytes:
    """Return an entry as the shuffle sorts it."""
    return escape_key(entry).encode("utf-8", "surrogateescape")


def decode_entry(encoded: bytes) -> str:
    """Return what :func:`encode_entry` was given."""
    return unescape_key(encoded.decode("utf-8", "surrogateescape"))


class CandidateBlockWriter:
    """Writes the entries of one bucket, which come best first; a repeat writes the same rows."""

    def __init__(self, batch: WriteBatch, batch_id: str, bucket: str) -> None:
        self._batch, self._prefix = batch, f"{candidate_prefix(batch_id)}{bucket}/"
        self._entries: list[bytes] = []
        self._summaries: list[BlockSummary] = []

    def add(self, entry: str) -> None:
        """Keep an entry."""
        self._entries.append(encode_entry(entry))
        if len(self._entries) >= _ENTRIES_PER_BLOCK:
            self._write()

    def _write(self) -> None:
        if self._entries:
            entry = DerivedRow()
            entry.data = compress_cell(_ENCODER.encode(self._entries))
            self._batch.put(f"{self._prefix}{len(self._summaries):09d}", entry)
            self._summaries.append((self._entries[0].hex(), len(self._entries)))
            self._entries = []

    def close(self) -> list[BlockSummary]:
        """Write the rest, and return what there is to tell of the blocks."""
        self._write()
        return self._summaries


def locate_blocks(batch_id: str, bucket: str, summaries: Sequence[BlockSummary]) -> list[CandidateBlock]:
    """Return the blocks of a bucket, in their order."""
    prefix = f"{candidate_prefix(batch_id)}{bucket}/"
    return [
        CandidateBlock(f"{prefix}{number:09d}", bytes.fromhex(first), count)
        for number, (first, count) in enumerate(summaries)
    ]


def read_block_entries(store: DataStore[DerivedRow], key_range: KeyRange) -> Iterator[list[bytes]]:
    """Yield the entries of the blocks in a range of rows, block by block."""
    for _, entry in store.scan(TableQuery(frozenset({DerivedRow.data}), key_range)):
        assert entry.data is not None
        yield _DECODER.decode(decompress_cell(entry.data))


def find_last_entry(
    buckets: Sequence[Sequence[CandidateBlock]], limit: int, read_block: Callable[[CandidateBlock], list[bytes]]
) -> bytes | None:
    """Return the last of the best ``limit`` entries over all buckets, None when there are no more than these.

    How many entries stand before a given one is known but for one block of each bucket; so of each bucket only the
    blocks are read between the first place that can be the last one's and the first that is surely behind it.
    """
    if sum(block.entry_count for blocks in buckets for block in blocks) <= limit:
        return None
    begun = before = 0
    low = high = b""
    under_way = [0] * len(buckets)
    starts = sorted(
        (block.first_entry, number, block.entry_count) for number, each in enumerate(buckets) for block in each
    )
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
            if high and block.first_entry >= high:
                break
            if place < len(blocks) and blocks[place].first_entry <= low:
                rank -= block.entry_count
            else:
                found += read_block(block)
    found.sort()
    return found[rank - 1]


def make_block_splits(
    buckets: Sequence[Sequence[CandidateBlock]], last_entry: bytes | None, task_count: int
) -> list[DerivedTableSplit]:
    """Return map input of about ``task_count`` tasks, at least one for each bucket: the blocks that begin before the cut."""
    found: list[DerivedTableSplit] = []
    for blocks in buckets:
        wanted = [block for block in blocks if last_entry is None or block.first_entry <= last_entry]
        pieces = min(len(wanted), max(1, task_count // len(buckets)))
        ends = [len(wanted) * number // pieces for number in range(pieces + 1)] if pieces else []
        found += [
            DerivedTableSplit(KeyRange(wanted[start].key, f"{wanted[end - 1].key}\x00"))
            for start, end in pairwise(ends)
        ]
    return found
