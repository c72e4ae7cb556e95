"""What a store may keep beside a table, derived from its rows: which are due, in order, and how many there are of each.

**The index** lists every row that has a cell in the families of the due time, the score or the marks. Entries stand by
the *slot* of their due time (2^22 ms, 70 minutes), then best score first, then by URL. So the best of what is due is
read first, slot by slot in turn, and the rest of the table is not looked at. The row itself says in the end what it
is worth and whether it is due: an index may list too much, and must not list too little.

**The figures** are what ``readdb -stats`` prints, as numbers of rows: in all, and by the cells of the columns that it
counts. They add up, so a write changes them by the cells that it takes away and those that it puts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from nutch2py.errors import StoreError, UsageError
from nutch2py.records.cells import CellError, decode_float, decode_int, decode_parse_status, decode_protocol_status
from nutch2py.records.record import Field

COUNTED_COLUMNS: dict[bytes, tuple[bytes, ...]] = {b"f": (b"st", b"rsf", b"fi", b"prot"), b"s": (b"s",), b"p": (b"st",)}
"""Family -> the columns of WebPage that the figures come from. A row is counted when it has any of them."""
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def score_thousandths(score: float) -> int:
    """Return the score in whole thousandths, cut off, within Java's long: the unit in which Nutch sums scores."""
    if score != score:
        return 0
    return _LONG_MAX if score * 1000.0 > _LONG_MAX else _LONG_MIN if score * 1000.0 < _LONG_MIN else int(score * 1000.0)


def statistic_name(family: bytes, qualifier: bytes, cell: bytes) -> str:
    """Return the name of the figure that counts a cell, "" for none; ``unreadable`` when it is not of its type."""
    try:
        match family, qualifier:
            case b"f", b"st":
                return f"status {decode_int(cell)}"
            case b"f", b"rsf":
                return f"retries {decode_int(cell)}"
            case b"f", b"prot":
                return f"protocol {decode_protocol_status(cell).code}"
            case b"p", b"st":
                status = decode_parse_status(cell)
                return f"parse {status.major} {status.minor}"
            case b"s", b"s":
                return f"score {score_thousandths(decode_float(cell))}"
            case _:
                decode_int(cell)
                return ""
    except CellError:
        return "unreadable"


@dataclass
class RowStatistics:
    """Numbers of rows. ``scores``: by whole thousandths; ``unreadable``: cells that are not of their columns' types.

    A row without the cell is in none of ``status``, ``retries``, ``scores``, and in ``total``.
    """

    total: int = 0
    unreadable: int = 0
    status: Counter[int] = field(default_factory=Counter)
    retries: Counter[int] = field(default_factory=Counter)
    protocol: Counter[int] = field(default_factory=Counter)
    parse: Counter[tuple[int, int]] = field(default_factory=Counter)
    scores: Counter[int] = field(default_factory=Counter)

    def add(self, name: str, count: int) -> None:
        """Take in a figure by its name, as :func:`statistic_name` gives it; ``total`` is one, too."""
        kind, *numbers = name.split(" ")
        match kind:
            case "total":
                self.total += count
            case "unreadable":
                self.unreadable += count
            case "parse":
                self.parse[int(numbers[0]), int(numbers[1])] += count
            case "status" | "retries" | "protocol":
                getattr(self, kind)[int(numbers[0])] += count
            case "score":
                self.scores[int(numbers[0])] += count


class TimeSpan(NamedTuple):
    """Due times from ``first`` to ``last``, both included, in ms since 1970."""

    first: int
    last: int

    def __contains__(self, time: object) -> bool:
        return isinstance(time, int) and self.first <= time <= self.last


class DueCandidate(NamedTuple):
    """An entry of the index: the row ``key``, and its ``sort_key`` among all that are due, the best first."""

    sort_key: bytes
    key: str


