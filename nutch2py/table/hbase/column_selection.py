"""Which columns a query asks HBase for, and how the cells that come back become the columns of a record.

A row stays as the Thrift client decoded it (``column -> TCell``) until a record asks for a family; then only the
columns of that family that the query named are taken out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nutch2py.records.cells import encode_text
from nutch2py.records.record import Columns, Field
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.table_query import MarkCondition

CellRow = dict[bytes, Any]
"""``family:qualifier -> TCell``."""
_MARKS_FAMILY = b"mk"


class ColumnSelection:
    """The columns of ``fields`` (None: all) in a table that has the families ``present``; see :attr:`requested_columns`.

    Families that the table lacks are never asked for: HBase refuses the whole scan.
    """

    def __init__(
        self,
        fields: Iterable[Field[Any]] | None,
        mapping: ColumnMapping,
        present: frozenset[bytes],
        mark: MarkCondition | None = None,
    ) -> None:
        self._mapping = mapping
        self._scalars: dict[bytes, list[tuple[bytes, bytes]]] = {}
        self._map_prefixes: dict[bytes, bytes] = {}
        self._excluded_columns: dict[bytes, set[bytes]] = {}
        self.requested_columns: list[bytes] | None = None
        """Columns and families (without colon) for the gateway; None: everything; empty: nothing is there to read."""
        self.includes_mark = True
        """Whether the cell of the mark is one of those that were asked for."""
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

    def _select_fields(self, fields: list[Field[Any]], present: frozenset[bytes]) -> None:
        mapping = self._mapping
        asked: dict[bytes, None] = {}
        for field in fields:
            if field.is_map:
                site = mapping.families[field.family]
                if site in present:
                    self._map_prefixes[field.family] = site + b":"
                    self._excluded_columns[field.family] = {
                        b"%s:%s" % column for column in mapping.scalars.values() if column[0] == site
                    }
                    asked[site] = None
        for field in fields:
            if not field.is_map:
                site, qualifier = mapping.scalars[field.family, field.qualifier]
                if site in present:
                    column = b"%s:%s" % (site, qualifier)
                    self._scalars.setdefault(field.family, []).append((field.qualifier, column))
                    if site not in asked:
                        asked[column] = None
        self.requested_columns = list(asked)
        self.families = tuple(dict.fromkeys([*self._map_prefixes, *self._scalars]))

    def _add_mark(self, mark: MarkCondition, present: frozenset[bytes]) -> None:
        """Let the server choose the rows; the column of a server-side condition must be among those it reads."""
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
        """Tell whether a row that was read has a cell that was asked for (the mark's own is not)."""
        return self.includes_mark or len(row) > 1 or not self.families

    def columns(self, row: CellRow, family: bytes) -> Columns:
        """Return the wanted columns of a family: what a record asks for (see :class:`nutch2py.records.record.PackedRowReader`)."""
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
    """Return bytes for the filter language, where a quote is written twice."""
    return literal.replace(b"'", b"''")
