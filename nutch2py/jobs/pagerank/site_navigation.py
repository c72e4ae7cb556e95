"""Finds the navigation links of each site in the link graph, which do not count for PageRank.

Sites are hosts here. Their pages are adjacent in the table, so a site is a run of pages. In memory all runs are
complete. A MapReduce map task has complete runs except for its first and last one, which may continue in other tasks.
For these *open* sites it emits the number of linking pages by target. The bucket of the targets sums the counts, site
by site, before it reads the links. So no table of sites and targets is held in memory.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.scoring.navigation_criterion import max_linking_pages, navigation_mask, site_navigation_mask
from nutch2py.scoring.pagerank_model import LinkArrays
from nutch2py.url.keys import reversed_host_of_key

if TYPE_CHECKING:
    from nutch2py.jobs.pagerank.array_types import Hashes, Indices, Mask, PageNumbers

COUNTS_KIND = "#"
"""Prefix of a count record; sorts after records of pages and before records of links."""
_NAME_LENGTH = 16  # hexadecimal digits of a site's name
_COUNT_BYTES = 14  # hash, count and page number


class SiteRuns:
    """Sites of pages that are added in the order of their keys.

    Attributes:
        starts: First page of each site.
        linking_pages: Number of pages with links of each site.
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
    links: LinkArrays,
    sites: SiteRuns,
    page_count: int,
    navigation_share: float,
    keeps_first: bool,
    links_per_chunk: int,
) -> LinkArrays:
    """Return the links of one kind without navigation; compacts their targets in site_index.

    ``links_per_chunk``: number of links per step. Needs one extra byte per link, and 16 bytes per page.
    """
    import numpy as np

    if not len(links.targets):
        return links
    starts = np.frombuffer(sites.starts, dtype=np.int64)
    allowed = max_linking_pages(np.frombuffer(sites.linking_pages, dtype=np.int64), navigation_share)
    before = np.concatenate([[0], np.cumsum(links.counts)])  # number of links before each page
    ends = before[np.append(starts[1:], page_count)]
    kept = np.empty(len(links.targets), dtype=bool)
    site = start = 0
    while site < len(starts):
        # as many sites as fit into a chunk
        last = max(int(np.searchsorted(ends, start + links_per_chunk, side="right")), site + 1)
        end = int(ends[last - 1])
        targets = links.targets[start:end]
        if last == site + 1:
            is_navigation = (
                site_navigation_mask(targets, page_count, int(allowed[site]), keeps_first, links_per_chunk)
                if end > start
                else kept[:0]
            )
        else:
            lengths = np.diff(ends[site:last], prepend=start)
            is_navigation = navigation_mask(
                np.repeat(np.arange(last - site), lengths), targets, allowed[site:last], keeps_first
            )
        kept[start:end] = ~is_navigation
        site, start = last, end
    return _compact_links(links.targets, before, kept, links_per_chunk)


def _compact_links(targets: Indices, before: Indices, kept: Mask, chunk_size: int) -> LinkArrays:
    """Move the kept links to the front; ``before``: number of links before each page, and of all."""
    import numpy as np

    total, kept_before = 0, np.zeros(len(before), dtype=np.int64)
    for start in range(0, len(targets), chunk_size):
        chunk = kept[start : start + chunk_size]
        ends = slice(*np.searchsorted(before, [start, start + len(chunk)], side="right").tolist())
        kept_before[ends] = total + np.cumsum(chunk)[before[ends] - start - 1]
        kept_targets = targets[start : start + chunk_size][chunk]
        targets[total : total + len(kept_targets)] = kept_targets
        total += len(kept_targets)
    return LinkArrays(np.diff(kept_before), targets[:total])


class OpenSite(NamedTuple):
    """Pages of a site that may have more pages in other tasks.

    Attributes:
        name: Name of the site in all tasks.
        first: Key of its first page in this block, in a form that sorts like the key.
        start: First page in the block.
        end: Page after the last one.
        linking_pages: Number of pages with links.
    """

    name: str
    first: str
    start: int
    end: int
    linking_pages: int


def find_open_sites(sites: SiteRuns, keys: Sequence[str], hash_key: Callable[[str], bytes]) -> list[OpenSite]:
    """Return the first and the last site of a task; ``keys``: row keys of all pages of the block."""
    found = []
    for site_index in sorted({0, len(sites.starts) - 1}):
        start = sites.starts[site_index]
        end = sites.starts[site_index + 1] if site_index + 1 < len(sites.starts) else len(keys)
        host = reversed_host_of_key(keys[start])
        first = keys[start][len(host) :].encode("utf-8", "surrogatepass").hex()
        found.append(OpenSite(hash_key(host).hex(), first, start, end, sites.linking_pages[site_index]))
    return found


def mask_closed_navigation(
    sites: SiteRuns, hashes: Hashes, numbers: PageNumbers, navigation_share: float, keeps_first: bool
) -> Mask:
    """Return a mask of the navigation links of complete sites; ``numbers``: source page of each link."""
    import numpy as np

    starts = np.frombuffer(sites.starts, dtype=np.int64)
    allowed = max_linking_pages(np.frombuffer(sites.linking_pages, dtype=np.int64), navigation_share)
    return navigation_mask(np.searchsorted(starts, numbers, side="right") - 1, hashes, allowed, keeps_first)


