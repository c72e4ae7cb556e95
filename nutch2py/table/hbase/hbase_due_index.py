"""Due index of a table in HBase: reads, builds and checks it, and invalidates it if it is incomplete.

HBase has no transaction over two tables, and Nutch 2 writes rows without entries. So an entry is a hint, and the row
decides. Reading also verifies the index: if a row is no longer in the slot of its entry, its current entry is looked
up. That entry is missing only if another program has changed the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from nutch2py.errors import StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import RecordField
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.table.due_index import REBUILD_HINT, DueIndex, RowStatistics, TimeSpan, slot_of
from nutch2py.table.hbase import due_table
from nutch2py.table.hbase.column_selection import CellRow
from nutch2py.table.hbase.due_table import BUCKETS, DueTable, DueTableEntry, make_entry_key, slot_of_cell
from nutch2py.table.hbase.regions import KEYS_ONLY_FILTER
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import KeySpan, RowBudget, TableScanner, read_rows
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool

EXACT_COUNT_LIMIT = 10_000
"""Entries up to which counts are exact; larger ones are extrapolated from one bucket."""
PROBED_ROWS = 200
"""Rows of the table that are compared with the index before use."""


class PageTableSource(NamedTuple):
    """The table of pages: its gateways, its full name, and the site's column of the due time.

    ``read_plan`` returns for some fields the columns to request, the row budget, and a function from a row to a record.
    ``region_starts`` returns up to a number of start keys of regions.
    """

    gateways: ThriftGatewayPool
    table: bytes
    time_column: bytes
    read_plan: Callable[[frozenset[RecordField]], tuple[list[bytes], RowBudget, Callable[[CellRow], Any]]]
    region_starts: Callable[[int], Sequence[bytes]]


class HBaseDueIndex(DueIndex):
    """The due index in the table of :mod:`nutch2py.table.hbase.due_table`; HBase has no row statistics."""

    is_sorted_by_score = False
    has_statistics = False
    is_built_by_tasks = True

    def __init__(self, source: PageTableSource, due_table: DueTable, is_enabled: bool, full_scan_days: float) -> None:
        self._source, self._due_table, self._is_enabled = source, due_table, is_enabled
        self._full_scan_interval = int(full_scan_days * MS_PER_DAY)
        self.unindexed_count = 0

    @property
    def unavailable_reason(self) -> str:  # type: ignore[override]
        """The reason why the index cannot be used, "" if it can."""
        if not self._is_enabled:
            return "hbase.due.index is false"
        state = self._due_table.state()
        if state is None:
            return f"the table has none ({REBUILD_HINT})"
        if not state.completed_at:
            return f"it is being built, or its build did not finish ({REBUILD_HINT})"
        return f"{state.invalid_reason} ({REBUILD_HINT})" if state.invalid_reason else ""

    def known_row_count(self) -> int | None:
        """Return the number of rows at the last full scan."""
        state = self._due_table.state()
        return None if state is None else state.row_count

    def full_scan_reason(self, now: int) -> str:
        """Return why a full scan is due, "" if it is not."""
        state = self._due_table.state()
        if state is not None and self._full_scan_interval and now - state.scanned_at > self._full_scan_interval:
            return "hbase.due.look.days have passed since the last full scan"
        missing = self._count_unindexed_samples()
        if missing:
            self.invalidate("rows of the table are missing in it")
            return f"{missing} of {PROBED_ROWS} sampled rows are missing in the due index ({REBUILD_HINT})"
        return ""

    def _count_unindexed_samples(self) -> int:
        """Return how many rows of a sample from the whole table have no entry."""
        starts = self._source.region_starts(8)
        found: dict[bytes, bytes] = {}
        for start in starts:
            budget = RowBudget(PROBED_ROWS // len(starts), 1 << 20, PROBED_ROWS // len(starts))
            scan = TableScanner(
                self._source.gateways, self._source.table, KeySpan(start, b""), budget, [self._source.time_column]
            )
            for rows in islice(scan, 1):
                found.update({row.row: row.columns[self._source.time_column].value for row in rows})
        return len(self._find_unindexed(found))

    def _find_unindexed(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of those rows (key -> cell of the due time) that have no entry."""
        entries = {make_entry_key(key, slot_of_cell(cell)): key for key, cell in times.items()}
        return [entries[each] for each in self._due_table.find_missing([*entries], RowBudget(1_000, 1 << 22))]

    def record_full_scan(self, row_count: int) -> None:
        """Record a full scan."""
        self._due_table.record_full_scan(row_count)

    def invalidate(self, reason: str) -> None:
        """Mark the index as invalid until it is rebuilt."""
        self._due_table.invalidate(reason)

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Return the approximate number of rows due within ``spans``, at most ``limit``."""
        found = sum(self._count_entries(spans, range(BUCKETS), min(limit, EXACT_COUNT_LIMIT)))
        if found < min(limit, EXACT_COUNT_LIMIT):
            return found
        return max(found, min(limit, BUCKETS * sum(self._count_entries(spans, range(1), limit // BUCKETS + 1))))

    def _count_entries(self, spans: Sequence[TimeSpan], buckets: range, limit: int) -> Iterator[int]:
        """Yield numbers of entries, ``limit`` in total."""
        for bucket in buckets:
            for first, stop in due_table.slot_ranges(spans):
                budget = RowBudget(1_000, 1 << 20, min(max(limit, 1), 1_000))
                span = _bucket_span(bucket, first, stop)
                for rows in TableScanner(
                    self._due_table.gateways, self._due_table.name, span, budget, None, KEYS_ONLY_FILTER
                ):
                    yield min(len(rows), limit)
                    limit -= len(rows)
                    if limit <= 0:
                        return

    def partitions(self, count: int) -> list[tuple[int, int]]:
        """Return about ``count`` ranges of buckets."""
        count = max(1, min(count, BUCKETS))
        ends = [BUCKETS * number // count for number in range(count + 1)]
        return [*pairwise(ends)]

    def read_rows(
        self, spans: Sequence[TimeSpan], partition: tuple[int, int], fields: frozenset[RecordField]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the rows with entries within ``spans`` and a range of buckets, each once.

        Stale entries are deleted. A row that changed without an update of the index is yielded, too, and counted in
        :attr:`unindexed_count`.
        """
        columns, budget, make_record = self._source.read_plan(fields)
        requested = list(dict.fromkeys([*columns, self._source.time_column]))
        for bucket in range(*partition):
            for first, stop in due_table.slot_ranges(spans):
                span, some = _bucket_span(bucket, first, stop), RowBudget(1_000, 1 << 20, 64)
                for found in TableScanner(
                    self._due_table.gateways, self._due_table.name, span, some, [due_table.ENTRY_COLUMN]
                ):
                    entries = [DueTableEntry(row.row, row.columns[due_table.ENTRY_COLUMN].timestamp) for row in found]
                    for key, row in self._rows_of_entries(entries, requested, budget):
                        yield key.decode("utf-8", "replace"), make_record(row)

    def _fetch_rows(self, keys: Sequence[bytes], columns: Sequence[bytes], budget: RowBudget) -> dict[bytes, CellRow]:
        source = self._source
        try:
            return read_rows(source.gateways, source.table, keys, columns, budget)
        except SERVER_ERRORS as error:
            raise to_store_error(error, source.gateways.table, source.gateways.where) from error

    def _rows_of_entries(
        self, entries: list[DueTableEntry], columns: Sequence[bytes], budget: RowBudget
    ) -> Iterator[tuple[bytes, CellRow]]:
        rows = self._fetch_rows([entry.key for entry in entries], columns, budget)
        stale: list[DueTableEntry] = []
        moved: list[tuple[DueTableEntry, Any]] = []
        for entry in entries:
            row = rows.get(entry.key)
            if row is None:
                if entry.written_at < now_ms() - MS_PER_DAY:  # a newer entry may precede the write of its row
                    stale.append(entry)
                continue
            cell = row.get(self._source.time_column)
            if slot_of_cell(None if cell is None else cell.value) == entry.slot:
                yield entry.key, row
            elif cell is not None and entry.written_at < cell.timestamp:
                moved.append((entry, cell))
        stale += [entry for entry, _ in moved]
        unindexed = self._confirm_unindexed({entry.key: cell.value for entry, cell in moved})
        if unindexed:
            self.unindexed_count += len(unindexed)
            for key in unindexed:
                yield key, rows[key]
        self._due_table.delete_entries(stale)

    def _confirm_unindexed(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of rows without an entry for their due times, verified by a second read."""
        unindexed = self._find_unindexed(times)
        if not unindexed:
            return []
        again = self._fetch_rows(unindexed, [self._source.time_column], RowBudget(1_000, 1 << 22))
        return self._find_unindexed(
            {key: times[key] for key, row in again.items() if row[self._source.time_column].value == times[key]}
        )

    def find_missing_rows(self, rows: Sequence[tuple[str, int]]) -> list[str]:
        """Return the keys of those ``rows`` (key, due time in ms) that have no entry."""
        entries = {make_entry_key(encode_text(key), slot_of(time)): key for key, time in rows}
        return [entries[each] for each in self._due_table.find_missing([*entries], RowBudget(1_000, 1 << 22))]

    def add_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Write the entries of existing ``rows`` (key, due time in ms)."""
        self._due_table.add_entries(make_entry_key(encode_text(key), slot_of(time)) for key, time in rows)

    def check(self, report: Callable[[str], object]) -> int:
        """Pass each row without an entry to ``report``; return the number of rows checked."""
        rows = 0
        source = self._source
        budget = RowBudget(1_000, 1 << 20)
        for found in TableScanner(source.gateways, source.table, KeySpan(b"", b""), budget, [source.time_column]):
            rows += len(found)
            for key in self._find_unindexed({row.row: row.columns[source.time_column].value for row in found}):
                report(f"row {key.decode('utf-8', 'replace')} has no matching entry in the index")
        return rows

    def start_build(self) -> None:
        """Delete the index; from now on jobs update the new one, and use it after :meth:`finish_build`."""
        if not self._is_enabled:
            super().start_build()
        self._due_table.start_build()

    def finish_build(self, row_count: int) -> None:
        """Record that all ``row_count`` rows were passed to :meth:`add_rows`."""
        state = self._due_table.state()
        if state is None or state.completed_at:
            raise StoreError(f"the due index was dropped or rebuilt meanwhile ({REBUILD_HINT})")
        self._due_table.finish_build(row_count)

    def statistics(self) -> RowStatistics:
        """Raise StoreError: HBase has no statistics."""
        raise StoreError("HBase has no row statistics: all rows must be read")

    def drop(self) -> None:
        """Delete the table of the index."""
        self._due_table.drop()


def _bucket_span(bucket: int, first: bytes, stop: bytes) -> KeySpan:
    head = bytes((bucket,))
    return KeySpan(head + first, head + stop if stop else bytes((bucket + 1,)))
