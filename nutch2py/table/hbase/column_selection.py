"""Columns that a query requests from HBase, and the conversion of the returned cells to the columns of a record.

A row stays as the Thrift client decoded it (``column -> TCell``) until a record reads a family; then only the requested
columns of that family are extracted.
"""

from __future__ import annotations

from collections.abc import Iterable

from nutch2py.records.cells import encode_text
from nutch2py.records.record import Columns, RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.hbase.thrift_client.thrift_types import ThriftCell
from nutch2py.table.table_query import MarkCondition

CellRow = dict[bytes, ThriftCell]
"""``family:qualifier -> TCell``."""
_MARKS_FAMILY = WebPage.markers.family


class ColumnSelection:
    """The columns of ``fields`` (None: all) in a table with the families ``present``; see :attr:`requested_columns`.

    Families that the table lacks are never requested, since HBase would reject the whole scan.
    """

    def __init__(
        self,
        fields: Iterable[RecordField] | None,
        mapping: ColumnMapping,
        present: frozenset[bytes],
        mark: MarkCondition | None = None,
    ) -> None:
        self._mapping = mapping
        self._scalars: dict[bytes, list[tuple[bytes, bytes]]] = {}
        self._map_prefixes: dict[bytes, bytes] = {}
        self._excluded_columns: dict[bytes, set[bytes]] = {}
        self.requested_columns: list[bytes] | None = None
        """Columns and families (without colon) for the gateway; None: all; empty: the table has none of them."""
        self.includes_mark = True
        """Whether the query requested the cell of the mark."""
        self.filter_string: bytes | None = None
        if fields is None:
            families = {ours for site in present for ours in mapping.our_families(site)}
            self.families = tuple(sorted(families))
            self._reads_all = True
        else:
            self._reads_all = False
            self._select_fields(list(fields), present)
        if mark is not None:
            self._add_mark(mark, present)

    def _select_fields(self, fields: list[RecordField], present: frozenset[bytes]) -> None:
        mapping = self._mapping
        requested: dict[bytes, None] = {}
        for field in fields:
            if field.is_map:
                site = mapping.families[field.family]
                if site in present:
                    self._map_prefixes[field.family] = site + b":"
                    self._excluded_columns[field.family] = {
                        b"%s:%s" % column for column in mapping.scalars.values() if column[0] == site
                    }
                    requested[site] = None
        for field in fields:
            if not field.is_map:
                site, qualifier = mapping.scalars[field.family, field.qualifier]
                if site in present:
                    column = b"%s:%s" % (site, qualifier)
                    self._scalars.setdefault(field.family, []).append((field.qualifier, column))
                    if site not in requested:
                        requested[column] = None
        self.requested_columns = list(requested)
        self.families = tuple(dict.fromkeys([*self._map_prefixes, *self._scalars]))

    def _add_mark(self, mark: MarkCondition, present: frozenset[bytes]) -> None:
        """Add a server-side filter; its column must be among the requested ones."""
        site = self._mapping.families.get(_MARKS_FAMILY, _MARKS_FAMILY)
        name = encode_text(mark.name)
        if site not in present:
            self.requested_columns = []
            self.filter_string = b""
            return
        if self.requested_columns is not None and site not in self.requested_columns:
            self.requested_columns.append(b"%s:%s" % (site, name))
            self.includes_mark = False
        test = b">=,'binary:" if mark.value is None else b"=,'binary:%s" % _quoted(encode_text(mark.value))
        self.filter_string = b"SingleColumnValueFilter('%s','%s',%s',true,true)" % (_quoted(site), _quoted(name), test)

    def has_cell(self, row: CellRow) -> bool:
        """Return whether a row has a requested cell; the mark of the filter does not count."""
        return self.includes_mark or len(row) > 1 or not self.families

    def columns(self, row: CellRow, family: bytes) -> Columns:
        """Return the requested columns of a family; see :class:`nutch2py.records.record.PackedRowReader`."""
        if self._reads_all:
            return self._all_columns(row, family)
        found: Columns = {}
        for qualifier, column in self._scalars.get(family, ()):
            cell = row.get(column)
            if cell is not None:
                found[qualifier] = cell.value
        prefix = self._map_prefixes.get(family)
        if prefix is not None:
            cut, others = len(prefix), self._excluded_columns[family]
            for column, cell in row.items():
                if column.startswith(prefix) and column not in others:
                    found[column[cut:]] = cell.value
        return found

    def _all_columns(self, row: CellRow, family: bytes) -> Columns:
        if self._mapping.plain:
            prefix = family + b":"
            cut = len(prefix)
            return {column[cut:]: cell.value for column, cell in row.items() if column.startswith(prefix)}
        named = ((*self._mapping.from_site(column), cell) for column, cell in row.items())
        return {qualifier: cell.value for ours, qualifier, cell in named if ours == family}


def _quoted(literal: bytes) -> bytes:
    """Return a literal for HBase's filter language, with quotes doubled."""
    return literal.replace(b"'", b"''")