def encode_site_counts(site: OpenSite, block: str, hashes: Hashes, counts: Indices, numbers: PageNumbers) -> str:
    """Encode a record: the number of linking pages of each target, and the first of them."""
    data = hashes.astype("<u8").tobytes() + counts.astype("<u4").tobytes() + numbers.astype("<u2").tobytes()
    text = base64.b64encode(data).decode("ascii")
    # records of a site sort in the order of its pages
    return f"{COUNTS_KIND}{site.name}{site.first} {block} {site.linking_pages} {text}"


class _SiteTargets(NamedTuple):
    """Targets of a site in a bucket: ascending positions, linking pages, block and number of the first of them."""

    positions: Indices
    counts: Indices
    blocks: Indices
    numbers: PageNumbers

    @classmethod
    def combine(cls, parts: Sequence[_SiteTargets]) -> _SiteTargets:
        """Sum parts, which are in the order of the pages."""
        import numpy as np

        positions, counts, blocks, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(positions, kind="stable")
        positions = positions[order]
        starts = np.flatnonzero(np.diff(positions, prepend=-1))
        first = order[starts]
        return cls(positions[starts], np.add.reduceat(counts[order], starts), blocks[first], numbers[first])

    def select(self, mask: Mask) -> _SiteTargets:
        """Return the selected targets."""
        return _SiteTargets(self.positions[mask], self.counts[mask], self.blocks[mask], self.numbers[mask])


class OpenSiteCounter:
    """Sums the counts of open sites, one after the other, for the pages of a bucket.

    Holds about 50 bytes per page of the bucket for the current site, and the navigation of the earlier sites.
    ``find_hashes`` returns the positions of hashes, and whether they are in the bucket.
    """

    def __init__(self, find_hashes: Callable[[Hashes], tuple[Indices, Mask]], navigation_share: float) -> None:
        self._find_hashes, self._navigation_share = find_hashes, navigation_share
        self._blocks: dict[str, int] = {}
        self._navigation_by_site: dict[str, _SiteTargets] = {}
        self._site, self._linking_pages = "", 0
        self._parts: list[_SiteTargets] = []

    def add_record(self, record: str) -> None:
        """Add a record of :func:`encode_site_counts`; records must be grouped by site, in the order of its pages."""
        import numpy as np

        head, block, linking, text = record.removeprefix(COUNTS_KIND).split(" ")
        if head[:_NAME_LENGTH] != self._site:
            self.finish_site()
            self._site = head[:_NAME_LENGTH]
        self._linking_pages += int(linking)
        data = base64.b64decode(text)
        count = len(data) // _COUNT_BYTES
        positions, found = self._find_hashes(np.frombuffer(data, "<u8", count))
        positions = positions[found]
        if not len(positions):
            return
        counts = np.frombuffer(data, "<u4", count, count * 8)[found].astype(np.int64)
        numbers = np.frombuffer(data, "<u2", count, count * 12)[found]
        blocks = np.full(len(positions), self._blocks.setdefault(block, len(self._blocks)))
        self._parts.append(_SiteTargets(positions, counts, blocks, numbers))
        if sum(len(part.positions) for part in self._parts[1:]) > len(self._parts[0].positions):
            self._parts = [_SiteTargets.combine(self._parts)]  # the size doubles between two merges

    def finish_site(self) -> None:
        """Store the navigation of the current site."""
        import numpy as np

        if self._parts:
            total = _SiteTargets.combine(self._parts)
            over = total.counts > int(max_linking_pages(np.array([self._linking_pages]), self._navigation_share)[0])
            if over.any():
                self._navigation_by_site[self._site] = total.select(over)
        self._site, self._linking_pages, self._parts = "", 0, []

    def mask_navigation(
        self, site: str, block: str, positions: Indices, numbers: PageNumbers, keeps_first: bool
    ) -> Mask:
        """Return a mask of the navigation links of a site in a block.

        Args:
            site: Name of the site.
            block: Block of the source pages.
            positions: Position of each target in the bucket.
            numbers: Source page of each link.
            keeps_first: The first link of the site to a target counts.
        """
        import numpy as np

        known = self._navigation_by_site.get(site)
        if known is None:
            return np.zeros(len(positions), dtype=bool)
        matches = np.minimum(np.searchsorted(known.positions, positions), len(known.positions) - 1)
        is_navigation: Mask = known.positions[matches] == positions
        if keeps_first:
            is_navigation &= (known.blocks[matches] != self._blocks.get(block, -1)) | (
                known.numbers[matches] != numbers
            )
        return is_navigation


def count_targets(parts: Sequence[tuple[Hashes, PageNumbers]]) -> tuple[Hashes, Indices, PageNumbers]:
    """Return targets, number of linking pages, and first linking page, for the links of each kind."""
    import numpy as np

    found = [np.unique(hashes, return_index=True, return_counts=True) for hashes, _ in parts]
    numbers = [numbers[first] for (_, numbers), (_, first, _) in zip(parts, found, strict=True)]
    targets, _, counts = (np.concatenate(each) for each in zip(*found, strict=True))
    return targets, counts, np.concatenate(numbers)
