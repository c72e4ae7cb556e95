"""Updates the HBase due index: writes the entries of rows with a new due time before the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nutch2py.errors import StoreError
from nutch2py.table.hbase.due_table import DueTable, make_entry_key, slot_of_cell
from nutch2py.table.hbase.thrift_client.wire import RowMutations


class HBaseDueUpdater:
    """Write entries to the table ``due``. ``column`` is the site's column of the due time.

    Without ``keeps_due_index`` the first write marks the index as invalid instead.
    """

    def __init__(self, due: DueTable, column: bytes, keeps_due_index: bool) -> None:
        self._due, self._column, self._keeps_due_index = due, column, keeps_due_index
        self._is_invalidated = False

    def write(self, puts: Mapping[int, RowMutations], deletes: Mapping[int, RowMutations]) -> None:
        """Write the entries for a group of writes; they are durable when this returns, unless the index was dropped.

        A row without a due time is listed under time 0.
        """
        entry_keys = [*self._entry_keys(puts, deletes)]
        if not entry_keys or self._is_invalidated:
            return
        try:
            if self._keeps_due_index:
                self._due.add_entries(entry_keys)
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
