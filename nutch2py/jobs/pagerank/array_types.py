"""Array types of the PageRank modules; for type checking only, so that numpy is not loaded at start-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    """Ranks and sums of ranks."""
    Hashes = NDArray[np.uint64]
    """Hashes of row keys."""
    PageNumbers = NDArray[np.uint16]
    """Numbers of pages within a block."""
    Indices = NDArray[np.int64]
    """Indices and counts."""
    Mask = NDArray[np.bool_]
    """Selection of array entries."""
