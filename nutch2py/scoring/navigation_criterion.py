"""Finds navigation links: links that so many pages of a site share that they carry no information on the target.

Menus and footers reflect the design of a site, not a choice of its authors. Navigation links within a site do not
count for PageRank. A navigation link to another site counts once, as the link of one page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

MIN_ALLOWED_LINKS = 3
"""Linking pages of a site that are never navigation, however small the site is."""


def max_linking_pages(linking: Indices, share: float) -> Indices:
    """Return the maximum number of linking pages by site; a link on more pages is navigation.

    Args:
        linking: Number of pages with links, by site.
        share: Part of these pages; with 1 no link is navigation.
    """
    import numpy as np

    allowed: Indices = np.maximum(np.floor(share * linking).astype(np.int64), MIN_ALLOWED_LINKS)
    return allowed


def navigation_mask(
    sites: Indices, targets: NDArray[np.int64 | np.uint64], allowed: Indices, keeps_first: bool
) -> Mask:
    """Return a mask of the links that are navigation and do not count.

    Args:
        sites: Index into ``allowed`` of the source site of each link, ascending, and within a site in the order of its
            pages. A page has a link to a target at most once.
        targets: Target of each link.
        allowed: Result of :func:`max_linking_pages`.
        keeps_first: The first link of each site to a target counts.
    """
    import numpy as np

    order = np.lexsort((targets, sites))
    sites, targets = sites[order], targets[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (sites[1:] != sites[:-1]) | (targets[1:] != targets[:-1])
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=len(order))
    out = np.repeat(counts > allowed[sites[starts]], counts)
    if keeps_first:
        out &= ~first
    found = np.empty(len(order), dtype=bool)
    found[order] = out
    return found


def site_navigation_mask(targets: Indices, page_count: int, allowed: int, keeps_first: bool, chunk_size: int) -> Mask:
    """Return :func:`navigation_mask` of one site of any size.

    Takes 9 bytes for each of ``page_count`` pages, and the memory of ``chunk_size`` links.
    """
    import numpy as np

    over = np.bincount(targets, minlength=page_count) > allowed
    seen = np.zeros(page_count, dtype=bool)
    out = np.empty(len(targets), dtype=bool)
    for start in range(0, len(targets), chunk_size):
        some = targets[start : start + chunk_size]
        found = over[some]
        if keeps_first:
            new = np.flatnonzero(found & ~seen[some])
            _, first = np.unique(some[new], return_index=True)
            found[new[first]] = False
            seen[some[new]] = True
        out[start : start + chunk_size] = found
    return out
