"""HBaseStore: a :class:`nutch2py.table.data_store.DataStore` for a table of HBase behind Thrift gateways."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Self

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.records.cells import encode_text
from nutch2py.records.record import RecordField
from nutch2py.table.data_store import DataStore, R, RowCells, check_comparable, table_name_error
from nutch2py.table.due_index import DueIndex
from nutch2py.table.hbase.column_selection import CellRow, ColumnSelection
from nutch2py.table.hbase.due_table import DueTable
from nutch2py.table.hbase.gora_mapping import ColumnMapping, column_mapping
from nutch2py.table.hbase.hbase_admin import await_enabled, create_table, new_table_families
from nutch2py.table.hbase.hbase_batch import HBaseBatch
from nutch2py.table.hbase.hbase_due_index import CHECKS, HBaseDueIndex, PageTableSource
from nutch2py.table.hbase.hbase_due_update import HBaseDueUpdater
from nutch2py.table.hbase.regions import KEYS_ONLY_FILTER, region_hosts, region_spans, split_points, to_key_span
from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    SERVER_ERRORS,
    has_java_exception,
    table_missing_error,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget, TableScanner, read_rows
from nutch2py.table.hbase.thrift_client.hbase_settings import HBaseLocation, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.thrift_types import ThriftCell, ThriftMutation
from nutch2py.table.table_query import KeyRange, TableQuery

DUE_TIME_COLUMN = (b"f", b"ts")
"""Nutch's column of the due time."""
_TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class HBaseStore(DataStore[R]):
    """A table of an HBase cluster. Connections are opened on first use.

    Stores are thread-safe, and can be used after a fork. Reading and writing a table that does not exist raises
    :class:`nutch2py.errors.StoreError`.
    """

    def __init__(
        self, record: type[R], name: str, location: str, gateways: ThriftGatewayPool, mapping: ColumnMapping, table: str
    ) -> None:
        super().__init__(record, name, location)
        self._gateways, self._mapping = gateways, mapping
        self._table = table.encode()
        self._families: frozenset[bytes] | None = None
        self._budgets: dict[frozenset[bytes] | None, RowBudget] = {}
        self._keeps_due_index, self._full_scan_days, self._is_due_checked_exactly = False, 0.0, True
        self._max_exact_share = 1.0

    @classmethod
    def open(cls, conf: Configuration, record: type[R], table_name: str, location: str) -> Self:
        """Open the table ``table_name`` at ``hbase://host:port[,…][/namespace]`` without connecting."""
        if not _TABLE_NAME.fullmatch(table_name):
            raise table_name_error(table_name)
        where = HBaseLocation.parse(location)
        table = where.full_name(table_name)
        gateways = ThriftGatewayPool(where.gateways, HBaseSettings.from_conf(conf), table, location)
        store = cls(record, table_name, location, gateways, column_mapping(conf, record), table)
        store._keeps_due_index = conf.get_bool("hbase.due.index", False)
        store._full_scan_days = conf.get_float("hbase.due.look.days", 7.0)
        check = conf.get_trimmed("hbase.due.check", "exact")
        if check not in CHECKS:
            raise ConfigurationError(f"hbase.due.check is {check!r}: choose one of {', '.join(CHECKS)}")
        store._is_due_checked_exactly = check == "exact"
        store._max_exact_share = conf.get_float("hbase.due.exact.share", 0.05)
        return store

    def _fetch_families(self) -> frozenset[bytes] | None:
        """Return the current families of the table, None if it does not exist."""
        try:
            described = self._gateways.call(lambda link: link.client.getColumnDescriptors(self._table))
        except SERVER_ERRORS as error:
            if has_java_exception(error, "TableNotFoundException", "NamespaceNotFoundException"):
                return None
            raise to_store_error(error, self._gateways.table, self.location) from error
        return frozenset(name.rstrip(b":") for name in described)

    def _refresh_families(self) -> frozenset[bytes]:
        found = self._fetch_families()
        if found is None:
            raise table_missing_error(self._gateways.table, self.location)
        self._families = found
        return found

    def families(self) -> frozenset[bytes]:
        """Return the site's names of the table's families; fetched from HBase once."""
        return self._families if self._families is not None else self._refresh_families()

    def exists(self) -> bool:
        """Return whether the table exists: one request to HBase's master."""
        found = self._fetch_families()
        self._families = found
        return found is not None

    def create(self) -> None:
        """Create the table unless it exists; an existing table is not changed, even if it lacks families.

        Concurrent creations by several processes yield one table. A table of pages is split at the keys in
        ``hbase.create.splits``.
        """
        if self.exists():
            await_enabled(self._gateways, self._table)
        else:
            splits = self._gateways.settings.split_keys if self.record_class.SCHEMA == "webpage" else ()
            self._create_table([encode_text(key) for key in splits])

    def create_with_splits(self, split_keys: Sequence[bytes]) -> None:
        """Create the table with its regions split at the row keys ``split_keys``.

        Raises:
            StoreError: The table exists (``split`` in the hbase shell splits it), or no gateway of the second Thrift
                interface responds; the message then contains the command for the hbase shell.
        """
        if self.exists():
            raise StoreError(
                f"table {self._gateways.table} at {self.location} exists: a table is split when it is created, "
                f"or with  split '{self._gateways.table}', 'KEY'  in the hbase shell"
            )
        self._create_table(split_keys)

    def _create_table(self, splits: Sequence[bytes]) -> None:
        if self._keeps_due_index and self._has_due_times:  # first, since other processes may write rows at once
            self._due_table().create()
        create_table(self._gateways, self._table, new_table_families(self._mapping, self._gateways.settings), splits)
        self._families = None

    def drop(self) -> None:
        """Disable and delete the table, if it exists, and its due index."""
        self._drop_table()
        if self._has_due_times:
            self._due_table().drop()

    def _drop_table(self) -> None:
        self._families = None
        try:
            if self._fetch_families() is None:
                return
            self._gateways.call(lambda link: link.is_table_enabled(self._table) and link.disable_table(self._table))
            self._gateways.call(lambda link: link.delete_table(self._table))
        except SERVER_ERRORS as error:
            if not has_java_exception(error, "TableNotFoundException"):
                raise to_store_error(error, self._gateways.table, self.location) from error

    def close(self) -> None:
        """Close the connections."""
        self._gateways.close()

    def _budget(self, columns: Sequence[bytes] | None) -> RowBudget:
        """Return the row budget for requests of ``columns``, adjusted by earlier responses with the same columns."""
        settings = self._gateways.settings
        key = None if columns is None else frozenset(columns)
        known = self._budgets.get(key)
        budget = RowBudget(settings.scan_rows, settings.scan_bytes) if known is None else known.copy()
        self._budgets[key] = budget
        return budget

    def scan(self, query: TableQuery) -> Iterator[tuple[str, R]]:
        """Yield rows in key order; no connection of the pool is held while the caller processes a row.

        The region servers filter by mark, region by region, so that no call takes longer than the scan of one region.
        With empty fields and a mark the rows have no cells.
        """
        selection = ColumnSelection(query.fields, self._mapping, self.families(), query.mark)
        columns, fields, record = selection.requested_columns, query.fields, self.record_class
        if columns is not None and not columns:
            return
        whole = to_key_span(query.range)
        budget = self._budget(columns)
        spans = [whole] if query.mark is None else region_spans(self._gateways, self._table, whole)
        for span in spans:
            for rows in TableScanner(self._gateways, self._table, span, budget, columns, selection.filter_string):
                self._observe_times(row.columns for row in rows)
                if selection.includes_mark:
                    for row in rows:
                        yield row.row.decode("utf-8", "replace"), record(None, fields, selection, row.columns)
                else:
                    for row in rows:
                        if selection.has_cell(row.columns):
                            yield row.row.decode("utf-8", "replace"), record(None, fields, selection, row.columns)

    def keys(self, key_range: KeyRange) -> Iterator[str]:
        """Yield the row keys of a range; the gateway sends the key and the name of one cell per row."""
        self.families()
        for rows in TableScanner(
            self._gateways, self._table, to_key_span(key_range), self._budget([]), None, KEYS_ONLY_FILTER
        ):
            self._observe_times(row.columns for row in rows)
            for row in rows:
                yield row.row.decode("utf-8", "replace")

    def get_many(self, keys: Sequence[str], fields: Iterable[RecordField] | None = None) -> list[R | None]:
        """Return the rows of ``keys``, requested in groups by size; all of them are in memory at once."""
        wanted = None if fields is None else frozenset(fields)
        selection = ColumnSelection(wanted, self._mapping, self.families())
        columns = selection.requested_columns
        if columns is not None and not columns:
            return [None] * len(keys)
        coded = [encode_text(key) for key in keys]
        try:
            rows = read_rows(self._gateways, self._table, coded, columns, self._budget(columns))
        except SERVER_ERRORS as error:
            raise to_store_error(error, self._gateways.table, self.location) from error
        self._observe_times(rows.values())
        record, get = self.record_class, rows.get
        return [None if (row := get(key)) is None else record(None, wanted, selection, row) for key in coded]

    def key_ranges(self, query: TableQuery, count: int) -> list[KeyRange]:
        """Return about ``count`` ranges: the regions, merged or split at quantiles of a key sample."""
        self.families()
        cuts = split_points(
            self._gateways, self._table, to_key_span(query.range), count, self._sample_family(self.families())
        )
        texts = sorted({cut.decode("utf-8", "ignore") for cut in cuts})
        stop = query.range.stop
        inner = [text for text in texts if text > query.range.start and (not stop or text < stop)]
        return [KeyRange(*ends) for ends in pairwise([query.range.start, *inner, stop])]

    def range_hosts(self, ranges: Sequence[KeyRange]) -> list[str]:
        """Return for each range the host of the region server with most of its regions."""
        return region_hosts(self._gateways, self._table, [to_key_span(key_range) for key_range in ranges])

    def region_count(self) -> int:
        """Return the number of regions of the table."""
        return len(region_spans(self._gateways, self._table, to_key_span(KeyRange())))

    def _sample_family(self, present: frozenset[bytes]) -> bytes | None:
        """Return the family to sample keys from: the score's, which nearly every page has."""
        score = self.record_class.FIELDS.get("score")
        if score is None:
            return None
        site = self._mapping.scalars[score.family, score.qualifier][0]
        return site if site in present else None

    def row_estimate(self) -> int | None:
        """Return None: gateways have no row count, and counting would read every row."""
        return None

    def batch(self, before_flush: Callable[[], object] | None = None) -> HBaseBatch:
        """Return a batch of writes; see :mod:`nutch2py.table.hbase.hbase_batch` for rejected rows."""
        updater = self._due_updater()
        batch = HBaseBatch(self._gateways, self._table, self._mapping, self._refresh_families, self.clock, updater)
        batch.before_flush = before_flush
        return batch

    # due index

    @property
    def _has_due_times(self) -> bool:
        return self.record_class.SCHEMA == "webpage"

    def _due_table(self) -> DueTable:
        return DueTable(self._gateways, self._table, self.clock)

    def _due_time_column(self) -> bytes:
        return b"%s:%s" % self._mapping.scalars[DUE_TIME_COLUMN]

    def _due_updater(self) -> HBaseDueUpdater | None:
        """Return the updater of the due index, None if there is no valid index."""
        if not self._has_due_times:
            return None
        due = self._due_table()
        state = due.state()
        return (
            None
            if state is None or state.invalid_reason
            else HBaseDueUpdater(due, self._due_time_column(), self._keeps_due_index)
        )

    def due_index(self) -> DueIndex:
        """Return the due index, which is in a separate table."""
        if not self._has_due_times:
            return super().due_index()
        source = PageTableSource(
            self._gateways,
            self._table,
            self._due_time_column(),
            self._read_plan,
            lambda: region_spans(self._gateways, self._table, to_key_span(KeyRange())),
        )
        return HBaseDueIndex(
            source,
            self._due_table(),
            self._keeps_due_index,
            self._full_scan_days,
            self._is_due_checked_exactly,
            self._max_exact_share,
        )

    def _read_plan(self, fields: frozenset[RecordField]) -> tuple[list[bytes], RowBudget, Callable[[CellRow], R]]:
        """Return the columns of ``fields``, the row budget, and a function from a row to a record."""
        selection, record = ColumnSelection(fields, self._mapping, self.families()), self.record_class

        def make_record(row: CellRow) -> R:
            self._observe_times([row])
            return record(None, fields, selection, row)

        columns = selection.requested_columns or []
        return columns, self._budget(columns), make_record

    def compare_and_set(self, key: str, field: RecordField, expected: bytes | None, new: bytes | None) -> bool:
        """Set one cell if it holds ``expected``, by ``checkAndPut`` under the row lock of the region server.

        HBase treats an empty cell like a missing one, so None is written as an empty cell: a delete marker could hide a
        later write of a server with a slower clock.
        """
        check_comparable(field, expected, new)
        site, qualifier = self._mapping.scalars[field.family, field.qualifier]
        column, row = b"%s:%s" % (site, qualifier), encode_text(key)
        put = ThriftMutation(column=column, value=new or b"", writeToWAL=True)
        attempts = 0

        def check_and_put(link: GatewayConnection) -> bool:
            nonlocal attempts
            attempts += 1
            done: bool = link.client.checkAndPut(self._table, row, column, expected, put, {})
            if done or attempts == 1:
                return done
            # the lost response of an earlier attempt may have reported success
            cells = link.client.get(self._table, row, column, {})
            return ((cells[0].value if cells else None) or None) == new

        try:
            return self._gateways.call(check_and_put)
        except SERVER_ERRORS as error:
            raise to_store_error(error, self._gateways.table, self.location) from error

    def _observe_times(self, rows: Iterable[Mapping[bytes, ThriftCell]]) -> None:
        """Record the timestamps of cells that were read: another program's clock may be ahead of ours."""
        self.clock.observe(max((cell.timestamp for row in rows for cell in row.values()), default=0))

    def scan_cells(self, key_range: KeyRange = KeyRange()) -> Iterator[tuple[str, RowCells]]:  # noqa: B008
        """Yield the newest version of every cell with its timestamp, in key order."""
        self.families()
        from_site = self._mapping.from_site
        for rows in TableScanner(self._gateways, self._table, to_key_span(key_range), self._budget(None)):
            for row in rows:
                cells: RowCells = {}
                for column, cell in row.columns.items():
                    family, qualifier = from_site(column)
                    entries = cells.get(family)
                    if entries is None:
                        entries = cells[family] = {}
                    entries[qualifier] = (cell.value, cell.timestamp)
                yield row.row.decode("utf-8", "replace"), cells
