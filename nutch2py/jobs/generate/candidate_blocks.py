"""Candidate entries for a batch: each reduce task stores the best of its share in blocks, and the driver cuts at topN.

The derived table holds the blocks as ``c/<batch>/<bucket>/<number>``, best first, until the batch is made. The driver
gets only the first entry of each block and its number of entries. This locates the cut within a few blocks, which it
then reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from nutch2py.jobs.batches.batch_lists import candidate_prefix
from nutch2py.jobs.batches.cell_compression import compress_cell, decompress_cell
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.mapreduce.mrjob_protocols import escape_key, unescape_key
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.invariants import not_none
from nutch2py.table import DataStore, KeyRange, TableQuery, WriteBatch

ENTRIES_PER_BLOCK = 1_000
"""Candidates per block."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[bytes])
BlockSummary = tuple[str, int]
"""The first entry of a block (hexadecimal), and its number of entries."""


class CandidateBlock(NamedTuple):
    """A block: the key of its row, its first entry, and its number of entries."""

    key: str
    first_entry: bytes
    entry_count: int


def encode_entry(entry: str) -> bytes:
    """Return an entry in the form in which the shuffle sorts it."""
    return escape_key(entry).encode("utf-8", "surrogateescape")


def decode_entry(encoded: bytes) -> str:
    """Return the entry that :func:`encode_entry` encoded."""
    return unescape_key(encoded.decode("utf-8", "surrogateescape"))


class CandidateBlockWriter:
    """Writes the entries of one bucket, which must arrive best first. A repeat writes the same rows."""

    def __init__(self, batch: WriteBatch, batch_id: str, bucket: str) -> None:
        self._batch, self._prefix = batch, f"{candidate_prefix(batch_id)}{bucket}/"
        self._entries: list[bytes] = []
        self._summaries: list[BlockSummary] = []

    def add(self, entry: str) -> None:
        """Add an entry."""
        self._entries.append(encode_entry(entry))
        if len(self._entries) >= ENTRIES_PER_BLOCK:
            self._write()

    def _write(self) -> None:
        if self._entries:
            entry = DerivedRow()
            entry.data = compress_cell(_ENCODER.encode(self._entries))
            self._batch.put(f"{self._prefix}{len(self._summaries):09d}", entry)
            self._summaries.append((self._entries[0].hex(), len(self._entries)))
            self._entries = []

    def close(self) -> list[BlockSummary]:
        """Write the rest, and return the summaries of all blocks."""
        self._write()
        return self._summaries


def locate_blocks(batch_id: str, bucket: str, summaries: Sequence[BlockSummary]) -> list[CandidateBlock]:
    """Return the blocks of a bucket, in order."""
    prefix = f"{candidate_prefix(batch_id)}{bucket}/"
    return [
        CandidateBlock(f"{prefix}{number:09d}", bytes.fromhex(first), count)
        for number, (first, count) in enumerate(summaries)
    ]


def read_block_entries(store: DataStore[DerivedRow], key_range: KeyRange) -> Iterator[list[bytes]]:
    """Yield the entries of the blocks in a range of rows, block by block."""
    for _, entry in store.scan(TableQuery(frozenset({DerivedRow.data}), key_range)):
        yield _DECODER.decode(decompress_cell(not_none(entry.data, "block")))


def find_last_entry(
    buckets: Sequence[Sequence[CandidateBlock]], limit: int, read_block: Callable[[CandidateBlock], list[bytes]]
) -> bytes | None:
    """Return the last of the best ``limit`` entries over all buckets, None when there are no more than these.

    The number of entries before a given one is known except for one block of each bucket. So only the blocks are read
    between the first position where the last entry can be and the first position that is certainly after it.
    """
    if sum(block.entry_count for blocks in buckets for block in blocks) <= limit:
        return None
    started = before = 0
    low = high = b""
    open_counts = [0] * len(buckets)  # entries of the block of each bucket that started before
    starts = sorted(
        (block.first_entry, number, block.entry_count) for number, each in enumerate(buckets) for block in each
    )
    for first, bucket, count in starts:
        before += open_counts[bucket]  # the previous block of this bucket ends here
        open_counts[bucket] = count
        if before >= limit:
            high = first
            break
        started += count
        if not low and started >= limit:
            low = first
    rank = limit
    entries: list[bytes] = []
    for blocks in buckets:
        for position, block in enumerate(blocks, 1):
            if high and block.first_entry >= high:
                break
            if position < len(blocks) and blocks[position].first_entry <= low:
                rank -= block.entry_count
            else:
                entries += read_block(block)
    entries.sort()
    return entries[rank - 1]


def make_block_splits(
    buckets: Sequence[Sequence[CandidateBlock]], last_entry: bytes | None, task_count: int
) -> list[DerivedTableSplit]:
    """Return map input for about ``task_count`` tasks: the blocks that start before the cut, split by bucket."""
    splits: list[DerivedTableSplit] = []
    for blocks in buckets:
        selected = [block for block in blocks if last_entry is None or block.first_entry <= last_entry]
        pieces = min(len(selected), max(1, task_count // len(buckets)))
        ends = [len(selected) * number // pieces for number in range(pieces + 1)] if pieces else []
        splits += [
            DerivedTableSplit(KeyRange(selected[start].key, f"{selected[end - 1].key}\x00"))
            for start, end in pairwise(ends)
        ]
    return splits
