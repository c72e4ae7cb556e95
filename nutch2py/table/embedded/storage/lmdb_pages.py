"""Reader of LMDB files (format 1, LMDB 0.9) that treats every page as untrusted.

LMDB maps its file into memory and trusts it: reading a truncated page raises SIGBUS, and a changed pointer reads
arbitrary memory. So files are checked here before LMDB opens them (:func:`check_complete`), and damaged tables are read
with this module only. Every page, node and size is checked against the file before use.

A file starts with two meta pages; the one with the higher transaction number is current. It contains the last used page
and the roots of two trees: free pages by the transaction that freed them, and the named databases.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_MAGIC, _FORMAT = 0xBEEFC0DE, 1
_HEADER = struct.Struct("=QHHHH")  # page number, padding, flags, end of the pointers, start of the nodes
_TREE = struct.Struct("=IHHQQQQQ")  # padding, flags, depth, branch pages, leaf pages, overflow pages, entries, root
_META = struct.Struct("=IIQQ")  # magic, format, address, size of the map; two trees and two numbers follow
_NODE = struct.Struct("=HHHH")  # size of the value or page of the child (low, high), flags, size of the key
_BRANCH, _LEAF, _OVERFLOW, _META_FLAG = 1, 2, 4, 8
_BIG, _SUBTREE = 1, 2
_NO_ROOT = (1 << 64) - 1
_MAX_DEPTH = 32
_META_BYTES = _HEADER.size + _META.size + 2 * _TREE.size + 16
_TRIES = 20

ProblemReporter = Callable[[str], object]
"""Called with one line per problem."""


class DamagedFileError(Exception):
    """A page, a node or the file is damaged. The message does not contain the name of the file."""


class PageTree(NamedTuple):
    """A B-tree of the file: its number of entries, its depth, and its root page (None for an empty tree)."""

    entries: int
    depth: int
    root: int | None


class MetaPage(NamedTuple):
    """A meta page. ``last_page`` is the last used page, ``transaction`` the number of the transaction that wrote it."""

    page_size: int
    free_tree: PageTree
    main_tree: PageTree
    last_page: int
    transaction: int


def _parse_tree(data: bytes, at: int) -> PageTree:
    _, _, depth, _, _, _, entries, root = _TREE.unpack_from(data, at)
    return PageTree(entries, depth, None if root == _NO_ROOT else root)


def _parse_meta(data: bytes, which: int) -> MetaPage | None:
    """Return a meta page; None if another version of LMDB wrote it, which LMDB reports itself."""
    if len(data) < _META_BYTES:
        raise DamagedFileError("it ends within its first pages")
    number, _, flags, _, _ = _HEADER.unpack_from(data)
    magic, version, _, _ = _META.unpack_from(data, _HEADER.size)
    if magic != _MAGIC or flags != _META_FLAG or number != which:
        raise DamagedFileError(f"its page {which} is not a meta page of LMDB")
    if version != _FORMAT:
        return None
    at = _HEADER.size + _META.size
    page_size = _TREE.unpack_from(data, at)[0]
    last, transaction = struct.unpack_from("=QQ", data, at + 2 * _TREE.size)
    free, main = _parse_tree(data, at), _parse_tree(data, at + _TREE.size)
    if page_size & (page_size - 1) or not 256 <= page_size <= 1 << 16:
        raise DamagedFileError(f"its meta page {which} has an invalid page size of {page_size} bytes")
    return MetaPage(page_size, free, main, last, transaction)


class PageFile:
    """An LMDB file, read with plain reads; a context manager. Page numbers that it returns are checked."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self._file).st_size

    def read_metas(self) -> list[MetaPage]:
        """Return both meta pages, the current one first; an empty list for another version of LMDB.

        The other one may refer to missing pages: LMDB rolls back a failed write in this way.
        """
        first = _parse_meta(os.pread(self._file, _META_BYTES, 0), 0)
        if first is None:
            return []
        second = _parse_meta(os.pread(self._file, _META_BYTES, first.page_size), 1)
        if second is None:
            return []
        if second.page_size != first.page_size:
            raise DamagedFileError("its meta pages have different page sizes")
        if second.transaction > first.transaction:
            first, second = second, first
        for tree in (first.free_tree, first.main_tree):
            if (tree.root is not None and not 2 <= tree.root <= first.last_page) or tree.depth > _MAX_DEPTH:
                raise DamagedFileError(f"its meta page of transaction {first.transaction} has an invalid tree")
        return [first, second]

    def current_meta(self) -> MetaPage:
        """Return the current meta page."""
        metas = self.read_metas()
        if not metas:
            raise DamagedFileError("another version of LMDB wrote it")
        return metas[0]

    def select_meta(self, meta: MetaPage) -> None:
        """Read the file as of the transaction of ``meta``; clear the set of seen pages."""
        self.meta = meta
        self._seen = bytearray(meta.last_page // 8 + 1)

    def databases(self, report: ProblemReporter) -> dict[bytes, PageTree]:
        """Return the named databases."""
        return {
            name: _parse_tree(value, 0)
            for name, value, flags in self._entries(self.meta.main_tree, report)
            if flags & _SUBTREE and len(value) >= _TREE.size
        }

    def entries(self, tree: PageTree, report: ProblemReporter) -> Iterator[tuple[bytes, bytes]]:
        """Yield the readable keys and values in key order; pass problems to ``report``."""
        found, before = 0, b""
        for key, value, _ in self._entries(tree, report):
            found += 1
            if key <= before and found > 1:
                report(f"the key {key[:80]!r} is out of order")
                continue
            before = key
            yield key, value
        if found != tree.entries:
            report(f"{found} of {tree.entries} entries can be read")

    def pages_in_use(self, pages: set[int]) -> set[int]:
        """Return those of ``pages`` that a tree uses, as seen so far."""
        return {page for page in pages if page // 8 < len(self._seen) and self._seen[page // 8] >> page % 8 & 1}

    def free_pages(self) -> set[int]:
        """Return the numbers of the free pages."""
        free: set[int] = set()

        def fail(text: str) -> None:
            raise DamagedFileError(text)

        for _, value, _ in self._entries(self.meta.free_tree, fail):
            (count,) = struct.unpack_from("=Q", value)
            if (count + 1) * 8 > len(value):
                raise DamagedFileError("its list of free pages is too short")
            free.update(struct.unpack_from(f"={count}Q", value, 8))
        return free

    def find_value(self, tree: PageTree, key: bytes) -> bytes | None:
        """Return the value of a key, None if missing; raise DamagedFileError if a page on the path is damaged."""
        number = tree.root
        for _ in range(_MAX_DEPTH):
            if number is None:
                return None
            data, flags, nodes = self._read_nodes(number)
            if flags & _LEAF:
                for at in nodes:
                    found, value, _ = self._read_leaf(data, at)
                    if found == key:
                        return value
                return None
            child = None
            for place, at in enumerate(nodes):
                low, high, more, length = _NODE.unpack_from(data, at)
                if place and data[at + _NODE.size : at + _NODE.size + length] > key:
                    break
                child = low | high << 16 | more << 32
            number = child
        raise DamagedFileError("a tree exceeds the maximum depth")

    def _entries(self, tree: PageTree, report: ProblemReporter) -> Iterator[tuple[bytes, bytes, int]]:
        if tree.root is not None:
            yield from self._walk(tree.root, tree.depth, report)

    def _walk(self, number: int, depth: int, report: ProblemReporter) -> Iterator[tuple[bytes, bytes, int]]:
        try:
            self._mark_seen(number)
            data, flags, nodes = self._read_nodes(number)
            if depth < 1 or bool(flags & _LEAF) != (depth == 1):
                raise DamagedFileError(f"page {number} is on the wrong level of its tree")
        except DamagedFileError as error:
            report(str(error))
            return
        for at in nodes:
            if flags & _BRANCH:
                low, high, more, _ = _NODE.unpack_from(data, at)
                yield from self._walk(low | high << 16 | more << 32, depth - 1, report)
                continue
            try:
                entry = self._read_leaf(data, at, self._mark_seen)
            except DamagedFileError as error:
                report(str(error))
                continue
            yield entry

    def _mark_seen(self, number: int) -> None:
        place, bit = divmod(number, 8)
        if place < len(self._seen):
            if self._seen[place] >> bit & 1:
                raise DamagedFileError(f"page {number} is in use twice")
            self._seen[place] |= 1 << bit

    def _read_page(self, number: int, count: int = 1) -> bytes:
        if not 2 <= number <= self.meta.last_page - count + 1:
            raise DamagedFileError(f"page {number} is out of range, the last page is {self.meta.last_page}")
        data = os.pread(self._file, count * self.meta.page_size, number * self.meta.page_size)
        if len(data) < count * self.meta.page_size:
            raise DamagedFileError(f"page {number} is truncated")
        own = _HEADER.unpack_from(data)[0]
        if own != number:
            raise DamagedFileError(f"page {number} has the page number {own}")
        return data

    def _read_nodes(self, number: int) -> tuple[bytes, int, list[int]]:
        """Return a page of a tree, its flags, and the offsets of its nodes."""
        data = self._read_page(number)
        _, _, flags, lower, upper = _HEADER.unpack_from(data)
        size = self.meta.page_size
        if flags & (_BRANCH | _LEAF) not in (_BRANCH, _LEAF) or not _HEADER.size <= lower <= upper <= size:
            raise DamagedFileError(f"page {number} is not a page of a tree")
        nodes = [*struct.unpack_from(f"={(lower - _HEADER.size) // 2}H", data, _HEADER.size)]
        for at in nodes:
            if not upper <= at <= size - _NODE.size or at + _NODE.size + _NODE.unpack_from(data, at)[3] > size:
                raise DamagedFileError(f"page {number} has a node that exceeds the page")
        return data, flags, nodes

    def _read_leaf(
        self, data: bytes, at: int, mark_seen: Callable[[int], object] | None = None
    ) -> tuple[bytes, bytes, int]:
        """Return key, value and flags of a node; ``mark_seen`` is called for each overflow page of a long value."""
        low, high, flags, length = _NODE.unpack_from(data, at)
        size, start = low | high << 16, at + _NODE.size
        key = data[start : start + length]
        start += length
        if not flags & _BIG:
            if start + size > len(data):
                raise DamagedFileError(f"the value of {key[:80]!r} is longer than its page")
            return key, data[start : start + size], flags
        if start + 8 > len(data):
            raise DamagedFileError(f"the value of {key[:80]!r} is longer than its page")
        (number,) = struct.unpack_from("=Q", data, start)
        pages = (_HEADER.size + size - 1) // self.meta.page_size + 1
        whole = self._read_page(number, pages)
        own, _, kind, _, _ = _HEADER.unpack_from(whole)
        if not kind & _OVERFLOW or struct.unpack_from("=I", whole, 12)[0] < pages:
            raise DamagedFileError(f"page {own} does not contain the value of {key[:80]!r}")
        if mark_seen is not None:
            for each in range(number, number + pages):
                mark_seen(each)
        return key, whole[_HEADER.size : _HEADER.size + size], flags


def check_complete(path: Path) -> None:
    """Raise :class:`DamagedFileError` if a file was truncated, or its first pages are not LMDB's.

    Costs three small reads. A sound file may end before its last page, since pages that one transaction allocates and
    frees are never written. In that case every missing page must be free.
    """
    with PageFile(path) as file:
        for again in range(_TRIES, 0, -1):
            metas = file.read_metas()
            if not metas:
                return
            meta = metas[0]
            size = file.size  # read after the meta pages: a writer extends the file first
            if size >= (meta.last_page + 1) * meta.page_size:
                return
            file.select_meta(meta)
            try:
                free: set[int] = file.free_pages()
                lacking = set(range(size // meta.page_size, meta.last_page + 1)) - free
            except DamagedFileError:
                lacking = {meta.last_page}
            if not lacking:
                return
            if again == 1 or file.read_metas()[0].transaction == meta.transaction:
                raise DamagedFileError(
                    f"it was truncated: it has {size} bytes, and {(meta.last_page + 1) * meta.page_size} are in use"
                )
