"""Navigation: links that so many pages of a site have that they say nothing of the page they lead to.

A menu stands on every page, as does a footer, and tells what the site's design is, not what its authors cite. Such
links within a site are left out; one to another site counts once, as one page's: it is one voice, however often shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

MIN_ALLOWED_LINKS = 3
"""As many pages of a site may link to a page however small the site is."""


def max_linking_pages(linking: Indices, share: float) -> Indices:
    """Return how many pages of each site may link to one page; of more it is navigation.

    ``linking``: how many pages of each site have links; ``share`` of them: 1 calls nothing navigation.
    """
    import numpy as np

    allowed: Indices = np.maximum(np.floor(share * linking).astype(np.int64), MIN_ALLOWED_LINKS)
    return allowed


def navigation_mask(
    sites: Indices, targets: NDArray[np.int64 | np.uint64], allowed: Indices, keeps_first: bool
) -> Mask:
    """Tell of each link whether it is navigation that does not count.

    ``sites``: where in ``allowed`` the site stands that the link is from, ascending, and within a site in the order of its
    pages, each of which has a link to a target once; ``keeps_first``: the first of each site to a target counts.
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
    """Tell it of the links of one site, however many: 9 bytes for each of ``page_count``, and what ``chunk_size`` links take."""
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
