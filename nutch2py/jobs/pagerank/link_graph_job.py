"""LinkGraphJob: converts the pages and links of the table into the numbered blocks of PageRank by MapReduce.

64-bit hashes of row keys identify pages until the targets of links are resolved. Map tasks emit arrays of hashes and
numbers, with thousands of links in a record.
"""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from nutch2py.conf.property_ranges import NumberRange
from nutch2py.jobs.batches.cell_compression import compress_cell, decompress_cell
from nutch2py.jobs.pagerank import graph_blocks
from nutch2py.jobs.pagerank.graph_blocks import (
    EXTERNAL_KIND,
    INTERNAL_KIND,
    BlockLinks,
    GraphBlockStore,
    block_name,
    encode_keys,
)
from nutch2py.jobs.pagerank.graph_links import LINK_GRAPH_FIELDS, GraphLinkRules, PageLinks
from nutch2py.jobs.pagerank.site_navigation import (
    COUNTS_KIND,
    OpenSite,
    OpenSiteCounter,
    SiteRuns,
    count_targets,
    encode_site_counts,
    find_open_sites,
    mask_closed_navigation,
)
from nutch2py.mapreduce.job_parameters import NON_NEGATIVE, JobParameters
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.table import WriteBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nutch2py.jobs.pagerank.array_types import Hashes, Indices, Mask, PageNumbers

_PAGES_KIND = "!"  # sorts before the kinds of links
_KEYS_PREFIX = "k"  # prefix of the shuffle key of row keys; other keys are hexadecimal numbers
MAX_KEY_CHARACTERS = 8_000_000
"""Characters of row keys in a block: HBase accepts cells up to 10 MB."""
_PAGES_PER_BUCKET = 250_000


