"""Databases and columns that a query reads, and the conversion of packed rows to the columns of a record.

A packed row is a tuple with one value per database of the selection: packed bytes, loaded contents, or None. Records
unpack a family on first access.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nutch2py.records.record import Columns, RecordField
from nutch2py.table.embedded.storage.lmdb_errors import damaged_table_error
from nutch2py.table.embedded.storage.packing import DamagedCellsError, has_any_column, unpack_columns
from nutch2py.table.table_query import columns_of

CONTENT_COLUMNS = {"webpage": (b"f", b"cnt")}
"""Schema -> the column with values in ``content``; its database in ``meta`` is named ``family:qualifier``."""
PackedRow = tuple[Any, ...]


def content_database(schema: str) -> bytes | None:
    """Return the name of the database with references to contents, None if the schema has none."""
    return b":".join(CONTENT_COLUMNS[schema]) if schema in CONTENT_COLUMNS else None


class DatabaseSelection:
    """The databases to read, with the selected qualifiers of each (None: all). ``where`` is for messages."""

    def __init__(
        self, schema: str, fields: Iterable[RecordField] | None, present: Iterable[bytes], where: str = "the table"
    ) -> None:
        self.where = where
        content_column = CONTENT_COLUMNS.get(schema)
        self.content_database = content_database(schema)
        there = set(present)
        wanted: dict[bytes, frozenset[bytes] | None] = {}
        if fields is None:
            wanted = dict.fromkeys(there)
        else:
            for family, qualifiers in columns_of(fields).items():
                if content_column and family == content_column[0] and self.content_database:
                    if qualifiers is None or content_column[1] in qualifiers:
                        wanted[self.content_database] = None
                    if qualifiers is not None:
                        qualifiers -= {content_column[1]}
                        if not qualifiers:
                            continue
                wanted[family] = qualifiers
        names = sorted(name for name in wanted if name in there)
        self.database_names = tuple(names)
        self.missing_databases = wanted.keys() - there
        self.qualifiers = tuple(wanted[name] for name in names)
        self.content_index = names.index(self.content_database) if self.content_database in names else None
        self._family_parts: dict[bytes, list[tuple[int, frozenset[bytes] | None]]] = {}
        for index, name in enumerate(names):
            self._family_parts.setdefault(name.partition(b":")[0], []).append((index, wanted[name]))
        self.families = tuple(self._family_parts)
        self.whole_databases = tuple(i for i, qualifiers in enumerate(self.qualifiers) if qualifiers is None)
        self.partial_databases = tuple(i for i, qualifiers in enumerate(self.qualifiers) if qualifiers is not None)

    def columns(self, row: PackedRow, family: bytes) -> Columns:
        """Return the selected columns of a family; see :class:`nutch2py.records.record.PackedRowReader`."""
        places = self._family_parts.get(family, ())
        if len(places) == 1 and places[0][1] is None:  # a whole family from one database
            value = row[places[0][0]]
            if type(value) is bytes:
                try:
                    return unpack_columns(value)
                except DamagedCellsError as error:
                    raise damaged_table_error(self.where, error) from error
            return {} if value is None else value
        found: Columns = {}
        for index, wanted in places:
            value = row[index]
            if value is None:
                continue
            if type(value) is bytes:
                try:
                    cells = unpack_columns(value)
                except DamagedCellsError as error:  # outside translate_errors: records unpack after the scan
                    raise damaged_table_error(self.where, error) from error
            else:
                cells = value
            if wanted is not None and not cells.keys() <= wanted:
                cells = {qualifier: cells[qualifier] for qualifier in wanted if qualifier in cells}
            found = {**found, **cells} if found else cells
        return found

    def has_cell(self, row: PackedRow) -> bool:
        """Return whether ``row`` has at least one selected cell."""
        for index in self.whole_databases:
            if row[index] is not None:
                return True
        for index in self.partial_databases:
            value, wanted = row[index], self.qualifiers[index]
            if value is not None and wanted is not None and has_any_column(value, wanted):
                return True
        return False
