"""The index of due rows of a table in HBase: read beside the rows, made, compared with them; doubted when it is wrong.

HBase has no transaction over two tables, and Nutch 2 writes rows without entries. So an entry is a hint, and the row
decides. What is read of the index tells whether it was kept: of each entry in whose slot the row is no more, the row's
present entry is looked for. It is there unless another program has moved the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from nutch2py.errors import StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import Field
from nutch2py.support.clock import now_ms
from nutch2py.table.due_index import DueIndex, RowStatistics, TimeSpan
from nutch2py.table.hbase import due_table
from nutch2py.table.hbase.column_selection import CellRow
from nutch2py.table.hbase.due_table import BUCKETS, DueTable, DueTableEntry, make_entry_key, slot_of_cell
from nutch2py.table.hbase.regions import KEYS_ONLY_FILTER
from nutch2py.table.hbase.thrift_client.gateways import Gateways
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget, TableScanner, read_rows

REBUILD_HINT = "dueindex makes it"
_DAY_MS = 86_400_000
_EXACT_COUNT_LIMIT = 10_000
"""Up to so many entries all are counted; of more, those of one bucket."""
_PROBED_ROWS = 200
"""Rows of the table that are compared with the index before it is used."""


class PageTableSource(NamedTuple):
    """The table of pages: its gateways, its full name, the site's column of the due time.

    ``read_plan`` gives for some fields the columns to ask for, how many rows at once, and what makes a record of a row;
    ``region_starts`` some row keys at which parts of the table begin.
    """

    gateways: Gateways
    table: bytes
    time_column: bytes
    read_plan: Callable[[frozenset[Field[Any]]], tuple[list[bytes], RowBudget, Callable[[CellRow], Any]]]
    region_starts: Callable[[int], Sequence[bytes]]


class HBaseDueIndex(DueIndex):
    """The index in the table that :mod:`nutch2py.table.hbase.due_table` tells of. There are no figures."""

    is_sorted_by_score = False
    has_statistics = False
    is_built_by_tasks = True

    def __init__(self, source: PageTableSource, due_table: DueTable, is_enabled: bool, full_scan_days: float) -> None:
        self._source, self._due_table, self._is_enabled, self._full_scan_interval = (
            source,
            due_table,
            is_enabled,
            int(full_scan_days * _DAY_MS),
        )
        self.unindexed_count = 0

    @property
    def unavailable_reason(self) -> str:  # type: ignore[override]
        """Why it cannot be used."""
        if not self._is_enabled:
            return "hbase.due.index is false"
        state = self._due_table.state()
        if state is None:
            return f"the table has none ({REBUILD_HINT})"
        if not state.completed_at:
            return f"it is being made, or was not finished ({REBUILD_HINT})"
        return f"{state.invalid_reason} ({REBUILD_HINT} anew)" if state.invalid_reason else ""

    def known_row_count(self) -> int | None:
        """Return how many rows there were when all were looked at last."""
        state = self._due_table.state()
        return None if state is None else state.row_count

    def full_scan_reason(self, now: int) -> str:
        """Return why all rows are to be looked at this time, "" when they need not be."""
        state = self._due_table.state()
        if state is not None and self._full_scan_interval and now - state.scanned_at > self._full_scan_interval:
            return "hbase.due.look.days have passed since all were looked at"
        lost = self._count_unindexed_samples()
        if lost:
            self.invalidate("rows of the table are not in it")
            return f"{lost} of {_PROBED_ROWS} rows that were tried are not in the index of what is due ({REBUILD_HINT} anew)"
        return ""

    def _count_unindexed_samples(self) -> int:
        """Return how many of some rows, from all over the table, have no entry."""
        starts = self._source.region_starts(8)
        found: dict[bytes, bytes] = {}
        for start in starts:
            budget = RowBudget(_PROBED_ROWS // len(starts), 1 << 20, _PROBED_ROWS // len(starts))
            scan = TableScanner(
                self._source.gateways, self._source.table, (start, b""), budget, [self._source.time_column]
            )
            for rows in islice(scan, 1):
                found.update({row.row: row.columns[self._source.time_column].value for row in rows})
        return len(self._find_unindexed(found))

    def _find_unindexed(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of rows, by the cells of their due times, that have no entry."""
        places = {make_entry_key(key, slot_of_cell(cell)): key for key, cell in times.items()}
        return [places[each] for each in self._due_table.find_missing([*places], RowBudget(1_000, 1 << 22))]

    def record_full_scan(self, row_count: int) -> None:
        """Note that all rows were looked at."""
        self._due_table.record_full_scan(row_count)

    def invalidate(self, reason: str) -> None:
        """Let nobody trust it any more, until it is made anew."""
        self._due_table.invalidate(reason)

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Return about how many rows are due within ``spans``, at most ``limit``."""
        found = sum(self._count_entries(spans, range(BUCKETS), min(limit, _EXACT_COUNT_LIMIT)))
        if found < min(limit, _EXACT_COUNT_LIMIT):
            return found
        return max(found, min(limit, BUCKETS * sum(self._count_entries(spans, range(1), limit // BUCKETS + 1))))

    def _count_entries(self, spans: Sequence[TimeSpan], buckets: range, limit: int) -> Iterator[int]:
        """Yield numbers of entries, ``limit`` in all."""
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
        """Return ranges of buckets."""
        count = max(1, min(count, BUCKETS))
        ends = [BUCKETS * number // count for number in range(count + 1)]
        return [*pairwise(ends)]

    def read_rows(
        self, spans: Sequence[TimeSpan], partition: tuple[int, int], fields: frozenset[Field[Any]]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the rows that stand within ``spans`` and in some buckets, each once.

        Entries that are stale for sure are deleted. A row that has moved without the index is counted in
        :attr:`unlisted`, and given, too.
        """
        columns, budget, made = self._source.read_plan(fields)
        asked = list(dict.fromkeys([*columns, self._source.time_column]))
        for bucket in range(*partition):
            for first, stop in due_table.slot_ranges(spans):
                span, some = _bucket_span(bucket, first, stop), RowBudget(1_000, 1 << 20, 64)
                for found in TableScanner(
                    self._due_table.gateways, self._due_table.name, span, some, [due_table.ENTRY_COLUMN]
                ):
                    entries = [DueTableEntry(row.row, row.columns[due_table.ENTRY_COLUMN].timestamp) for row in found]
                    for key, row in self._rows_of_entries(entries, asked, budget):
                        yield key.decode("utf-8", "replace"), made(row)

    def _fetch_rows(self, keys: Sequence[bytes], columns: Sequence[bytes], budget: RowBudget) -> dict[bytes, CellRow]:
        source = self._source
        try:
            return read_rows(source.gateways, source.table, keys, columns, budget)
        except SERVER_ERRORS as error:
            raise to_store_error(error, source.gateways.table, source.gateways.where) from error

    def _rows_of_entries(
        self, entries: list[DueTableEntry], columns: Sequence[bytes], budget: RowBudget
    ) -> Iterator[tuple[bytes, CellRow]]:
        there = self._fetch_rows([entry.key for entry in entries], columns, budget)
        stale: list[DueTableEntry] = []
        moved: list[tuple[DueTableEntry, Any]] = []
        for entry in entries:
            row = there.get(entry.key)
            if row is None:
                if entry.written_at < now_ms() - _DAY_MS:  # else the row may be about to be written
                    stale.append(entry)
                continue
            cell = row.get(self._source.time_column)
            if slot_of_cell(None if cell is None else cell.value) == entry.slot:
                yield entry.key, row
            elif cell is not None and entry.written_at < cell.timestamp:
                moved.append((entry, cell))
        stale += [entry for entry, _ in moved]
        lost = self._confirm_unindexed({entry.key: cell.value for entry, cell in moved})
        if lost:
            self.unindexed_count += len(lost)
            for key in lost:
                yield key, there[key]
        self._due_table.delete_entries(stale)

    def _confirm_unindexed(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of rows that are not where their due times say, and still are not when looked at again."""
        lost = self._find_unindexed(times)
        if not lost:
            return []
        again = self._fetch_rows(lost, [self._source.time_column], RowBudget(1_000, 1 << 22))
        return self._find_unindexed(
            {key: times[key] for key, row in again.items() if row[self._source.time_column].value == times[key]}
        )

    def find_missing_rows(self, rows: Sequence[tuple[str, int]]) -> list[str]:
        """Return the keys of those rows, given with their due times (ms), that have no entry."""
        places = {make_entry_key(encode_text(key), due_table.slot(time)): key for key, time in rows}
        return [places[each] for each in self._due_table.find_missing([*places], RowBudget(1_000, 1 << 22))]

    def add_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Write the entries of rows that are there, given with their due times (ms)."""
        self._due_table.add_entries(make_entry_key(encode_text(key), due_table.slot(time)) for key, time in rows)

    def check(self, report: Callable[[str], object]) -> int:
        """Tell ``report`` which rows of the table have no entry; return how many were looked at."""
        rows = 0
        source = self._source
        budget = RowBudget(1_000, 1 << 20)
        for found in TableScanner(source.gateways, source.table, (b"", b""), budget, [source.time_column]):
            rows += len(found)
            for key in self._find_unindexed({row.row: row.columns[source.time_column].value for row in found}):
                report(f"row {key.decode('utf-8', 'replace')} is not in the index where it should be")
        return rows

    def start_build(self) -> None:
        """Throw away what there is; jobs keep the new one from now on, and :meth:`complete` lets it be used."""
        if not self._is_enabled:
            super().start_build()
        self._due_table.start_build()

    def finish_build(self, row_count: int) -> None:
        """Say that every row, of which there are so many, was given to :meth:`put`."""
        state = self._due_table.state()
        if state is None or state.completed_at:
            raise StoreError(f"the index of what is due was dropped, or made by another, meanwhile ({REBUILD_HINT})")
        self._due_table.finish_build(row_count)

    def statistics(self) -> RowStatistics:
        """There are none."""
        raise StoreError("HBase keeps no figures: every row is to be read")

    def drop(self) -> None:
        """Delete the table of the index."""
        self._due_table.drop()


def _bucket_span(bucket: int, first: bytes, stop: bytes) -> tuple[bytes, bytes]:
    head = bytes((bucket,))
    return head + first, head + stop if stop else bytes((bucket + 1,))