def choose_bucket_bits(pages: int | None) -> int:
    """Return the number of hash bits that select a bucket; a reduce task holds the pages of one bucket in memory."""
    return 10 if pages is None else min(max((pages // _PAGES_PER_BUCKET).bit_length(), 6), 14)


def make_key_hash(salt: int) -> Callable[[str], bytes]:
    """Return the 8-byte hash function of a run; ``salt`` is 0 unless an earlier run had a hash collision."""
    prefix = salt.to_bytes(4, "little") if salt else b""

    def digest(key: str, blake2b: Any = hashlib.blake2b) -> bytes:
        value: bytes = blake2b(prefix + key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return value

    return digest


@dataclass(frozen=True, kw_only=True)
class LinkGraphParameters(JobParameters):
    """``bits``: hash bits that select the bucket; ``salt``: salt of the hashes, 0 without earlier collisions."""

    bits: int
    salt: int = 0
    ranges: ClassVar = {"bits": NumberRange(0, 64), "salt": NON_NEGATIVE}


class LinkGraphJob(TableJob[LinkGraphParameters]):
    """Converts pages and links of the table into numbered blocks.

    A map task numbers the pages of its range, and assigns the hashes of pages and link targets to buckets by their
    first bits. The first reduce step resolves the targets within a bucket. It drops links to rows outside the graph,
    and navigation links that the map task could not detect (see :mod:`nutch2py.jobs.pagerank.site_navigation`). The
    second step collects the links of a block and writes them.

    A map task holds the keys of a block and ``MAX_HELD_LINKS`` links. A reduce task holds the pages of a bucket, 24
    bytes each, and the links of one record; in the second step up to ``MAX_HELD_LINKS`` links.
    """

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    reduce_steps = 2
    fields = LINK_GRAPH_FIELDS

    def prepare(self) -> None:
        """Load the rules."""
        self.rules = GraphLinkRules(self.conf)
        self.block_store = GraphBlockStore(self.derived_store)
        self.hash_key = make_key_hash(self.parameters.salt)
        self.bucket_bits = self.parameters.bits

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the arrays of each block; remove the rank of rows outside the graph."""
        block = _PageBlockBuilder(self.hash_key, self.bucket_bits, self.rules.navigation_share)
        with self.store.batch(self.check_lock) as batch:
            for key, page in pages:
                if not self.rules.is_page(page):
                    if page.page_rank:
                        page.page_rank = 0.0
                        batch.put(key, page)
                    continue
                if block.is_full():
                    yield from block.finish()
                    block = _PageBlockBuilder(self.hash_key, self.bucket_bits, self.rules.navigation_share)
                elif block.links_held >= graph_blocks.MAX_HELD_LINKS:
                    yield from block.flush_links()
                block.add_page(key, self.rules.select_links(key, page))
            yield from block.finish()

    def reduce_step(self, groups: GroupedValues, step_num: int) -> Iterator[KeyValuePair]:
        """Resolve targets in the first step, write links in the second."""
        with self.derived_store.batch() as batch:
            for key, values in groups:
                if step_num:
                    self._write_links(batch, key, values)
                elif key.startswith(_KEYS_PREFIX):
                    pages = self.block_store.put_pages(
                        batch, key.removeprefix(_KEYS_PREFIX), _decode_base64(next(values))
                    )
                    self.count("pagerank", "pages", pages)
                    self.channel.advance(pages)
                else:
                    yield from self._find_targets(values)

    def _find_targets(self, values: Iterator[str]) -> Iterator[KeyValuePair]:
        """Yield the links to a bucket, keyed by their source block."""
        pages = _BucketIndexBuilder()
        value = next(values, "")
        while value.startswith(_PAGES_KIND):
            pages.add_pages(*_decode_hashes(value)[1:])
            value = next(values, "")
        targets = pages.build()
        self.count("pagerank", "collisions", targets.collisions)
        sites = OpenSiteCounter(targets.find, self.rules.navigation_share)
        while value.startswith(COUNTS_KIND):
            sites.add_record(value)
            value = next(values, "")
        sites.finish_site()
        while value:
            kind, name, hashes, numbers = _decode_hashes(value)
            block, _, site = name.partition("/")
            positions, found = targets.find(hashes)
            positions, numbers = positions[found], numbers[found]
            kept = ~sites.mask_navigation(site, block, positions, numbers, kind == EXTERNAL_KIND)
            positions, numbers = positions[kept], numbers[kept]
            self.count("pagerank", "links_skipped", len(hashes) - len(positions))
            if len(positions):
                yield block, kind + base64.b64encode(targets.encode_links(positions, numbers)).decode("ascii")
            value = next(values, "")

    def _write_links(self, batch: WriteBatch, block: str, values: Iterator[str]) -> None:
        """Write the links of a block."""
        import numpy as np

        degrees = np.zeros(graph_blocks.PAGES_PER_BLOCK, dtype=np.int64)
        collector, part = _BlockLinkCollector(block), 0
        for value in values:
            sources = collector.add_record(value)
            degrees += np.bincount(sources, minlength=len(degrees))
            if collector.link_count >= graph_blocks.MAX_HELD_LINKS:
                part = self._flush_links(batch, collector, part)
        self._flush_links(batch, collector, part)
        self.block_store.put_degrees(batch, block, np.trim_zeros(degrees, "b"))
        self.count("pagerank", "links", int(degrees.sum()))
        self.count("pagerank", "pages_with_links", int((degrees > 0).sum()))

    def _flush_links(self, batch: WriteBatch, collector: _BlockLinkCollector, part: int) -> int:
        for links in collector.drain():
            self.block_store.put_links(batch, links, part)
        return part + 1


class _PageBlockBuilder:
    """Collects the pages of a block in a map task, with links that were not emitted yet."""

    def __init__(self, hash_key: Callable[[str], bytes], bucket_bits: int, navigation_share: float) -> None:
        self._hash_key, self._bucket_bits, self._navigation_share = hash_key, bucket_bits, navigation_share
        self._keys: list[str] = []
        self._key_characters = 0
        self._targets = {INTERNAL_KIND: bytearray(), EXTERNAL_KIND: bytearray()}
        self._sources = {INTERNAL_KIND: array("H"), EXTERNAL_KIND: array("H")}
        self._sites = SiteRuns()
        self.links_held = 0

    def is_full(self) -> bool:
        """Return whether the block is full."""
        return len(self._keys) >= graph_blocks.PAGES_PER_BLOCK or self._key_characters >= MAX_KEY_CHARACTERS

    def add_page(self, key: str, links: PageLinks) -> None:
        """Add a page and its links."""
        number = array("H", (len(self._keys),))
        self._sites.add_page(len(self._keys), key, links)
        self._keys.append(key)
        self._key_characters += len(key)
        for kind, targets in ((INTERNAL_KIND, links.internal), (EXTERNAL_KIND, links.external)):
            if targets:
                self._targets[kind] += b"".join(map(self._hash_key, targets))
                self._sources[kind] += number * len(targets)
                self.links_held += len(targets)

    def flush_links(self) -> Iterator[KeyValuePair]:
        """Yield the buffered links by bucket, without navigation of complete sites."""
        import numpy as np

        links_by_kind = {
            kind: (np.frombuffer(targets, "<u8"), np.frombuffer(self._sources[kind], np.uint16))
            for kind, targets in self._targets.items()
        }
        open_sites = (
            find_open_sites(self._sites, self._keys, self._hash_key)
            if self._navigation_share < 1 and self._sites.starts
            else []
        )
        for site in open_sites:
            site_links = {kind: _select_site_links(site, *links) for kind, links in links_by_kind.items()}
            if site.linking_pages:
                yield from self._iter_site_counts(site, [*site_links.values()])
            for kind, links in site_links.items():
                yield from self._split_into_buckets(kind, *links, site.name)
        for kind, links in links_by_kind.items():
            yield from self._split_into_buckets(
                kind,
                *(self._drop_closed_navigation(open_sites, *links, kind == EXTERNAL_KIND) if open_sites else links),
            )
            self._targets[kind], self._sources[kind] = bytearray(), array("H")
        self._sites = SiteRuns()
        self.links_held = 0

    def _drop_closed_navigation(
        self, open_sites: list[OpenSite], hashes: Hashes, numbers: PageNumbers, keeps_first: bool
    ) -> tuple[Hashes, PageNumbers]:
        """Return the links of the complete sites, without navigation."""
        between = slice(_find_site_slice(open_sites[0], numbers).stop, _find_site_slice(open_sites[-1], numbers).start)
        hashes, numbers = hashes[between], numbers[between]
        kept = ~mask_closed_navigation(self._sites, hashes, numbers, self._navigation_share, keeps_first)
        return hashes[kept], numbers[kept]

    def _iter_site_counts(self, site: OpenSite, links: Sequence[tuple[Hashes, PageNumbers]]) -> Iterator[KeyValuePair]:
        """Yield for every bucket the page count of a site, and the counts of links to the bucket."""
        hashes, counts, numbers = count_targets(links)
        for bucket, selection in enumerate(self._group_by_bucket(hashes)):
            record = encode_site_counts(
                site, block_name(self._keys[0]), hashes[selection], counts[selection], numbers[selection]
            )
            yield f"{bucket:04x}", record

    def finish(self) -> Iterator[KeyValuePair]:
        """Yield the remaining links, the page numbers by bucket, and the row keys."""
        import numpy as np

        if not self._keys:
            return
        yield from self.flush_links()
        hashes = np.frombuffer(b"".join(map(self._hash_key, self._keys)), "<u8")
        yield from self._split_into_buckets(_PAGES_KIND, hashes, np.arange(len(self._keys), dtype=np.uint16))
        yield _KEYS_PREFIX + block_name(self._keys[0]), base64.b64encode(encode_keys(self._keys)).decode("ascii")

    def _split_into_buckets(
        self, kind: str, hashes: Hashes, numbers: PageNumbers, site: str = ""
    ) -> Iterator[KeyValuePair]:
        name = block_name(self._keys[0]) + (f"/{site}" if site else "")
        for bucket, selection in enumerate(self._group_by_bucket(hashes)):
            if len(selection):
                data = hashes[selection].astype("<u8").tobytes() + numbers[selection].astype("<u2").tobytes()
                yield f"{bucket:04x}", f"{kind}{name} {base64.b64encode(data).decode('ascii')}"

    def _group_by_bucket(self, hashes: Hashes) -> list[Indices]:
        """Return the indices of the hashes of each bucket."""
        import numpy as np

        buckets = (hashes >> np.uint64(64 - self._bucket_bits)).astype(np.uint16)
        order = np.argsort(buckets, kind="stable")
        return np.split(order, np.cumsum(np.bincount(buckets, minlength=1 << self._bucket_bits))[:-1])


def _select_site_links(site: OpenSite, hashes: Hashes, numbers: PageNumbers) -> tuple[Hashes, PageNumbers]:
    """Return the links of the pages of a site."""
    within = _find_site_slice(site, numbers)
    return hashes[within], numbers[within]


def _find_site_slice(site: OpenSite, numbers: PageNumbers) -> slice:
    """Return the slice of the links of a site; ``numbers``: source pages, ascending."""
    import numpy as np

    start, end = np.searchsorted(numbers, [site.start, site.end]).tolist()
    return slice(start, end)


class _BucketIndex(NamedTuple):
    """Pages of a bucket sorted by hash, with the index of their block in ``blocks`` and their number in it."""

    blocks: list[str]
    hashes: Hashes
    block_indices: Indices
    numbers: PageNumbers
    collisions: int

    def find(self, hashes: Hashes) -> tuple[Indices, Mask]:
        """Return the position of each hash (undefined if not found), and whether it was found."""
        import numpy as np

        if not len(self.hashes):
            return np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes), dtype=bool)
        positions = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return positions, self.hashes[positions] == hashes

    def encode_links(self, positions: Indices, sources: PageNumbers) -> bytes:
        """Encode links to the pages at the given positions, grouped by target block."""
        import numpy as np

        ranks = self.block_indices[positions]
        order = np.argsort(ranks, kind="stable")
        counts = np.bincount(ranks)
        used_blocks = np.flatnonzero(counts)
        table = ([self.blocks[rank] for rank in used_blocks.tolist()], counts[used_blocks].tolist())
        arrays = sources[order].astype("<u2").tobytes() + self.numbers[positions[order]].astype("<u2").tobytes()
        return compress_cell(msgspec.msgpack.encode((*table, arrays)))


class _BucketIndexBuilder:
    """Collects the pages of a bucket."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._hashes: list[Hashes] = []
        self._numbers: list[PageNumbers] = []

    def add_pages(self, block: str, hashes: Hashes, numbers: PageNumbers) -> None:
        """Add pages of a block."""
        self._blocks.append(block)
        self._hashes.append(hashes)
        self._numbers.append(numbers)

    def build(self) -> _BucketIndex:
        """Return the pages sorted by hash."""
        import numpy as np

        empty = np.zeros(0, dtype="<u8")
        hashes = np.concatenate([*self._hashes, empty])
        ranks = np.repeat(np.arange(len(self._hashes)), [len(each) for each in self._hashes])
        numbers = np.concatenate([*self._numbers, empty.astype("<u2")])
        order = np.argsort(hashes)
        hashes = hashes[order]
        collisions = int((hashes[1:] == hashes[:-1]).sum())
        return _BucketIndex(self._blocks, hashes, ranks[order], numbers[order], collisions)


class _BlockLinkCollector:
    """Collects the links of a block in a reduce task."""

    def __init__(self, block: str) -> None:
        self._block = block
        self._target_indices: dict[tuple[str, str], int] = {}  # by target block and kind
        self._arrays: list[tuple[NDArray[np.int32], PageNumbers, PageNumbers]] = []
        self.link_count = 0

    def add_record(self, value: str) -> PageNumbers:
        """Add the links of a record; return the numbers of the source pages."""
        import numpy as np

        kind, packed = value[0], decompress_cell(_decode_base64(value[1:]))
        names, counts, arrays = msgspec.msgpack.decode(packed, type=tuple[list[str], list[int], bytes])
        positions = [self._target_indices.setdefault((name, kind), len(self._target_indices)) for name in names]
        sources, targets = np.frombuffer(arrays, dtype="<u2").reshape(2, -1)
        self._arrays.append((np.repeat(np.array(positions, dtype=np.int32), counts), sources, targets))
        self.link_count += len(sources)
        return sources

    def drain(self) -> Iterator[BlockLinks]:
        """Yield the links by target block, and clear the buffer."""
        import numpy as np

        if not self._arrays:
            return
        positions, sources, targets = (np.concatenate(each) for each in zip(*self._arrays, strict=True))
        self._arrays, self.link_count = [], 0
        order = np.argsort(positions, kind="stable")
        sources, targets = sources[order], targets[order]
        ends = np.cumsum(np.bincount(positions, minlength=len(self._target_indices))).tolist()
        for ((target, kind), target_index), start in zip(self._target_indices.items(), [0, *ends], strict=False):
            if ends[target_index] > start:
                selection = slice(start, ends[target_index])
                yield BlockLinks(self._block, target, kind, sources[selection], targets[selection])


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text)


def _decode_hashes(value: str) -> tuple[str, str, Hashes, PageNumbers]:
    import numpy as np

    block, _, data = value[1:].partition(" ")
    packed = base64.b64decode(data)
    count = len(packed) // 10
    return value[0], block, np.frombuffer(packed, "<u8", count), np.frombuffer(packed, "<u2", offset=count * 8)
