"""Where PageRank by MapReduce keeps its graph: blocks of pages and of links in the derived table.

The table of pages is read once. Its pages get numbers within blocks of at most 65,536, in the order of their row keys;
ranks, numbers of links and links are kept as arrays, so an iteration reads four bytes a link, before compression:

- ``r/e/<block>``: number of pages of the block (``count``);
- ``r/e/<from>/<to>/<kind><part>``: links from block to block, of one kind, as two arrays of numbers;
- ``r/k/<block>``: row keys of the pages of the block;
- ``r/c/<block>``: how many links its pages have, without those at the end that have none;
- ``r/r/<0|1>/<block>``: ranks after an even and an odd number of iterations.

A block is named by the hash of its first key: tasks that run again write the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nutch2py.jobs.batchlist import pack, unpack
from nutch2py.table import DataStore, KeyRange, Query, WriteBatch
from nutch2py.webpage import BatchEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.uint16]
    Indices = NDArray[np.int64]

PREFIX = "r/"
LINKS, KEYS = "r/e/", "r/k/"
_DEGREES, _RANKS = "r/c/", "r/r/"
CUTS = [f"{LINKS}{byte:02x}" for byte in range(256)]
"""Keys that cut the rows of links, by far the most, into parts of like size: a block is named by a digest."""
INTERNAL, EXTERNAL = "i", "x"
PAGES_PER_BLOCK = 65_536
"""A number of a page within its block is a 16-bit one."""
LINKS_HELD = 2_000_000
"""Links that a task holds before it writes them or hands them on: some 100 MB, and in a cell, 8 MB at most."""


class BlockLinks(NamedTuple):
    """Links of one kind from block to block: the numbers of the pages that they lead from and to."""

    source: str
    target: str
    kind: str
    sources: Numbers
    targets: Numbers


class BlockStore:
    """Reads and writes the arrays. ``store``: the derived table ``batch``."""

    def __init__(self, store: DataStore[BatchEntry]) -> None:
        self.store = store
        self._degrees: tuple[str, Indices] | None = None

    def _put(self, batch: WriteBatch, key: str, data: bytes) -> None:
        entry = BatchEntry()
        entry.data = pack(data)
        batch.put(key, entry)

    def put_pages(self, batch: WriteBatch, block: str, packed_keys: bytes) -> int:
        """Write the row keys of a block, all of them, as :func:`pack_keys` gives them; return how many there are."""
        pages, keys = BatchEntry(), BatchEntry()
        pages.count, keys.data = len(_unpack_keys(packed_keys)), packed_keys
        batch.put(LINKS + block, pages)
        batch.put(KEYS + block, keys)
        return pages.count

    def keys(self, entry: BatchEntry) -> list[str]:
        """Return the row keys of a block from its row."""
        return _unpack_keys(entry.data or b"")

    def pages(self, block: str) -> int:
        """Return how many pages a block has."""
        entry = self.store.get(LINKS + block, {BatchEntry.count})
        return 0 if entry is None else entry.count

    def put_degrees(self, batch: WriteBatch, block: str, degrees: Indices) -> None:
        """Write how many links the first pages of a block have; the others have none."""
        self._put(batch, _DEGREES + block, degrees.astype("<u4").tobytes())

    def degrees(self, block: str) -> Indices:
        """Return how many links each page of a block has; the block asked for last is kept."""
        import numpy as np

        if self._degrees is None or self._degrees[0] != block:
            found = np.zeros(self.pages(block), dtype=np.int64)
            entry = self.store.get(_DEGREES + block, {BatchEntry.data})
            if entry is not None:
                known = np.frombuffer(_data(entry), dtype="<u4")
                found[: len(known)] = known
            self._degrees = block, found
        return self._degrees[1]

    def ranks(self, block: str, iteration: int, initial: float) -> Floats:
        """Return the ranks of a block after ``iteration`` iterations; it must be the last or the one before."""
        import numpy as np

        if iteration == 0:
            return np.full(self.pages(block), initial)
        entry = self.store.get(f"{_RANKS}{iteration % 2}/{block}", {BatchEntry.data})
        assert entry is not None
        return np.frombuffer(_data(entry), dtype=np.float64)

    def put_ranks(self, batch: WriteBatch, block: str, iteration: int, ranks: Floats) -> None:
        """Write the ranks of a block after an iteration; they replace those of two iterations before."""
        self._put(batch, f"{_RANKS}{iteration % 2}/{block}", ranks.tobytes())

    def put_links(self, batch: WriteBatch, links: BlockLinks, part: int) -> None:
        """Write links; ``part``: a number for each row of links between the same blocks."""
        name = f"{LINKS}{links.source}/{links.target}/{links.kind}{part:06d}"
        self._put(batch, name, links.sources.tobytes() + links.targets.tobytes())

    def links(self, key_range: KeyRange) -> Iterator[BlockLinks | str]:
        """Yield the names of the blocks in a range of rows, and the links from each."""
        import numpy as np

        for key, entry in self.store.scan(Query(frozenset({BatchEntry.data, BatchEntry.count}), key_range)):
            _, _, source, *rest = key.split("/")
            if not rest:
                yield source
                continue
            sources, targets = np.frombuffer(_data(entry), dtype="<u2").reshape(2, -1)
            yield BlockLinks(source, rest[0], rest[1][0], sources, targets)


def block_name(first_key: str) -> str:
    """Return the name of a block."""
    return hashlib.blake2b(first_key.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def pack_keys(keys: list[str]) -> bytes:
    """Return row keys as bytes, compressed."""
    return pack(msgspec.msgpack.encode([key.encode("utf-8", "surrogatepass") for key in keys]))


def _unpack_keys(packed: bytes) -> list[str]:
    keys = msgspec.msgpack.decode(unpack(packed), type=list[bytes])
    return [key.decode("utf-8", "surrogatepass") for key in keys]


def _data(entry: BatchEntry) -> bytes:
    return unpack(entry.data or b"")
