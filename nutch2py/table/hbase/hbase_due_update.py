"""Keeping the index of what is due: the entries of rows whose due time is written, before the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nutch2py.errors import StoreError
from nutch2py.table.hbase.due_table import DueTable, make_entry_key, slot_of_cell
from nutch2py.table.hbase.thrift_client.wire import RowMutations


class HBaseDueUpdater:
    """Writes entries into ``due``. ``column``: the site's column of the due time.

    ``keeps``: whether this program shall keep the index. One that shall not says with its first write that the index
    is not to be trusted.
    """

    def __init__(self, due: DueTable, column: bytes, keeps_due_index: bool) -> None:
        self._due, self._column, self._keeps_due_index = due, column, keeps_due_index
        self._is_invalidated = False

    def write(self, puts: Mapping[int, RowMutations], deletes: Mapping[int, RowMutations]) -> None:
        """Write the entries of a group of writes; durable when it returns, or the index is gone and nobody reads it.

        A row that loses its due time counts as one of 1970.
        """
        places = [*self._entry_keys(puts, deletes)]
        if not places or self._is_invalidated:
            return
        try:
            if self._keeps_due_index:
                self._due.add_entries(places)
            else:
                self._due.invalidate("a program with hbase.due.index = false has written the table since")
                self._is_invalidated = True
        except StoreError:
            if self._due.state() is not None:
                raise

    def _entry_keys(self, puts: Mapping[int, RowMutations], deletes: Mapping[int, RowMutations]) -> Iterator[bytes]:
        column = self._column
        for rows in puts.values():
            for row, columns in rows.items():
                if (cell := columns.get(column)) is not None:
                    yield make_entry_key(row, slot_of_cell(cell))
        for rows in deletes.values():
            for row, columns in rows.items():
                if column in columns:
                    yield make_entry_key(row, slot_of_cell(None))
