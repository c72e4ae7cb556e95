"""Which databases and columns a query reads, and how the packed row it gives becomes the columns of a record.

A row is a tuple of values, one a database of the selection: packed bytes, loaded contents, or None.
Records unpack a family when they are asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nutch2py.record import Columns, Field
from nutch2py.table.embedded.files import damage
from nutch2py.table.embedded.packing import DamagedCellsError, columns, has_any
from nutch2py.table.query import columns_of

CONTENT = {"webpage": (b"f", b"cnt")}
"""Schema -> the column whose values lie in ``content``; its database in ``meta`` is called ``family:qualifier``."""
Row = tuple[Any, ...]


def content_database(schema: str) -> bytes | None:
    """Return the name of the database that refers to contents, None when the schema has none."""
    return b":".join(CONTENT[schema]) if schema in CONTENT else None


class Selection:
    """The databases to read, with the qualifiers wanted of each (None: all of them). ``where``: for messages."""

    def __init__(
        self, schema: str, fields: Iterable[Field[Any]] | None, present: Iterable[bytes], where: str = "the table"
    ) -> None:
        self.where = where
        content_column = CONTENT.get(schema)
        self.content = content_database(schema)
        there = set(present)
        wanted: dict[bytes, frozenset[bytes] | None] = {}
        if fields is None:
            wanted = dict.fromkeys(there)
        else:
            for family, qualifiers in columns_of(fields).items():
                if content_column and family == content_column[0] and self.content:
                    if qualifiers is None or content_column[1] in qualifiers:
                        wanted[self.content] = None
                    if qualifiers is not None:
                        qualifiers -= {content_column[1]}
                        if not qualifiers:
                            continue
                wanted[family] = qualifiers
        names = sorted(name for name in wanted if name in there)
        self.names = tuple(names)
        self.absent = wanted.keys() - there
        self.qualifiers = tuple(wanted[name] for name in names)
        self.content_at = names.index(self.content) if self.content in names else None
        self._places: dict[bytes, list[tuple[int, frozenset[bytes] | None]]] = {}
        for index, name in enumerate(names):
            self._places.setdefault(name.partition(b":")[0], []).append((index, wanted[name]))
        self.families = tuple(self._places)
        self.whole = tuple(i for i, qualifiers in enumerate(self.qualifiers) if qualifiers is None)
        self.partial = tuple(i for i, qualifiers in enumerate(self.qualifiers) if qualifiers is not None)

    def columns(self, row: Row, family: bytes) -> Columns:
        """Return the wanted columns of a family: what a record asks for (see :class:`nutch2py.record.Packed`)."""
        places = self._places.get(family, ())
        if len(places) == 1 and places[0][1] is None:  # a family as a whole, from one database
            value = row[places[0][0]]
            if type(value) is bytes:
                try:
                    return columns(value)
                except DamagedCellsError as error:
                    raise damage(self.where, error) from error
            return {} if value is None else value
        found: Columns = {}
        for index, wanted in places:
            value = row[index]
            if value is None:
                continue
            if type(value) is bytes:
                try:
                    cells = columns(value)
                except DamagedCellsError as error:  # a record asks for its cells long after the scan
                    raise damage(self.where, error) from error
            else:
                cells = value
            if wanted is not None and not cells.keys() <= wanted:
                cells = {qualifier: cells[qualifier] for qualifier in wanted if qualifier in cells}
            found = {**found, **cells} if found else cells
        return found

    def has_cell(self, row: Row) -> bool:
        """Tell whether ``row`` has at least one wanted cell."""
        for index in self.whole:
            if row[index] is not None:
                return True
        for index in self.partial:
            value, wanted = row[index], self.qualifiers[index]
            if value is not None and wanted is not None and has_any(value, wanted):
                return True
        return False