class DueIndex:
    """The index and the figures of one table. This one stands for a store that keeps none.

    ``unavailable_reason``: why they cannot be used, "" when they can. With trouble, reading them raises :class:`StoreError`.
    """

    is_sorted_by_score = True
    """:meth:`read` gives the rows of the best scores first; else :meth:`parts` are read, each in no order."""
    has_statistics = True
    """There are figures."""
    is_built_by_tasks = False
    """It is made by tasks that :meth:`put` all rows, after :meth:`begin` and before :meth:`complete`, not by
    :meth:`build`."""

    unindexed_count = 0
    """Rows that :meth:`rows` has found to be moved by a program that does not keep it."""

    def __init__(self, unavailable_reason: str) -> None:
        self.unavailable_reason = unavailable_reason

    def _raise_unavailable(self) -> NoReturn:
        raise StoreError(f"no index of what is due can be read: {self.unavailable_reason}")

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Return how many rows are due within ``spans``, at most ``limit``; entries of a slot count as one whole."""
        self._raise_unavailable()

    def read_candidates(self, spans: Sequence[TimeSpan], after_key: bytes, limit: int) -> list[DueCandidate]:
        """Return the next ``limit`` rows due within ``spans``, best first, whose places are behind ``after_key``."""
        self._raise_unavailable()

    def is_after_url(self, sort_key: bytes, url: str) -> bool:
        """Tell whether every entry of the same score from ``sort_key`` on has a URL that sorts behind ``url``."""
        self._raise_unavailable()

    def score_of(self, sort_key: bytes) -> float | None:
        """Return the score of the entry at ``sort_key``; None for a negative one, and for what is no number."""
        self._raise_unavailable()

    def after_score(self, sort_key: bytes) -> bytes:
        """Return the place behind all entries of the same score."""
        self._raise_unavailable()

    def partitions(self, count: int) -> list[tuple[int, int]]:
        """Return about ``count`` parts that tasks can read each for itself."""
        return [(0, 0)]

    def read_rows(
        self, spans: Sequence[TimeSpan], partition: tuple[int, int], fields: frozenset[Field[Any]]
    ) -> Iterator[tuple[str, Any]]:
        """Yield (row key, record with ``fields``) of those due within ``spans``, of one of the :meth:`parts`."""
        self._raise_unavailable()

    def known_row_count(self) -> int | None:
        """Return about how many rows the table has, as far as the index tells."""
        return None

    def full_scan_reason(self, now: int) -> str:
        """Return why all rows are to be looked at this time though there is an index, "" when they need not be."""
        return ""

    def record_full_scan(self, row_count: int) -> None:
        """Note that all rows were looked at, and how many there are."""

    def invalidate(self, reason: str) -> None:
        """Let nobody trust it any more, until it is made anew."""

    def find_missing_rows(self, rows: Sequence[tuple[str, int]]) -> list[str]:
        """Return the keys of those rows, given with their due times, that it does not list."""
        self._raise_unavailable()

    def add_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """List rows, given with their due times."""
        self._raise_unavailable()

    def start_build(self) -> None:
        """Begin to make it anew."""
        raise UsageError(f"no index of what is due can be made: {self.unavailable_reason}")

    def finish_build(self, row_count: int) -> None:
        """End to make it: it lists every row, of which there are so many."""
        self._raise_unavailable()

    def statistics(self) -> RowStatistics:
        """Return the figures of all rows."""
        self._raise_unavailable()

    def rebuild(self) -> int:
        """Make both anew from the rows; return how many entries there are. Who writes waits meanwhile."""
        raise UsageError(f"no index of what is due can be made: {self.unavailable_reason}")

    def check(self, report: Callable[[str], object]) -> int:
        """Compare both with the rows, and tell ``report`` where they differ; return how many entries there are."""
        self._raise_unavailable()

    def drop(self) -> None:
        """Throw both away; the table works without."""


def iter_candidates(index: DueIndex, spans: Sequence[TimeSpan], page_size: int) -> Iterator[DueCandidate]:
    """Yield all rows due within ``spans``, best first, read some at a time."""
    after = b""
    while found := index.read_candidates(spans, after, page_size):
        yield from found
        after = found[-1].sort_key
