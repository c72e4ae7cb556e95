"""Interface of the stores: DataStore and WriteBatch.

A store is one table: a crawl's ``webpage``, ``host`` or ``batch``. Keys are text, ordered by their UTF-8 bytes, which
is also the order of Python's strings. A write carries only the changed columns, with the cell timestamps that Gora
uses: deletes at now - 2 ms, puts at now - 1 ms, so that a put survives the delete of the same call. Now is the time of
the crawl's clock (:mod:`nutch2py.table.crawl_clock`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from nutch2py.errors import ConfigurationError, UsageError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import Cells, Mutation, Record, RecordField
from nutch2py.table.crawl_clock import CrawlClock
from nutch2py.table.due_index import DueIndex
from nutch2py.table.table_query import KeyRange, TableQuery

R = TypeVar("R", bound=Record)
CellTimes = dict[bytes, tuple[bytes, int]]
"""``qualifier -> (value, cell timestamp in ms)``."""
RowCells = dict[bytes, CellTimes]
"""``family -> qualifier -> (value, cell timestamp in ms)``: a row in exports and copies."""


class WriteBatch(ABC):
    """Collect writes and send them in groups limited by rows and bytes.

    As a context manager it flushes at the end of the block; if the block raises, unsent writes are dropped. Writes of
    one row are applied in the order of the calls.
    """

    before_flush: Callable[[], object] | None = None
    """Called before each write of the batch: by :meth:`flush`, at the end, or when the batch is full.

    Data that it makes durable is durable before the rows collected so far: the side table before the pages, the index's
    commit before the marks that record it. If it raises, nothing is written."""
    rejected: Sequence[tuple[str, str]] = ()
    """Rows that the store rejected, as (key, reason): each was logged and skipped, the others are written."""

    @abstractmethod
    def mutate(self, key: str, mutation: Mutation, timestamp: int | None = None) -> None:
        """Apply changes to a row.

        Args:
            key: The row key.
            mutation: The changed columns.
            timestamp: Time in ms to use instead of now, which makes a repeated write idempotent: cells are stamped one
                millisecond before it, and newer cells in the table are kept.

        Raises:
            ValueError: ``key`` is empty.
        """

    @abstractmethod
    def put_cells(self, key: str, cells: RowCells) -> None:
        """Write cells with their own timestamps; newer cells in the table are kept."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete a row with all its columns, including columns of no field."""

    @abstractmethod
    def has_pending(self) -> bool:
        """Return whether the batch holds unsent writes."""

    @abstractmethod
    def _write(self) -> None:
        """Send and discard the collected writes; they are durable when this returns."""

    def flush(self) -> None:
        """Call :attr:`before_flush`, then send the collected writes; they are durable when this returns."""
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


def encode_row_key(key: str) -> bytes:
    """Return the bytes of a row key; raise ``ValueError`` if it is empty."""
    if not key:
        raise ValueError("a row key cannot be empty")
    return encode_text(key)


def table_name_error(name: str) -> ConfigurationError:
    """Return the error for a name that a table cannot have."""
    return ConfigurationError(
        f"{name!r} cannot be the name of a table: use letters, digits, '_', '-' and '.' in storage.crawl.id"
    )


def check_comparable(field: RecordField, *values: bytes | None) -> None:
    """Raise ``ValueError`` for a field or value that :meth:`DataStore.compare_and_set` does not support."""
    if field.is_map or field.name == "content":
        raise ValueError(f"{field.name} is not a cell that can be compared")
    if b"" in values:
        raise ValueError("an empty value is the same as a missing one: write None")


