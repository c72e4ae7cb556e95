"""The index of due rows of a table in HBase: read beside the rows, made, compared with them; doubted when it is wrong.

HBase has no transaction over two tables, and Nutch 2 writes rows without entries. So an entry is a hint, and the row
decides. What is read of the index tells whether it was kept: of each entry in whose slot the row is no more, the row's
present entry is looked for. It is there unless another program has moved the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from nutch2py.cells import encode_text
from nutch2py.errors import StoreError
from nutch2py.record import Field
from nutch2py.table.clock import now_ms
from nutch2py.table.due import DueIndex, Figures, Span
from nutch2py.table.hbase import due_table
from nutch2py.table.hbase.columns import Row
from nutch2py.table.hbase.due_table import BUCKETS, DueTable, Entry, place, slot_of_cell
from nutch2py.table.hbase.failures import ANSWERS, explained
from nutch2py.table.hbase.gateways import Gateways
from nutch2py.table.hbase.regions import KEYS_ONLY
from nutch2py.table.hbase.scan import RowBudget, Scan, read_rows

MAKES_IT = "dueindex makes it"
_DAY = 86_400_000
_COUNTED_WHOLE = 10_000
"""Up to so many entries all are counted; of more, those of one bucket."""
_PROBED = 200
"""Rows of the table that are compared with the index before it is used."""


class Source(NamedTuple):
    """The table of pages: its gateways, its full name, the site's column of the due time.

    ``reading`` gives for some fields the columns to ask for, how many rows at once, and what makes a record of a row;
    ``starts`` some row keys at which parts of the table begin.
    """

    gateways: Gateways
    table: bytes
    time_column: bytes
    reading: Callable[[frozenset[Field[Any]]], tuple[list[bytes], RowBudget, Callable[[Row], Any]]]
    starts: Callable[[int], Sequence[bytes]]


class HBaseDueIndex(DueIndex):
    """The index in the table that :mod:`nutch2py.table.hbase.due_table` tells of. There are no figures."""

    best_first = False
    counts = False
    by_tasks = True

    def __init__(self, source: Source, due: DueTable, wanted: bool, look_days: float) -> None:
        self._source, self._due, self._wanted, self._look = source, due, wanted, int(look_days * _DAY)
        self.unlisted = 0

    @property
    def trouble(self) -> str:  # type: ignore[override]
        """Why it cannot be used."""
        if not self._wanted:
            return "hbase.due.index is false"
        state = self._due.state()
        if state is None:
            return f"the table has none ({MAKES_IT})"
        if not state.made:
            return f"it is being made, or was not finished ({MAKES_IT})"
        return f"{state.doubt} ({MAKES_IT} anew)" if state.doubt else ""

    def rows_known(self) -> int | None:
        """Return how many rows there were when all were looked at last."""
        state = self._due.state()
        return None if state is None else state.rows

    def wants_look(self, now: int) -> str:
        """Return why all rows are to be looked at this time, "" when they need not be."""
        state = self._due.state()
        if state is not None and self._look and now - state.looked > self._look:
            return "hbase.due.look.days have passed since all were looked at"
        lost = self._probed()
        if lost:
            self.doubt("rows of the table are not in it")
            return f"{lost} of {_PROBED} rows that were tried are not in the index of what is due ({MAKES_IT} anew)"
        return ""

    def _probed(self) -> int:
        """Return how many of some rows, from all over the table, have no entry."""
        starts = self._source.starts(8)
        found: dict[bytes, bytes] = {}
        for start in starts:
            budget = RowBudget(_PROBED // len(starts), 1 << 20, _PROBED // len(starts))
            scan = Scan(self._source.gateways, self._source.table, (start, b""), budget, [self._source.time_column])
            for rows in islice(scan, 1):
                found.update({row.row: row.columns[self._source.time_column].value for row in rows})
        return len(self._unlisted(found))

    def _unlisted(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of rows, by the cells of their due times, that have no entry."""
        places = {place(key, slot_of_cell(cell)): key for key, cell in times.items()}
        return [places[each] for each in self._due.missing([*places], RowBudget(1_000, 1 << 22))]

    def looked(self, rows: int) -> None:
        """Note that all rows were looked at."""
        self._due.looked(rows)

    def doubt(self, why: str) -> None:
        """Let nobody trust it any more, until it is made anew."""
        self._due.doubt(why)

    def count(self, spans: Sequence[Span], most: int) -> int:
        """Return about how many rows are due within ``spans``, at most ``most``."""
        found = sum(self._entries(spans, range(BUCKETS), min(most, _COUNTED_WHOLE)))
        if found < min(most, _COUNTED_WHOLE):
            return found
        return max(found, min(most, BUCKETS * sum(self._entries(spans, range(1), most // BUCKETS + 1))))

    def _entries(self, spans: Sequence[Span], buckets: range, most: int) -> Iterator[int]:
        """Yield numbers of entries, ``most`` in all."""
        for bucket in buckets:
            for first, stop in due_table.ranges(spans):
                budget = RowBudget(1_000, 1 << 20, min(max(most, 1), 1_000))
                span = _span(bucket, first, stop)
                for rows in Scan(self._due.gateways, self._due.name, span, budget, None, KEYS_ONLY):
                    yield min(len(rows), most)
                    most -= len(rows)
                    if most <= 0:
                        return

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Return ranges of buckets."""
        count = max(1, min(count, BUCKETS))
        ends = [BUCKETS * number // count for number in range(count + 1)]
        return [*pairwise(ends)]

    def rows(
        self, spans: Sequence[Span], part: tuple[int, int], fields: frozenset[Field[Any]]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the rows that stand within ``spans`` and in some buckets, each once.

        Entries that are stale for sure are deleted. A row that has moved without the index is counted in
        :attr:`unlisted`, and given, too.
        """
        columns, budget, made = self._source.reading(fields)
        asked = list(dict.fromkeys([*columns, self._source.time_column]))
        for bucket in range(*part):
            for first, stop in due_table.ranges(spans):
                span, some = _span(bucket, first, stop), RowBudget(1_000, 1 << 20, 64)
                for found in Scan(self._due.gateways, self._due.name, span, some, [due_table.ENTRY]):
                    entries = [Entry(row.row, row.columns[due_table.ENTRY].timestamp) for row in found]
                    for key, row in self._rows_of(entries, asked, budget):
                        yield key.decode("utf-8", "replace"), made(row)

    def _read(self, keys: Sequence[bytes], columns: Sequence[bytes], budget: RowBudget) -> dict[bytes, Row]:
        source = self._source
        try:
            return read_rows(source.gateways, source.table, keys, columns, budget)
        except ANSWERS as error:
            raise explained(error, source.gateways.table, source.gateways.where) from error

    def _rows_of(
        self, entries: list[Entry], columns: Sequence[bytes], budget: RowBudget
    ) -> Iterator[tuple[bytes, Row]]:
        there = self._read([entry.key for entry in entries], columns, budget)
        stale: list[Entry] = []
        moved: list[tuple[Entry, Any]] = []
        for entry in entries:
            row = there.get(entry.key)
            if row is None:
                if entry.written < now_ms() - _DAY:  # else the row may be about to be written
                    stale.append(entry)
                continue
            cell = row.get(self._source.time_column)
            if slot_of_cell(None if cell is None else cell.value) == entry.slot:
                yield entry.key, row
            elif cell is not None and entry.written < cell.timestamp:
                moved.append((entry, cell))
        stale += [entry for entry, _ in moved]
        lost = self._lost({entry.key: cell.value for entry, cell in moved})
        if lost:
            self.unlisted += len(lost)
            for key in lost:
                yield key, there[key]
        self._due.delete(stale)

    def _lost(self, times: dict[bytes, bytes]) -> list[bytes]:
        """Return the keys of rows that are not where their due times say, and still are not when looked at again."""
        lost = self._unlisted(times)
        if not lost:
            return []
        again = self._read(lost, [self._source.time_column], RowBudget(1_000, 1 << 22))
        return self._unlisted(
            {key: times[key] for key, row in again.items() if row[self._source.time_column].value == times[key]}
        )

    def missing(self, rows: Sequence[tuple[str, int]]) -> list[str]:
        """Return the keys of those rows, given with their due times (ms), that have no entry."""
        places = {place(encode_text(key), due_table.slot(time)): key for key, time in rows}
        return [places[each] for each in self._due.missing([*places], RowBudget(1_000, 1 << 22))]

    def put(self, rows: Sequence[tuple[str, int]]) -> None:
        """Write the entries of rows that are there, given with their due times (ms)."""
        self._due.put(place(encode_text(key), due_table.slot(time)) for key, time in rows)

    def check(self, note: Callable[[str], object]) -> int:
        """Tell ``note`` which rows of the table have no entry; return how many were looked at."""
        rows = 0
        source = self._source
        budget = RowBudget(1_000, 1 << 20)
        for found in Scan(source.gateways, source.table, (b"", b""), budget, [source.time_column]):
            rows += len(found)
            for key in self._unlisted({row.row: row.columns[source.time_column].value for row in found}):
                note(f"row {key.decode('utf-8', 'replace')} is not in the index where it should be")
        return rows

    def begin(self) -> None:
        """Throw away what there is; jobs keep the new one from now on, and :meth:`complete` lets it be used."""
        if not self._wanted:
            super().begin()
        self._due.begin()

    def complete(self, rows: int) -> None:
        """Say that every row, of which there are so many, was given to :meth:`put`."""
        state = self._due.state()
        if state is None or state.made:
            raise StoreError(f"the index of what is due was dropped, or made by another, meanwhile ({MAKES_IT})")
        self._due.complete(rows)

    def figures(self) -> Figures:
        """There are none."""
        raise StoreError("HBase keeps no figures: every row is to be read")

    def drop(self) -> None:
        """Delete the table of the index."""
        self._due.drop()


def _span(bucket: int, first: bytes, stop: bytes) -> tuple[bytes, bytes]:
    head = bytes((bucket,))
    return head + first, head + stop if stop else bytes((bucket + 1,))
