"""Where PageRank by MapReduce keeps its graph: blocks of pages and of links in the derived table.

The table of pages is read once. Its pages get numbers within blocks of some ten thousand, in the order of their row
keys; ranks, numbers of links and links are kept as arrays, a row each, so an iteration reads eight bytes a link:

- ``r/n/<block>``: number of pages of the block (``count``); ``r/k/<block>``: their row keys;
- ``r/c/<block>/<part>``: pages of the block that have links, and how many;
- ``r/e/<from>/<to>/<kind><part>``: links from block to block, of one kind, as two arrays of numbers;
- ``r/r/<0|1>/<block>``: ranks after an even and an odd number of iterations.

A block is named by the hash of its first key: tasks that run again write the same rows.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import zstandard

from nutch2py.jobs.batchlist import prefix_range
from nutch2py.table import DataStore, KeyRange, Query, WriteBatch
from nutch2py.webpage import BatchEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]

PREFIX = "r/"
LINKS, PAGES, KEYS = "r/e/", "r/n/", "r/k/"
INTERNAL, EXTERNAL = "i", "x"
PAGES_PER_BLOCK = 65_536
_LINKS_PER_ROW = 500_000  # 4 MB before compression: HBase takes cells of 10 MB
_LINKS_HELD = 4_000_000


class BlockStore:
    """Reads and writes the arrays. ``store``: the derived table ``batch``."""

    def __init__(self, store: DataStore[BatchEntry]) -> None:
        self.store = store
        self._degrees: tuple[str, Numbers] | None = None

    def put(self, batch: WriteBatch, key: str, data: bytes, count: int = 0) -> None:
        """Write a row."""
        entry = BatchEntry()
        entry.data, entry.count = zstandard.compress(data, 1), count
        batch.put(key, entry)

    def put_pages(self, batch: WriteBatch, keys: list[str]) -> None:
        """Write the row keys of a block, all of them."""
        block = block_name(keys[0])
        entry = BatchEntry()
        entry.count = len(keys)
        batch.put(PAGES + block, entry)
        self.put(batch, KEYS + block, msgspec.msgpack.encode(keys))

    def keys(self, entry: BatchEntry) -> list[str]:
        """Return the row keys of a block from its row."""
        return msgspec.msgpack.decode(_data(entry), type=list[str])

    def pages(self, block: str) -> int:
        """Return how many pages a block has."""
        entry = self.store.get(PAGES + block, {BatchEntry.count})
        return 0 if entry is None else entry.count

    def degrees(self, block: str) -> Numbers:
        """Return how many links each page of a block has; the block asked for last is kept."""
        import numpy as np

        if self._degrees is None or self._degrees[0] != block:
            found = np.zeros(self.pages(block), dtype=np.int64)
            query = Query(frozenset({BatchEntry.data}), prefix_range(f"r/c/{block}/"))
            for _, entry in self.store.scan(query):
                pages, counts = np.frombuffer(_data(entry), dtype=np.uint32).reshape(2, -1)
                found[pages] = counts
            self._degrees = block, found
        return self._degrees[1]

    def ranks(self, block: str, iteration: int, initial: float) -> Floats:
        """Return the ranks of a block after ``iteration`` iterations; it must be the last or the one before."""
        import numpy as np

        if iteration == 0:
            return np.full(self.pages(block), initial)
        entry = self.store.get(f"r/r/{iteration % 2}/{block}", {BatchEntry.data})
        assert entry is not None
        return np.frombuffer(_data(entry), dtype=np.float64)

    def put_ranks(self, batch: WriteBatch, block: str, iteration: int, ranks: Floats) -> None:
        """Write the ranks of a block after an iteration; they replace those of two iterations before."""
        self.put(batch, f"r/r/{iteration % 2}/{block}", ranks.tobytes())

    def links(self, key_range: KeyRange) -> Iterator[tuple[str, str, str, Numbers, Numbers]]:
        """Yield (from block, to block, kind, numbers in the one, numbers in the other) of a range of rows."""
        import numpy as np

        for key, entry in self.store.scan(Query(frozenset({BatchEntry.data}), key_range)):
            _, _, source, target, part = key.split("/")
            sources, targets = np.frombuffer(_data(entry), dtype=np.uint32).reshape(2, -1).astype(np.int64)
            yield source, target, part[0], sources, targets


class LinkWriter:
    """Gathers the links of one reduce task, by the blocks that they lead from and to."""

    def __init__(self, blocks: BlockStore, batch: WriteBatch) -> None:
        self.blocks, self.batch = blocks, batch
        self._links: dict[tuple[str, str, str], tuple[array[int], array[int]]] = {}
        self._degrees: dict[str, tuple[array[int], array[int]]] = {}
        self._held = 0
        self._parts = 0

    def add(self, block: str, page: int, links: list[tuple[str, str, int]]) -> None:
        """Add a page's links: (kind, block, number in it)."""
        pages, counts = self._degrees.setdefault(block, (array("I"), array("I")))
        pages.append(page)
        counts.append(len(links))
        for kind, target, number in links:
            sources, targets = self._links.setdefault((block, target, kind), (array("I"), array("I")))
            sources.append(page)
            targets.append(number)
            if len(sources) >= _LINKS_PER_ROW:
                self._write_links(block, target, kind)
        self._held += len(links)
        if self._held >= _LINKS_HELD:
            self.flush()

    def _write_links(self, block: str, target: str, kind: str) -> None:
        sources, targets = self._links.pop((block, target, kind))
        self._parts += 1
        # pages come in one order, so the first of a part, and its rank among parts, name it however often it is made
        name = f"{LINKS}{block}/{target}/{kind}{sources[0]:08d}-{self._parts:06d}"
        self.blocks.put(self.batch, name, sources.tobytes() + targets.tobytes())
        self._held -= len(sources)

    def flush(self) -> None:
        """Write all that is held."""
        for block, target, kind in list(self._links):
            self._write_links(block, target, kind)
        for block, (pages, counts) in self._degrees.items():
            self.blocks.put(self.batch, f"r/c/{block}/{pages[0]:08d}", pages.tobytes() + counts.tobytes())
        self._degrees = {}


def block_name(first_key: str) -> str:
    """Return the name of a block."""
    return hashlib.blake2b(first_key.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _data(entry: BatchEntry) -> bytes:
    return zstandard.decompress(entry.data or b"")