class DataStore(ABC, Generic[R]):
    """One table of records of the class ``record_class``. ``location`` is the configured location, for messages.

    Reading or writing a table that does not exist raises :class:`nutch2py.errors.StoreError`: call :meth:`create`
    first.
    """

    def __init__(self, record: type[R], name: str, location: str) -> None:
        self.record_class, self.name, self.location = record, name, location
        self.clock = CrawlClock()  # nutch2py.table.open_store replaces it with the crawl's clock

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the table exists."""

    @abstractmethod
    def create(self) -> None:
        """Create the table unless it exists."""

    def create_with_splits(self, split_keys: Sequence[bytes]) -> None:
        """Create the table with regions that start at the row keys ``split_keys``.

        Raises:
            StoreError: The table exists.
            UsageError: The store has no regions.
        """
        raise UsageError(f"{self.location} has no regions to split: omit -splits and -keys")

    @abstractmethod
    def drop(self) -> None:
        """Delete the table and all its rows, if it exists."""

    @abstractmethod
    def scan(self, query: TableQuery) -> Iterator[tuple[str, R]]:
        """Yield (row key, record) in key order. No lock or lease is held between two rows."""

    @abstractmethod
    def keys(self, key_range: KeyRange) -> Iterator[str]:
        """Yield the row keys of a range in order, without reading other cells."""

    @abstractmethod
    def get_many(self, keys: Sequence[str], fields: Iterable[RecordField] | None = None) -> list[R | None]:
        """Return one record per key, in the order of ``keys``; None for a row without a cell of ``fields``."""

    def get(self, key: str, fields: Iterable[RecordField] | None = None) -> R | None:
        """Return the record of ``key``, None if it has no cell of ``fields``."""
        return self.get_many([key], fields)[0]

    @abstractmethod
    def key_ranges(self, query: TableQuery, count: int) -> list[KeyRange]:
        """Split the range of ``query`` into about ``count`` ranges of similar size that cover it, in order."""

    def range_hosts(self, ranges: Sequence[KeyRange]) -> list[str]:
        """Return for each range the host that stores most of it, "" if unknown."""
        return [""] * len(ranges)

    @abstractmethod
    def row_estimate(self) -> int | None:
        """Return a cheap estimate of the number of rows, or None; for progress display only."""

    @abstractmethod
    def batch(self, before_flush: Callable[[], object] | None = None) -> WriteBatch:
        """Return a new batch of writes with this :attr:`WriteBatch.before_flush`."""

    @abstractmethod
    def compare_and_set(self, key: str, field: RecordField, expected: bytes | None, new: bytes | None) -> bool:
        """Atomically set one cell to ``new`` if it holds ``expected``; return whether it was set.

        Of any number of processes that expect the same value, one succeeds, and its value is durable when this returns.
        Write such a cell with this method only, and with values unique to the writer: if the response of a server is
        lost, reading the value back decides whether the write succeeded.

        Args:
            key: The row key.
            field: A field of one cell, not a map and not a page's content.
            expected: The required value, None for a missing or empty cell (HBase does not distinguish the two).
            new: The value to set, None to delete the cell.

        Raises:
            ValueError: A value is empty, or the field cannot be compared.
        """

    def due_index(self) -> DueIndex:
        """Return the due index and row statistics; see its ``unavailable_reason`` for a store without."""
        return DueIndex(f"{self.location.partition(':')[0]} has none")

    @abstractmethod
    def scan_cells(self, key_range: KeyRange = KeyRange()) -> Iterator[tuple[str, RowCells]]:  # noqa: B008
        """Yield every cell of every row with its timestamp, in key order, including columns of no field."""

    def check(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Yield every row as :meth:`scan_cells` does, and pass each problem of the table to ``report``.

        Contents of pages are checked but not returned: the store may yield a placeholder.
        """
        yield from self.scan_cells()

    def salvage(self, report: Callable[[str], object]) -> Iterator[tuple[str, RowCells]]:
        """Yield the readable rows of a damaged table, and pass each unreadable part to ``report``."""
        yield from self.scan_cells()

    @abstractmethod
    def close(self) -> None:
        """Release connections and files; the store can be used again afterwards."""

    def new_record(self, cells: Cells, fields: frozenset[RecordField] | None) -> R:
        """Return a record of this table for cells that were read."""
        return self.record_class(cells, fields)
