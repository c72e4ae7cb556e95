"""Stores the link graph of PageRank by MapReduce as blocks of pages and links in the derived table.

The page table is read once. Pages get numbers within blocks of up to 65,536, in the order of their row keys. Ranks,
link counts and links are arrays, so an iteration reads four bytes per link before compression:

- ``r/e/<block>``: number of pages of the block (``count``);
- ``r/e/<from>/<to>/<kind><part>``: links of one kind between two blocks, as two arrays of page numbers;
- ``r/k/<block>``: row keys of the pages of the block;
- ``r/c/<block>``: number of links of its pages, without trailing zeros;
- ``r/r/<0|1>/<block>``: ranks after an even and an odd number of iterations.

The name of a block is the hash of its first key, so repeated tasks write the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nutch2py.jobs.batches.cell_compression import compress_cell, decompress_cell
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.invariants import not_none
from nutch2py.table import DataStore, KeyRange, TableQuery, WriteBatch

if TYPE_CHECKING:
    from nutch2py.jobs.pagerank.array_types import Floats, Indices, PageNumbers

BLOCKS_PREFIX = "r/"
LINKS_PREFIX, KEYS_PREFIX = "r/e/", "r/k/"
_DEGREES_PREFIX, _RANKS_PREFIX = "r/c/", "r/r/"
LINK_SPLIT_KEYS = [f"{LINKS_PREFIX}{byte:02x}" for byte in range(256)]
"""Keys that split the rows of links into parts of similar size; block names are digests."""
INTERNAL_KIND, EXTERNAL_KIND = "i", "x"
PAGES_PER_BLOCK = 65_536
"""Limit of 16-bit page numbers within a block."""
MAX_HELD_LINKS = 2_000_000
"""Links that a task buffers before it writes or emits them: about 100 MB, and at most 8 MB in a cell."""


class BlockLinks(NamedTuple):
    """Links of one kind between two blocks, with the numbers of source and target pages."""

    source_block: str
    target_block: str
    kind: str
    source_numbers: PageNumbers
    target_numbers: PageNumbers


class GraphBlockStore:
    """Reads and writes the arrays in ``store``, the derived table."""

    def __init__(self, store: DataStore[DerivedRow]) -> None:
        self.store = store
        self._cached_degrees: tuple[str, Indices] | None = None

    def _put_data(self, batch: WriteBatch, key: str, data: bytes) -> None:
        entry = DerivedRow()
        entry.data = compress_cell(data)
        batch.put(key, entry)

    def put_pages(self, batch: WriteBatch, block: str, encoded_keys: bytes) -> int:
        """Write all row keys of a block, encoded by :func:`encode_keys`; return their number."""
        pages, keys = DerivedRow(), DerivedRow()
        pages.count, keys.data = len(_decode_keys(encoded_keys)), encoded_keys
        batch.put(LINKS_PREFIX + block, pages)
        batch.put(KEYS_PREFIX + block, keys)
        return pages.count

    def decode_row_keys(self, entry: DerivedRow) -> list[str]:
        """Return the row keys of a block from its row."""
        return _decode_keys(entry.data or b"")

    def count_pages(self, block: str) -> int:
        """Return the number of pages of a block."""
        entry = self.store.get(LINKS_PREFIX + block, {DerivedRow.count})
        return 0 if entry is None else entry.count

    def put_degrees(self, batch: WriteBatch, block: str, degrees: Indices) -> None:
        """Write the link counts of the first pages of a block; the others have no links."""
        self._put_data(batch, _DEGREES_PREFIX + block, degrees.astype("<u4").tobytes())

    def get_degrees(self, block: str) -> Indices:
        """Return the link count of each page of a block; the last block is cached."""
        import numpy as np

        if self._cached_degrees is None or self._cached_degrees[0] != block:
            degrees = np.zeros(self.count_pages(block), dtype=np.int64)
            entry = self.store.get(_DEGREES_PREFIX + block, {DerivedRow.data})
            if entry is not None:
                known = np.frombuffer(_decompress_data(entry), dtype="<u4")
                degrees[: len(known)] = known
            self._cached_degrees = block, degrees
        return self._cached_degrees[1]

    def get_ranks(self, block: str, iteration: int, initial: float) -> Floats:
        """Return the ranks of a block after ``iteration`` iterations, which must be the last or last but one."""
        import numpy as np

        if iteration == 0:
            return np.full(self.count_pages(block), initial)
        entry = self.store.get(f"{_RANKS_PREFIX}{iteration % 2}/{block}", {DerivedRow.data})
        return np.frombuffer(_decompress_data(not_none(entry, "block of ranks")), dtype=np.float64)

    def put_ranks(self, batch: WriteBatch, block: str, iteration: int, ranks: Floats) -> None:
        """Write the ranks of a block after an iteration; they replace those of two iterations before."""
        self._put_data(batch, f"{_RANKS_PREFIX}{iteration % 2}/{block}", ranks.tobytes())

    def put_links(self, batch: WriteBatch, links: BlockLinks, part: int) -> None:
        """Write links; ``part``: number of the row for these blocks and this kind."""
        name = f"{LINKS_PREFIX}{links.source_block}/{links.target_block}/{links.kind}{part:06d}"
        self._put_data(batch, name, links.source_numbers.tobytes() + links.target_numbers.tobytes())

    def iter_links(self, key_range: KeyRange) -> Iterator[BlockLinks | str]:
        """Yield the names of the blocks in a range of rows, and the links from each."""
        import numpy as np

        for key, entry in self.store.scan(TableQuery(frozenset({DerivedRow.data, DerivedRow.count}), key_range)):
            _, _, source, *rest = key.split("/")
            if not rest:
                yield source
                continue
            sources, targets = np.frombuffer(_decompress_data(entry), dtype="<u2").reshape(2, -1)
            yield BlockLinks(source, rest[0], rest[1][0], sources, targets)


def block_name(first_key: str) -> str:
    """Return the name of a block."""
    return hashlib.blake2b(first_key.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def encode_keys(keys: list[str]) -> bytes:
    """Return row keys as bytes, compressed."""
    return compress_cell(msgspec.msgpack.encode([key.encode("utf-8", "surrogatepass") for key in keys]))


def _decode_keys(packed: bytes) -> list[str]:
    keys = msgspec.msgpack.decode(decompress_cell(packed), type=list[bytes])
    return [key.decode("utf-8", "surrogatepass") for key in keys]


def _decompress_data(entry: DerivedRow) -> bytes:
    return decompress_cell(entry.data or b"")
