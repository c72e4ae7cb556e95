"""Interface of the due index and the row statistics, which a store derives from its rows.

**The due index** lists every row with a cell in the families of the due time, the score or the marks. Entries are
ordered by the *slot* of their due time (2^22 ms, 70 minutes), then by descending score, then by URL. A job reads the
best due rows first, slot by slot, and skips the rest of the table. The row itself decides whether it is due and what
its score is: an index may contain too many entries, but never too few.

**The row statistics** are the numbers that ``readdb -stats`` prints: rows in total, and rows by value of the counted
columns. They are sums, so a write updates them by the cells that it removes and adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from nutch2py.errors import StoreError, UsageError
from nutch2py.records.cells import CellError, decode_float, decode_int, decode_parse_status, decode_protocol_status
from nutch2py.records.record import RecordField

COUNTED_COLUMNS: dict[bytes, tuple[bytes, ...]] = {b"f": (b"st", b"rsf", b"fi", b"prot"), b"s": (b"s",), b"p": (b"st",)}
"""Family -> columns of WebPage that the statistics count. A row is counted if it has any of them."""
SLOT_BITS, SLOT_BYTES = 22, 5
"""Width of a slot in bits of a due time in ms, and the bytes of a slot in a key."""
LAST_SLOT = (1 << 8 * SLOT_BYTES) - 1
REBUILD_HINT = "run dueindex to rebuild it"
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def slot_of(time: int) -> bytes:
    """Return the slot of a due time (ms); times before 1970 are in the first slot."""
    return min(max(time, 0) >> SLOT_BITS, LAST_SLOT).to_bytes(SLOT_BYTES, "big")


def score_thousandths(score: float) -> int:
    """Return the score in thousandths, truncated and within Java's long: the unit in which Nutch sums scores."""
    if score != score:
        return 0
    return _LONG_MAX if score * 1000.0 > _LONG_MAX else _LONG_MIN if score * 1000.0 < _LONG_MIN else int(score * 1000.0)


def statistic_name(family: bytes, qualifier: bytes, cell: bytes) -> str:
    """Return the name of the statistic that counts a cell, "" for none; ``unreadable`` for a cell of another type."""
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
    """Numbers of rows by value of the counted columns.

    ``scores`` is keyed by whole thousandths. ``unreadable`` counts cells of another type than their column. A row
    without a cell is in ``total``, but not in ``status``, ``retries`` or ``scores``.
    """

    total: int = 0
    unreadable: int = 0
    status: Counter[int] = field(default_factory=Counter)
    retries: Counter[int] = field(default_factory=Counter)
    protocol: Counter[int] = field(default_factory=Counter)
    parse: Counter[tuple[int, int]] = field(default_factory=Counter)
    scores: Counter[int] = field(default_factory=Counter)

    def add(self, name: str, count: int) -> None:
        """Add ``count`` to the statistic ``name``, as returned by :func:`statistic_name`, or to ``total``."""
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
    """An entry of the index: the row ``key``, and the ``sort_key`` that orders all due rows, best first."""

    sort_key: bytes
    key: str


class _DueIndexAccess:
    """Base of both roles of a due index. This class and the roles serve stores that have none.

    ``unavailable_reason`` says why the index cannot be used, "" if it can. If it is set, reading raises
    :class:`StoreError`.
    """

    def __init__(self, unavailable_reason: str) -> None:
        self.unavailable_reason = unavailable_reason

    def _raise_unavailable(self) -> NoReturn:
        raise StoreError(f"cannot read the due index: {self.unavailable_reason}")


