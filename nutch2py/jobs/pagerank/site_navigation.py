"""Navigation in the link graph: which links of each site are left out of PageRank.

Whose navigation it is goes by the host: its pages stand together in the table, so sites are runs of pages. In memory
all runs are there. By MapReduce a map task sees whole runs, but for the first and the last one of what it holds, which
may go on elsewhere: of these *open* ones it hands on how many pages link to what, and the bucket of the targets adds
that up, site by site, before it reads their links. So no table of sites and targets is ever held.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.scoring.navigation_links import max_linking_pages, navigation_mask, site_navigation_mask
from nutch2py.scoring.pagerank_model import LinkArrays
from nutch2py.url.keys import reversed_host_of_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Indices = NDArray[np.int64]
    PageNumbers = NDArray[np.uint16]
    Mask = NDArray[np.bool_]

COUNTS_KIND = "#"
"""Begins a record of counts: sorts behind those of pages and before those of links."""
_NAME_LENGTH = 16  # hexadecimal digits of a site's name
_COUNT_BYTES = 14  # bytes of a hash, a count and a number


class SiteRuns:
    """The sites of pages that come in the order of their keys.

    ``starts``: which page each begins with; ``linking_pages``: how many of its pages have links, to whatever it be.
    """

    def __init__(self) -> None:
        self.starts, self.linking_pages = array("q"), array("q")
        self._host: str | None = None

    def add_page(self, number: int, key: str, links: Sequence[Iterable[str]]) -> None:
        """Add a page."""
        host = reversed_host_of_key(key)
        if host != self._host:
            self._host = host
            self.starts.append(number)
            self.linking_pages.append(0)
        if any(links):
            self.linking_pages[-1] += 1


def drop_navigation(
    links: LinkArrays, sites: SiteRuns, page_count: int, navigation_share: float, once: bool, links_per_chunk: int
) -> LinkArrays:
    """Return the links of one kind in memory that are no navigation; their targets are moved up in place.

    ``links_per_chunk``: how many links are looked at at once. Takes one byte a link besides, and 16 a page.
    """
    import numpy as np

    if not len(links.targets):
        return links
    starts = np.frombuffer(sites.starts, dtype=np.int64)
    allowed = max_linking_pages(np.frombuffer(sites.linking_pages, dtype=np.int64), navigation_share)
    before = np.concatenate([[0], np.cumsum(links.counts)])  # links of the pages before each page
    ends = before[np.append(starts[1:], page_count)]
    kept = np.empty(len(links.targets), dtype=bool)
    site = begin = 0
    while site < len(starts):
        last = max(
            int(np.searchsorted(ends, begin + links_per_chunk, side="right")), site + 1
        )  # as many as piece allows
        end = int(ends[last - 1])
        targets = links.targets[begin:end]
        if last == site + 1:
            out = (
                site_navigation_mask(targets, page_count, int(allowed[site]), once, links_per_chunk)
                if end > begin
                else kept[:0]
            )
        else:
            lengths = np.diff(ends[site:last], prepend=begin)
            out = navigation_mask(np.repeat(np.arange(last - site), lengths), targets, allowed[site:last], once)
        kept[begin:end] = ~out
        site, begin = last, end
    return _compact_links(links.targets, before, kept, links_per_chunk)


def _compact_links(targets: Indices, before: Indices, kept: Mask, piece: int) -> LinkArrays:
    """Return the links that are kept, in the place of all; ``before``: links of the pages before each page, and all."""
    import numpy as np

    total, kept_before = 0, np.zeros(len(before), dtype=np.int64)
    for start in range(0, len(targets), piece):
        some = kept[start : start + piece]
        ends = slice(*np.searchsorted(before, [start, start + len(some)], side="right").tolist())
        kept_before[ends] = total + np.cumsum(some)[before[ends] - start - 1]
        moved = targets[start : start + piece][some]
        targets[total : total + len(moved)] = moved
        total += len(moved)
    return LinkArrays(np.diff(kept_before), targets[:total])


class OpenSite(NamedTuple):
    """Pages of a site that may have more elsewhere: ``begin`` to ``end`` of a block; ``linking_pages``: how many have links.

    ``name``: what it is called in all tasks; ``first``: the key of its first page here, as what sorts like it.
    """

    name: str
    first: str
    begin: int
    end: int
    linking_pages: int


def find_open_sites(sites: SiteRuns, keys: Sequence[str], hash_key: Callable[[str], bytes]) -> list[OpenSite]:
    """Return the first and the last site of the pages that a task holds; ``keys``: of all pages of their block."""
    found = []
    for place in sorted({0, len(sites.starts) - 1}):
        begin = sites.starts[place]
        end = sites.starts[place + 1] if place + 1 < len(sites.starts) else len(keys)
        host = reversed_host_of_key(keys[begin])
        first = keys[begin][len(host) :].encode("utf-8", "surrogatepass").hex()
        found.append(OpenSite(hash_key(host).hex(), first, begin, end, sites.linking_pages[place]))
    return found


def mask_closed_navigation(
    sites: SiteRuns, hashes: Hashes, numbers: PageNumbers, navigation_share: float, once: bool
) -> Mask:
    """Tell which links of the sites between the open ones are left out; ``numbers`` are those of the pages."""
    import numpy as np

    starts = np.frombuffer(sites.starts, dtype=np.int64)
    allowed = max_linking_pages(np.frombuffer(sites.linking_pages, dtype=np.int64), navigation_share)
    return navigation_mask(np.searchsorted(starts, numbers, side="right") - 1, hashes, allowed, once)


def encode_site_counts(site: OpenSite, block: str, hashes: Hashes, counts: Indices, numbers: PageNumbers) -> str:
    """Return a record: how many pages link to each target, and which of them is the first."""
    data = hashes.astype("<u8").tobytes() + counts.astype("<u4").tobytes() + numbers.astype("<u2").tobytes()
    text = base64.b64encode(data).decode("ascii")
    return f"{COUNTS_KIND}{site.name}{site.first} {block} {site.linking_pages} {text}"  # of a site in the order of its pages


class _SiteTargets(NamedTuple):
    """What pages of a site link to: ``places`` of a bucket, ascending; how many do; the first of them, by its block."""

    places: Indices
    counts: Indices
    blocks: Indices
    numbers: PageNumbers

    @classmethod
    def combine(cls, parts: Sequence[_SiteTargets]) -> _SiteTargets:
        """Add up parts, those of the first pages first."""
        import numpy as np

        places, counts, blocks, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(places, kind="stable")
        places = places[order]
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        first = order[starts]
        return cls(places[starts], np.add.reduceat(counts[order], starts), blocks[first], numbers[first])

    def select(self, those: Mask) -> _SiteTargets:
        """Return some of them."""
        return _SiteTargets(self.places[those], self.counts[those], self.blocks[those], self.numbers[those])


class OpenSiteCounter:
    """Adds up the counts of open sites, one after the other, for the pages of a bucket.

    Holds some 50 bytes a page of the bucket for the site that is read, and of those that were read what is navigation.
    ``find``: gives the places of hashes, and whether they are in the bucket.
    """

    def __init__(self, find_hashes: Callable[[Hashes], tuple[Indices, Mask]], navigation_share: float) -> None:
        self._find_hashes, self._navigation_share = find_hashes, navigation_share
        self._blocks: dict[str, int] = {}
        self._navigation_by_site: dict[str, _SiteTargets] = {}
        self._site, self._linking_pages = "", 0
        self._parts: list[_SiteTargets] = []

    def add_record(self, record: str) -> None:
        """Add a record of :func:`encode_site_counts`; those of a site come together, in the order of its pages."""
        import numpy as np

        head, block, linking, text = record.removeprefix(COUNTS_KIND).split(" ")
        if head[:_NAME_LENGTH] != self._site:
            self.finish_site()
            self._site = head[:_NAME_LENGTH]
        self._linking_pages += int(linking)
        data = base64.b64decode(text)
        count = len(data) // _COUNT_BYTES
        places, found = self._find_hashes(np.frombuffer(data, "<u8", count))
        places = places[found]
        if not len(places):
            return
        counts = np.frombuffer(data, "<u4", count, count * 8)[found].astype(np.int64)
        numbers = np.frombuffer(data, "<u2", count, count * 12)[found]
        blocks = np.full(len(places), self._blocks.setdefault(block, len(self._blocks)))
        self._parts.append(_SiteTargets(places, counts, blocks, numbers))
        if sum(len(part.places) for part in self._parts[1:]) > len(self._parts[0].places):
            self._parts = [_SiteTargets.combine(self._parts)]  # what is there doubles between two such sums

    def finish_site(self) -> None:
        """Note what is navigation of the site that was read last."""
        import numpy as np

        if self._parts:
            total = _SiteTargets.combine(self._parts)
            over = total.counts > int(max_linking_pages(np.array([self._linking_pages]), self._navigation_share)[0])
            if over.any():
                self._navigation_by_site[self._site] = total.select(over)
        self._site, self._linking_pages, self._parts = "", 0, []

    def mask_navigation(self, site: str, block: str, places: Indices, numbers: PageNumbers, once: bool) -> Mask:
        """Tell which links of a site's pages of a block are left out; ``places`` of targets, ``numbers`` of pages."""
        import numpy as np

        known = self._navigation_by_site.get(site)
        if known is None:
            return np.zeros(len(places), dtype=bool)
        where = np.minimum(np.searchsorted(known.places, places), len(known.places) - 1)
        out: Mask = known.places[where] == places
        if once:
            out &= (known.blocks[where] != self._blocks.get(block, -1)) | (known.numbers[where] != numbers)
        return out


def count_targets(parts: Sequence[tuple[Hashes, PageNumbers]]) -> tuple[Hashes, Indices, PageNumbers]:
    """Return what links of each kind lead to, how many pages link to each target, and the first of these pages."""
    import numpy as np

    found = [np.unique(hashes, return_index=True, return_counts=True) for hashes, _ in parts]
    numbers = [numbers[first] for (_, numbers), (_, first, _) in zip(parts, found, strict=True)]
    targets, _, counts = (np.concatenate(each) for each in zip(*found, strict=True))
    return targets, counts, np.concatenate(numbers)
