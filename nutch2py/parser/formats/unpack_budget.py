"""Budget for unpacking one page: limits of bytes, documents, depth and ratio for it and everything embedded in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.document_parser import DocumentLimitError

_MIN_UNPACK_BYTES = 8 << 20  # minimum limit of a package's unpacked bytes


@dataclass
class UnpackBudget:
    """Remaining budget of one page and everything embedded in it, at any depth.

    ``max_ratio``: maximum ratio of unpacked to packed bytes of each package, 0 for no limit.
    """

    bytes_left: int
    documents_left: int
    depth_left: int
    max_ratio: int = 0

    def spend(self, size: int) -> None:
        """Subtract ``size`` unpacked bytes; raise DocumentLimitError when the budget is used up."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise DocumentLimitError("unpacks to more bytes than parser.unpack.max.bytes")


class PackageBudget:
    """Budget of one package (ZIP, tar, compressed file) of ``size`` bytes: the page's, and the package's own ratio."""

    def __init__(self, budget: UnpackBudget, size: int) -> None:
        self._budget = budget
        self._bytes_left = max(_MIN_UNPACK_BYTES, budget.max_ratio * size) if budget.max_ratio > 0 else sys.maxsize

    @property
    def bytes_left(self) -> int:
        """The bytes that may still be unpacked."""
        return min(self._bytes_left, self._budget.bytes_left)

    def spend(self, size: int) -> None:
        """Subtract ``size`` unpacked bytes; raise DocumentLimitError when a limit is exceeded."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise DocumentLimitError("unpacks to more than parser.unpack.max.ratio times its size")
        self._budget.spend(size)


_current_budget: ContextVar[UnpackBudget | None] = ContextVar("budget", default=None)


@contextmanager
def unpack_budget(conf: Configuration) -> Iterator[UnpackBudget]:
    """Provide the budget of the current page: a new one for the page, the same one for its embedded documents."""
    budget = _current_budget.get()
    if budget is not None:
        yield budget
        return
    budget = UnpackBudget(
        conf.get_int("parser.unpack.max.bytes", 100 << 20),
        conf.get_int("parser.unpack.max.documents", 1000),
        conf.get_int("parser.unpack.max.depth", 16),
        conf.get_int("parser.unpack.max.ratio", 100),
    )
    token = _current_budget.set(budget)
    try:
        yield budget
    finally:
        _current_budget.reset(token)