class DueIndexReader(_DueIndexAccess):
    """Reads the due rows of a table: the role of the index in ``generate``."""

    is_sorted_by_score = True
    """:meth:`read_candidates` returns the best scores first. If False, tasks read :meth:`partitions` without order."""
    max_due_share = 1.0
    """Share of the rows up to which reading due rows by the index costs less than a full scan."""
    max_due_share_property = ""
    """Property of :attr:`max_due_share`, "" for none."""
    unindexed_count = 0
    """Rows that :meth:`read_rows` found changed by a program that does not update the index."""

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Return the number of rows due within ``spans``, at most ``limit``; a slot is counted as a whole."""
        self._raise_unavailable()

    def read_candidates(self, spans: Sequence[TimeSpan], after_key: bytes, limit: int) -> list[DueCandidate]:
        """Return the next ``limit`` rows due within ``spans``, best first, with sort keys after ``after_key``."""
        self._raise_unavailable()

    def is_after_url(self, sort_key: bytes, url: str) -> bool:
        """Return whether all entries of the same score from ``sort_key`` on have URLs that sort after ``url``."""
        self._raise_unavailable()

    def score_of(self, sort_key: bytes) -> float | None:
        """Return the score of the entry at ``sort_key``; None for a negative score and for NaN."""
        self._raise_unavailable()

    def after_score(self, sort_key: bytes) -> bytes:
        """Return the first sort key after all entries of the same score."""
        self._raise_unavailable()

    def partitions(self, count: int) -> list[tuple[int, int]]:
        """Return about ``count`` partitions that tasks can read independently."""
        return [(0, 0)]

    def read_rows(
        self, spans: Sequence[TimeSpan], partition: tuple[int, int], fields: frozenset[RecordField]
    ) -> Iterator[tuple[str, Any]]:
        """Yield (row key, record with ``fields``) of the rows of one partition that are due within ``spans``."""
        self._raise_unavailable()

    def known_row_count(self) -> int | None:
        """Return the approximate number of rows recorded by the index, None if unknown."""
        return None

    def full_scan_reason(self, now: int, spans: Sequence[TimeSpan]) -> str:
        """Return why a job for rows due within ``spans`` should scan the whole table anyway, "" if it need not."""
        return ""

    def record_full_scan(self, row_count: int) -> None:
        """Record a scan of the whole table and its number of rows."""

    def add_rows_without_time(self, keys: Sequence[str]) -> None:
        """Note that these rows are about to be written without a due time; they may not exist yet, and count as due.

        Only an index that another table holds needs it; a row that has a due time is not harmed.
        """

    def invalidate(self, reason: str) -> None:
        """Mark the index as unusable until it is rebuilt: a reader has found rows that it lacks."""


class DueIndexMaintenance(_DueIndexAccess):
    """Builds, checks and drops the index and the row statistics of a table: the role in ``dueindex``."""

    is_built_by_tasks = False
    """Tasks build the index with :meth:`add_rows` between :meth:`start_build` and :meth:`finish_build`, instead of
    :meth:`rebuild`."""

    def find_missing_rows(self, rows: Sequence[tuple[str, int]]) -> list[str]:
        """Return the keys of those ``rows`` (key, due time) that the index does not list."""
        self._raise_unavailable()

    def add_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Add entries for ``rows`` (key, due time)."""
        self._raise_unavailable()

    def start_build(self) -> None:
        """Start a rebuild by tasks."""
        raise UsageError(f"cannot build the due index: {self.unavailable_reason}")

    def finish_build(self, row_count: int) -> None:
        """Finish a rebuild by tasks: the index lists all of the ``row_count`` rows."""
        self._raise_unavailable()

    def rebuild(self) -> int:
        """Rebuild index and statistics from the rows; return the number of entries. Writers wait meanwhile."""
        raise UsageError(f"cannot build the due index: {self.unavailable_reason}")

    def check(self, report: Callable[[str], object]) -> int:
        """Compare index and statistics with the rows; pass each difference to ``report``; return the entry count."""
        self._raise_unavailable()

    def drop(self) -> None:
        """Delete index and statistics; the table works without them."""


class DueIndex(DueIndexReader, DueIndexMaintenance):
    """Due index and row statistics of one table, in both roles."""

    has_statistics = True
    """The store has row statistics."""

    def statistics(self) -> RowStatistics:
        """Return the statistics of all rows."""
        self._raise_unavailable()


def iter_candidates(index: DueIndexReader, spans: Sequence[TimeSpan], page_size: int) -> Iterator[DueCandidate]:
    """Yield all rows due within ``spans``, best first, read in pages of ``page_size``."""
    after = b""
    while found := index.read_candidates(spans, after, page_size):
        yield from found
        after = found[-1].sort_key
