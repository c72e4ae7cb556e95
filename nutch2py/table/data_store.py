"""DataStore: what every store of rows does.

A store is one table: a crawl's ``webpage``, ``host`` or ``batch``. Keys are text, ordered as their UTF-8 bytes are
(which is the order of Python's strings, too). A write carries the changed columns only, with the cell timestamps that
Gora gave: deletes at now - 2 ms, puts at now - 1 ms, so that a put outlives the delete of the same call. Now is the
crawl's (:mod:`nutch2py.table.clock`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from nutch2py.errors import UsageError
from nutch2py.records.record import Cells, Field, Mutation, Record
from nutch2py.table.clock import CrawlClock
from nutch2py.table.due_index import DueIndex
from nutch2py.table.table_query import KeyRange, TableQuery

R = TypeVar("R", bound=Record)
CellTimes = dict[bytes, tuple[bytes, int]]
"""``qualifier -> (value, cell timestamp in ms)``."""
RowCells = dict[bytes, CellTimes]
"""``family -> qualifier -> (value, cell timestamp in ms)``: a row as exports and copies carry it."""


class WriteBatch(ABC):
    """Collects writes and sends them in groups, by rows and by bytes; a context manager that sends the rest at its end.

    Writes of one row are applied in the order given. When the block ends with an exception, what was not sent is
    dropped.
    """

    before_flush: Callable[[], object] | None = None
    """Runs before anything of the batch is written, whenever it writes: by :meth:`flush`, at its end, or by itself,
    when it is full. What it makes durable is durable before every row of the batch that was collected when it ran: the
    side table before the pages, the index's commit before the marks that say so. If it raises, nothing is written."""
    rejected: Sequence[tuple[str, str]] = ()
    """Rows that the store cannot take, as (key, reason): they were warned of and left out, the others are written."""

    @abstractmethod
    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Apply changes to a row.

        ``timestamp`` (ms) stands for now, so that a repeated write changes nothing: cells are stamped one millisecond
        before it, and newer ones in the table stay as they are. Raises ``ValueError`` for an empty key.
        """

    @abstractmethod
    def put_cells(self, key: str, cells: RowCells) -> None:
        """Write cells with their own timestamps; newer cells in the table stay as they are."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete a row with all its columns, those of no field included."""

    @abstractmethod
    def has_pending(self) -> bool:
        """Tell whether something was collected that was not sent."""

    @abstractmethod
    def _write(self) -> None:
        """Send what was collected, and forget it; when it returns, that is durable."""

    def flush(self) -> None:
        """Send what was collected, :attr:`before` first; when it returns, that is durable."""
        if not self.has_pending():
            return
        if self.before_flush is not None:
            self.before_flush()
        self._write()

    def put(self, key: str, record: Record, timestamp: int | None = None) -> bool:
        """Write the changed columns of ``record``; return False when there were none."""
        mutation = record.mutation()
        if mutation is None:
            return False
        self.mutate(key, mutation, timestamp)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()


def check_comparable(field: Field[Any], *values: bytes | None) -> None:
    """Raise ``ValueError`` for what :meth:`DataStore.compare_and_set` cannot compare or set."""
    if field.is_map or field.name == "content":
        raise ValueError(f"{field.name} is no cell that can be compared")
    if b"" in values:
        raise ValueError("an empty value cannot be told from none: write None")


class DataStore(ABC, Generic[R]):
    """One table of records of the class ``record_class``. ``location`` is what the user wrote, for messages.

    Reading or writing a table that does not exist raises :class:`nutch2py.errors.StoreError`: :meth:`create` it first.
    """

    def __init__(self, record: type[R], name: str, location: str) -> None:
        self.record_class, self.name, self.location = record, name, location
        self.clock = CrawlClock()  # of the whole crawl, when it is opened by nutch2py.table.open_store

    @abstractmethod
    def exists(self) -> bool:
        """Tell whether the table is there."""

    @abstractmethod
    def create(self) -> None:
        """Make the table unless it is there."""

    def create_with_splits(self, split_keys: Sequence[bytes]) -> None:
        """Make the table in parts that begin at the row keys ``split_keys``; StoreError when it is there already.

        For stores that keep a table in parts; any other raises :class:`nutch2py.errors.UsageError`, as here.
        """
        raise UsageError(f"{self.location} has no regions to split: leave out -splits and -keys")

    @abstractmethod
    def drop(self) -> None:
        """Delete the table and all its rows, if it is there."""

    @abstractmethod
    def scan(self, query: TableQuery) -> Iterator[tuple[str, R]]:
        """Yield (row key, record) in key order. No lock or lease is held between two rows, however slow the caller."""

    @abstractmethod
    def keys(self, key_range: KeyRange) -> Iterator[str]:
        """Yield the keys of the rows in a range, in order; nothing else of them is read."""

    @abstractmethod
    def get_many(self, keys: Sequence[str], fields: Iterable[Field[Any]] | None = None) -> list[R | None]:
        """Return a record per key, in the order of ``keys``; None for a row that has no cell of ``fields``."""

    def get(self, key: str, fields: Iterable[Field[Any]] | None = None) -> R | None:
        """Return one record, or None."""
        return self.get_many([key], fields)[0]

    @abstractmethod
    def key_ranges(self, query: TableQuery, count: int) -> list[KeyRange]:
        """Split the range of ``query`` into about ``count`` ranges of like size that cover it, in order."""

    def range_hosts(self, ranges: Sequence[KeyRange]) -> list[str]:
        """Return for each range the machine that holds most of it, "" where that is not known."""
        return [""] * len(ranges)

    @abstractmethod
    def row_estimate(self) -> int | None:
        """Return about how many rows the table has, cheaply, or None; for progress only."""

    @abstractmethod
    def batch(self, before_flush: Callable[[], object] | None = None) -> WriteBatch:
        """Return a new group of writes; ``before_flush`` is its :attr:`WriteBatch.before`."""

    @abstractmethod
    def compare_and_set(self, key: str, field: Field[Any], expected: bytes | None, new: bytes | None) -> bool:
        """Set one cell to the bytes ``new`` if it holds ``expected``, in one step; tell whether it was set.

        None stands for a cell that is not there, and an empty one counts as such (HBase tells them not apart), so
        empty bytes are a ``ValueError``, as are the column of a map and a page's content. Of any number of processes
        that expect the same value, one succeeds; what it set is durable when this returns. A cell that is written so is
        to be written in no other way, and every value is to be its writer's own: when the answer of a server is lost,
        finding the value there is what tells that it was set.
        """

    def due_index(self) -> DueIndex:
        """Return the index of the rows by due time, and their figures; it says itself when there is none."""
        return DueIndex(f"{self.location.partition(':')[0]} keeps none")

    @abstractmethod
    def scan_cells(self, key_range: KeyRange = KeyRange()) -> Iterator[tuple[str, RowCells]]:  # noqa: B008
        """Yield every cell of every row with its timestamp, in key order; columns of no field included."""

    def check(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Yield every row as :meth:`scan_cells` does, and tell ``report`` what of the table is damaged.

        What stands in for the bytes of a page's content is the store's: they are looked at, not given.
        """
        yield from self.scan_cells()

    def salvage(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Yield what can be read of a table that is damaged, and tell ``report`` what cannot."""
        yield from self.scan_cells()

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files; the store can be used again afterwards."""

    def new_record(self, cells: Cells, fields: frozenset[Field[Any]] | None) -> R:
        """Return a record of this table over cells that were read."""
        return self.record_class(cells, fields)
