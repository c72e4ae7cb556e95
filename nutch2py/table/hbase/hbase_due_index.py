"""Due index of a table in HBase: reads, builds and checks it, and invalidates it if it is incomplete.

HBase has no transaction over two tables, and Nutch 2 writes rows without entries. So an entry is a hint, and the row
decides. Reading also verifies the index: if a row is not in the slot of its entry, the entry of its current due time is
looked up, whatever the timestamps of both are. That entry is missing only if another program has changed the row.

Entries cannot show a row that another program has added, or has moved to an earlier time. With ``hbase.due.check`` =
``exact`` the region servers therefore filter the table by due time before the index is used, and every row that they
return must have its entry. With ``sample`` some rows at random places must have one.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from nutch2py.errors import StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.table.due_index import REBUILD_HINT, DueIndex, RowStatistics, TimeSpan, slot_of
from nutch2py.table.hbase import due_table
from nutch2py.table.hbase.column_selection import CellRow
from nutch2py.table.hbase.due_table import BUCKETS, DueTable, DueTableEntry, make_entry_key, slot_of_cell, time_of_cell
from nutch2py.table.hbase.regions import KEYS_ONLY_FILTER
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import KeySpan, RowBudget, TableScanner, read_rows
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool

EXACT_COUNT_LIMIT = 10_000
"""Entries up to which counts are exact; larger ones are extrapolated from one bucket."""
PROBED_ROWS, _PROBES = 200, 8
"""Rows of the table that a sample compares with the index before use, and the places where they are."""
INDEXED_FIELDS: frozenset[RecordField] = frozenset({WebPage.fetch_time, WebPage.score, WebPage.markers})
"""Fields of which a row has at least one; a row without a due time is listed under time 0."""
CHECKS = ("exact", "sample")
"""Values of ``hbase.due.check``."""
_LONG = struct.Struct(">q")


class PageTableSource(NamedTuple):
    """The table of pages: its gateways, its full name, and the site's column of the due time.

    ``read_plan`` returns for some fields the columns to request, the row budget, and a function from a row to a record.
    ``region_spans`` returns the key ranges of the regions.
    """

    gateways: ThriftGatewayPool
    table: bytes
    time_column: bytes
    read_plan: Callable[[frozenset[RecordField]], tuple[list[bytes], RowBudget, Callable[[CellRow], Any]]]
    region_spans: Callable[[], Sequence[KeySpan]]


class HBaseDueIndex(DueIndex):
    """The due index in the table of :mod:`nutch2py.table.hbase.due_table`; HBase has no row statistics."""

    is_sorted_by_score = False
    has_statistics = False
    is_built_by_tasks = True

    def __init__(
        self,
        source: PageTableSource,
        due_table: DueTable,
        is_enabled: bool,
        full_scan_days: float,
        is_checked_exactly: bool = True,
        max_exact_share: float = 1.0,
    ) -> None:
        """``max_exact_share``: :attr:`max_due_share` with the exact check."""
        self._source, self._due_table, self._is_enabled = source, due_table, is_enabled
        self._is_checked_exactly = is_checked_exactly
        if is_checked_exactly:
            self.max_due_share, self.max_due_share_property = max_exact_share, "hbase.due.exact.share"
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

    def full_scan_reason(self, now: int, spans: Sequence[TimeSpan]) -> str:
        """Return why a full scan is due, "" if it is not.

        Compares rows with the index: with the exact check all rows due within ``spans``, otherwise a random sample.
        """
        state = self._due_table.state()
        if state is not None and self._full_scan_interval and now - state.scanned_at > self._full_scan_interval:
            return "hbase.due.look.days have passed since the last full scan"
        missing = self._count_unindexed_due(spans) if self._is_checked_exactly else self._count_unindexed_samples()
        if not missing:
            return ""
        self.invalidate("rows of the table are missing in it")
        which = "due rows" if self._is_checked_exactly else f"of {PROBED_ROWS} sampled rows"
        return f"{missing} {which} are missing in the due index ({REBUILD_HINT})"

    def _time_of(self, row: Mapping[bytes, Any]) -> bytes | None:
        """Return the cell of the due time, None if the row has none."""
        cell = row.get(self._source.time_column)
        return None if cell is None else cell.value

    def _count_unindexed_due(self, spans: Sequence[TimeSpan]) -> int:
        """Return how many rows due within ``spans`` have no entry; the region servers filter the rows.

        Region by region, so that no call takes longer than the scan of one.
        """
        columns, _, _ = self._source.read_plan(INDEXED_FIELDS)
        condition = _due_filter(self._source.time_column, spans)
        missing = 0
        for region in self._source.region_spans():
            budget = RowBudget(1_000, 1 << 20)
            for rows in TableScanner(self._source.gateways, self._source.table, region, budget, columns, condition):
                times = {row.row: self._time_of(row.columns) for row in rows}
                due = {key: cell for key, cell in times.items() if _is_due(cell, spans)}
                missing += len(self._confirm_unindexed(due))
        return missing

    def _count_unindexed_samples(self) -> int:
        """Return how many rows of a sample from random places of the whole table have no entry.

        Half of the places are keys of entries that are chosen at random, the others lie between two such keys.
        """
        columns, _, _ = self._source.read_plan(INDEXED_FIELDS)
        found: dict[bytes, bytes | None] = {}
        per_probe = max(1, PROBED_ROWS // _PROBES)
        for number in range(_PROBES):
            start = self._random_key()
            if number % 2:
                start = _key_between(start, self._random_key())
            for first in (start, b""):  # from the start of the table where the place is behind its last row
                scan = TableScanner(
                    self._source.gateways,
                    self._source.table,
                    KeySpan(first, b""),
                    RowBudget(per_probe, 1 << 20, per_probe),
                    columns,
                )
                rows = [row for part in islice(scan, 1) for row in part]
                found.update({row.row: self._time_of(row.columns) for row in rows})
                if rows:
                    break
        return len(self._confirm_unindexed(found))

    def _random_key(self) -> bytes:
        """Return the row key of an entry near a random place of the index."""
        drawn = random.SystemRandom()
        slot = slot_of(now_ms() + drawn.randrange(-90 * MS_PER_DAY, 90 * MS_PER_DAY))
        bucket = drawn.randrange(BUCKETS)
        for first in (slot, b""):
            budget = RowBudget(256, 1 << 20, 256)
            span = _bucket_span(bucket, first, b"")
            for rows in islice(
                TableScanner(self._due_table.gateways, self._due_table.name, span, budget, [due_table.ENTRY_COLUMN]),
                1,
            ):
                if rows:
                    return DueTableEntry(drawn.choice(rows).row, 0).key
        return b""

    def _find_unindexed(self, times: Mapping[bytes, bytes | None]) -> list[bytes]:
        """Return the keys of those rows (key -> cell of the due time) that have no entry."""
        entries = {make_entry_key(key, slot_of_cell(cell)): key for key, cell in times.items()}
        return [entries[each] for each in self._due_table.find_missing([*entries], RowBudget(1_000, 1 << 22))]

    def record_full_scan(self, row_count: int) -> None:
        """Record a full scan."""
        self._due_table.record_full_scan(row_count)

    def add_rows_without_time(self, keys: Sequence[str]) -> None:
        """Write entries of time 0."""
        if keys and self._is_enabled and self._due_table.state() is not None:
            self._due_table.add_entries(make_entry_key(encode_text(key), slot_of_cell(None)) for key in keys)

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
        """Yield the rows that are in the slots of their entries, and those that lack their current entry.

        An entry that is not that of its row is stale if the row's cell is newer, or after a day: a newer entry may
        precede the write of its row.
        """
        rows = self._fetch_rows([entry.key for entry in entries], columns, budget)
        yesterday = now_ms() - MS_PER_DAY
        stale: list[DueTableEntry] = []
        moved: dict[bytes, bytes | None] = {}
        for entry in entries:
            row = rows.get(entry.key)
            if row is None:
                if entry.written_at < yesterday:
                    stale.append(entry)
                continue
            time = self._time_of(row)
            if slot_of_cell(time) == entry.slot:
                yield entry.key, row
                continue
            moved[entry.key] = time
            cell = row.get(self._source.time_column)
            if entry.written_at < yesterday or (cell is not None and entry.written_at < cell.timestamp):
                stale.append(entry)
        unindexed = self._confirm_unindexed(moved)
        if unindexed:
            self.unindexed_count += len(unindexed)
            for key in unindexed:
                yield key, rows[key]
        self._due_table.delete_entries(stale)

    def _confirm_unindexed(self, times: Mapping[bytes, bytes | None]) -> list[bytes]:
        """Return the keys of rows without an entry for their due times, verified by a second read."""
        unindexed = self._find_unindexed(times)
        if not unindexed:
            return []
        columns, _, _ = self._source.read_plan(INDEXED_FIELDS)
        again = self._fetch_rows(unindexed, columns, RowBudget(1_000, 1 << 22))
        return self._find_unindexed({key: times[key] for key, row in again.items() if self._time_of(row) == times[key]})

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
        columns, _, _ = source.read_plan(INDEXED_FIELDS)
        for found in TableScanner(source.gateways, source.table, KeySpan(b"", b""), budget, columns):
            rows += len(found)
            for key in self._find_unindexed({row.row: self._time_of(row.columns) for row in found}):
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


def _is_due(cell: bytes | None, spans: Sequence[TimeSpan]) -> bool:
    """Return whether a due time is within ``spans``; a missing or invalid one may be."""
    time = time_of_cell(cell)
    return time is None or any(time in span for span in spans)


def _due_filter(column: bytes, spans: Sequence[TimeSpan]) -> bytes | None:
    """Return a filter for the rows due within ``spans``, and those without a due time; None where it cannot be written.

    HBase compares bytes without sign: a negative time, which is due, sorts after all others. A cell of another length
    can only be dropped if it sorts into the gap between the spans.
    """
    ordered = sorted(spans)
    if not ordered or len(ordered) > 2 or ordered[0].first > 0 or ordered[0].last < 0:
        return None
    family, _, qualifier = column.partition(b":")
    name = b"'%s','%s'" % (family.replace(b"'", b"''"), qualifier.replace(b"'", b"''"))
    next_due = ordered[1].first if len(ordered) == 2 else (1 << 63) - 1

    def condition(sign: bytes, time: int) -> bytes:
        value = _LONG.pack(time).replace(b"'", b"''")
        return b"SingleColumnValueFilter(%s,%s,'binary:%s',false,true)" % (name, sign, value)

    return condition(b"<=", ordered[0].last) + b" OR " + condition(b">=", next_due)


def _key_between(one: bytes, other: bytes) -> bytes:
    """Return a random key between two keys."""
    low, high = sorted((one, other))
    common = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    ends = [int.from_bytes(key[common : common + 8].ljust(8, b"\0")) for key in (low, high)]
    return low[:common] + random.SystemRandom().randrange(ends[0], ends[1] + 1).to_bytes(8)
