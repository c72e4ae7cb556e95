"""Keeping the index of what is due: the entries of rows whose due time is written, before the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nutch2py.errors import StoreError
from nutch2py.table.hbase.due_table import DueTable, place, slot_of_cell
from nutch2py.table.hbase.wire import Rows


class Listing:
    """Writes entries into ``due``. ``column``: the site's column of the due time.

    ``keeps``: whether this program shall keep the index. One that shall not says with its first write that the index
    is not to be trusted.
    """

    def __init__(self, due: DueTable, column: bytes, keeps: bool) -> None:
        self._due, self._column, self._keeps = due, column, keeps
        self._doubted = False

    def write(self, puts: Mapping[int, Rows], deletes: Mapping[int, Rows]) -> None:
        """Write the entries of a group of writes; durable when it returns, or the index is gone and nobody reads it.

        A row that loses its due time counts as one of 1970.
        """
        places = [*self._places(puts, deletes)]
        if not places or self._doubted:
            return
        try:
            if self._keeps:
                self._due.put(places)
            else:
                self._due.doubt("a program with hbase.due.index = false has written the table since")
                self._doubted = True
        except StoreError:
            if self._due.state() is not None:
                raise

    def _places(self, puts: Mapping[int, Rows], deletes: Mapping[int, Rows]) -> Iterator[bytes]:
        column = self._column
        for rows in puts.values():
            for row, columns in rows.items():
                if (cell := columns.get(column)) is not None:
                    yield place(row, slot_of_cell(cell))
        for rows in deletes.values():
            for row, columns in rows.items():
                if column in columns:
                    yield place(row, slot_of_cell(None))
