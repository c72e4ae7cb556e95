"""Updates the due index and the row statistics of a table in the transaction that writes the rows.

Both are valid only if every writer updates them. Each commit therefore stores its LMDB transaction number in the table:
if that number is not the number of the last commit, an older program has written since.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import lmdb

from nutch2py.records.webpage import WebPage
from nutch2py.support.invariants import not_none
from nutch2py.table.due_index import COUNTED_COLUMNS, statistic_name
from nutch2py.table.embedded.due_keys import DueEntry, build_entries, entry_prefix
from nutch2py.table.embedded.storage.packing import (
    LONGEST_KEY,
    lmdb_key,
    unpack_bucket,
    unpack_columns,
    unpack_verified_columns,
)
from nutch2py.table.embedded.storage.resident_pages import PIECE_READS, pieces
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE

DUE_DATABASE, STATISTICS_DATABASE = b":due", b":figures"
"""Databases of ``meta``: the due index, and the statistics by name."""
LAST_COMMIT_KEY = b"due written by"
"""Key of the state database with the number of the last commit that updated both."""
DUE_TIME, SCORE, MARKS_FAMILY = WebPage.fetch_time, WebPage.score, WebPage.markers.family
INDEXED_FAMILIES = (DUE_TIME.family, SCORE.family, MARKS_FAMILY, WebPage.parse_status.family)
"""The families that index and statistics are derived from."""
_SORT_COLUMNS = {DUE_TIME.family: DUE_TIME.qualifier, SCORE.family: SCORE.qualifier}
_PARSED_ONLY = "parsed only"
"""Statistic: rows that are counted for their parse status alone. No job creates such rows."""
_COUNT_FORMAT = struct.Struct(">q")
_NO_CELLS: dict[bytes, bytes] = {}
SortCell = bytes | None
"""A cell that orders the index; b"" for a missing cell, None for a missing family."""
CountedCells = tuple[bytes | None, ...]
"""The counted cells of a family, in the order of :data:`COUNTED_COLUMNS`."""


def is_up_to_date(txn: lmdb.Transaction[bytes], handles: Mapping[bytes, lmdb._Database], commit: int) -> bool:
    """Return whether index and statistics exist and were updated by the commit ``commit``."""
    if DUE_DATABASE not in handles or STATISTICS_DATABASE not in handles:
        return False
    stamp = txn.get(LAST_COMMIT_KEY, db=handles[STATE_DATABASE])
    return stamp is not None and stamp == _COUNT_FORMAT.pack(commit)


def record_commit(txn: lmdb.Transaction[bytes], handles: Mapping[bytes, lmdb._Database]) -> None:
    """Record that this commit has updated index and statistics."""
    txn.put(LAST_COMMIT_KEY, _COUNT_FORMAT.pack(txn.id()), db=handles[STATE_DATABASE])


def read_statistic(txn: lmdb.Transaction[bytes], handle: lmdb._Database, name: str) -> int:
    """Return one statistic, 0 if it is not stored."""
    return int(_COUNT_FORMAT.unpack(txn.get(name.encode(), db=handle) or bytes(_COUNT_FORMAT.size))[0])


def read_statistics(txn: lmdb.Transaction[bytes], handle: lmdb._Database) -> dict[str, int]:
    """Return all statistics by name."""
    return {bytes(name).decode(): _COUNT_FORMAT.unpack(count)[0] for name, count in txn.cursor(handle)}


class FamilyWrites(NamedTuple):
    """Writes to one family: the row keys, and the packed values of those rows before and after."""

    rows: Collection[bytes]
    before: Mapping[bytes, bytes]
    after: Mapping[bytes, bytes]


class EmbeddedDueUpdate:
    """Change of index and statistics by a group of writes: call :meth:`add_family` per family, then :meth:`write`.

    Args:
        txn: Transaction that shows the rows after all writes; None for a rebuild that is not written.
        handles: Database handles by name.
        release_mapped_pages: Called after each piece that is read or written.
        is_rebuild: Index and statistics are empty and built from all rows.
    """

    def __init__(
        self,
        txn: lmdb.Transaction[bytes] | None,
        handles: Mapping[bytes, lmdb._Database],
        release_mapped_pages: Callable[[], object],
        is_rebuild: bool = False,
    ) -> None:
        self._txn, self._handles = txn, handles
        self._release_mapped_pages, self._is_rebuild = release_mapped_pages, is_rebuild
        self._read_count = 0  # cells read of families that were not written
        self._family_writes: dict[bytes, FamilyWrites] = dict.fromkeys(INDEXED_FAMILIES, FamilyWrites((), {}, {}))
        self._parsed_only_count = (
            0 if is_rebuild or txn is None else read_statistic(txn, handles[STATISTICS_DATABASE], _PARSED_ONLY)
        )
        self._removed_entries: list[tuple[bytes, DueEntry]] = []  # row keys with the prefixes of their entries
        self._added_entries: list[tuple[bytes, DueEntry]] = []
        self._cell_deltas: dict[bytes, Counter[CountedCells]] = {family: Counter() for family in COUNTED_COLUMNS}
        self._statistic_deltas: Counter[str] = Counter()

    def add_family(self, family: bytes, written: FamilyWrites) -> None:
        """Add the writes to a family."""
        self._family_writes[family] = written

    def compute_changes(self) -> tuple[list[bytes], list[DueEntry], Counter[str]]:
        """Return the keys of removed entries, the added entries, and the change of each statistic."""
        self._add_other_rows(self._add_new_rows())
        removed = sorted(key for key, _ in build_entries(self._removed_entries))
        added = sorted(build_entries(self._added_entries))
        for family, states in self._cell_deltas.items():
            for state, count in states.items():
                for qualifier, cell in zip(COUNTED_COLUMNS[family], state, strict=True):
                    if count and cell is not None and (name := statistic_name(family, qualifier, cell)):
                        self._statistic_deltas[name] += count
        return removed, added, self._statistic_deltas

    def _add_new_rows(self) -> set[bytes]:
        """Add the new rows, which are most of the writes of inject and updatedb; return their keys.

        The writes contain all cells of a new row, and many rows have equal values, which are unpacked once.
        """
        times, scores, marks, parsed = (self._family_writes[family] for family in INDEXED_FAMILIES)
        if self._parsed_only_count or not times.after:
            return set()
        others = {*times.before, *scores.before, *marks.before, *parsed.rows}
        worth, marked = scores.after, times.after if self._is_rebuild else marks.rows
        keys = [key for key in times.after if key in worth and key in marked and key not in others]
        values = [(times.after[key], worth[key]) for key in keys]
        fronts: dict[tuple[bytes, bytes], DueEntry] = {}
        for (time, score), count in Counter(values).items():
            cells, of_score = unpack_columns(time), unpack_columns(score)
            fronts[time, score] = entry_prefix(cells.get(DUE_TIME.qualifier), of_score.get(SCORE.qualifier))
            counted = False
            for family, found in ((DUE_TIME.family, cells), (SCORE.family, of_score)):
                state = tuple(map(found.get, COUNTED_COLUMNS[family]))
                self._cell_deltas[family][state] += count
                counted |= any(cell is not None for cell in state)
            self._statistic_deltas["total"] += counted * count
        self._added_entries = list(zip(keys, map(fronts.__getitem__, values), strict=True))
        return set(keys)

    def _add_other_rows(self, done: set[bytes]) -> None:
        ordering: dict[bytes, dict[bytes, tuple[SortCell, SortCell]]] = {}
        counted: dict[bytes, dict[bytes, tuple[bool, bool]]] = {}
        for family in COUNTED_COLUMNS:
            ordering[family], counted[family] = self._family_changes(family, done)
        rows, before, after = self._family_writes[MARKS_FAMILY]
        others = [key for key in rows if key not in done]
        marked = {key: (key in before, key in after) for key in others if (key in before) != (key in after)}
        times, scores = ordering[DUE_TIME.family], ordering[SCORE.family]
        for key in sorted({**times, **scores, **marked}):
            self._update_entry(key, times.get(key), scores.get(key), marked.get(key))
        for key in {key: None for keys in counted.values() for key in keys}:
            self._update_total(key, *(keys.get(key) for keys in counted.values()))

    def _family_changes(
        self, family: bytes, done: set[bytes]
    ) -> tuple[dict[bytes, tuple[SortCell, SortCell]], dict[bytes, tuple[bool, bool]]]:
        """Return (before, after) of the sort cells, and of whether a row is counted, for rows where they differ.

        Also add the changes of the counted cells.
        """
        by_order: dict[bytes, tuple[SortCell, SortCell]] = {}
        by_count: dict[bytes, tuple[bool, bool]] = {}
        ordering, qualifiers, states = _SORT_COLUMNS.get(family), COUNTED_COLUMNS[family], self._cell_deltas[family]
        nothing = (None,) * len(qualifiers)
        rows, before, after = self._family_writes[family]
        # the write has already verified the checksums of changed values
        read = unpack_columns if self._is_rebuild else unpack_verified_columns
        for key in rows if ordering is None or len(rows) > len(done) else ():  # new rows have both sort cells
            old, new = before.get(key), after.get(key)
            if old == new or key in done:
                continue
            was, now = _NO_CELLS if old is None else read(old), _NO_CELLS if new is None else read(new)
            if ordering is not None:
                first = None if old is None else was.get(ordering, b"")
                then = None if new is None else now.get(ordering, b"")
                if first != then:
                    by_order[key] = (first, then)
            lost, put = tuple(map(was.get, qualifiers)), tuple(map(now.get, qualifiers))
            if lost != put:
                states[lost] -= 1
                states[put] += 1
                had, has = lost != nothing, put != nothing
                if had != has:
                    by_count[key] = (had, has)
        return by_order, by_count

    def _update_entry(
        self,
        key: bytes,
        time: tuple[SortCell, SortCell] | None,
        score: tuple[SortCell, SortCell] | None,
        marked: tuple[bool, bool] | None,
    ) -> None:
        """Collect the change of a row's entry; arguments are (before, after), None for unchanged families."""
        time, score = (
            time or self._current_sort_cell(DUE_TIME.family, key),
            score or self._current_sort_cell(SCORE.family, key),
        )
        was, now = (time[0] is not None or score[0] is not None), (time[1] is not None or score[1] is not None)
        if not was or not now:
            if marked is None:
                exists = self._read_cells(MARKS_FAMILY, key) is not None
                marked = (exists, exists)
            was, now = was or marked[0], now or marked[1]
        old, new = entry_prefix(time[0], score[0]) if was else None, entry_prefix(time[1], score[1]) if now else None
        if old is not None and (new is None or old[0] != new[0]):
            self._removed_entries.append((key, old))
        if new is not None and old != new:
            self._added_entries.append((key, new))

    def _update_total(
        self,
        key: bytes,
        time: tuple[bool, bool] | None,
        score: tuple[bool, bool] | None,
        parsed: tuple[bool, bool] | None,
    ) -> None:
        """Collect the change of the total; arguments are (before, after), None for unchanged families."""
        time, score = (
            time or self._currently_counted(DUE_TIME.family, key),
            score or self._currently_counted(SCORE.family, key),
        )
        was, now = time[0] or score[0], time[1] or score[1]
        if parsed is None:
            if was == now:
                return
            # without such rows, a row that did not exist has no parse status
            parsed = (
                (False, False)
                if not was and not self._parsed_only_count
                else self._currently_counted(INDEXED_FAMILIES[3], key)
            )
        self._statistic_deltas["total"] += (now or parsed[1]) - (was or parsed[0])
        self._statistic_deltas[_PARSED_ONLY] += (parsed[1] and not now) - (parsed[0] and not was)

    def _read_cells(self, family: bytes, key: bytes) -> dict[bytes, bytes] | None:
        """Return the current cells of a row in a family, None if it has none."""
        handle, txn = self._handles.get(family), self._txn
        if handle is None or txn is None or self._is_rebuild:  # a rebuild adds all families of a row
            return None
        self._read_count += 1
        if self._read_count % PIECE_READS == 0:
            self._release_mapped_pages()
        packed = txn.get(lmdb_key(key), db=handle)
        if packed is not None and len(key) > LONGEST_KEY:
            packed = unpack_bucket(lmdb_key(key), packed).get(key)
        return None if packed is None else unpack_columns(packed)

    def _current_sort_cell(self, family: bytes, key: bytes) -> tuple[SortCell, SortCell]:
        found = self._read_cells(family, key)
        cell = None if found is None else found.get(_SORT_COLUMNS[family], b"")
        return cell, cell

    def _currently_counted(self, family: bytes, key: bytes) -> tuple[bool, bool]:
        found = self._read_cells(family, key) or _NO_CELLS
        is_counted = any(qualifier in found for qualifier in COUNTED_COLUMNS[family])
        return is_counted, is_counted

    def write(self) -> None:
        """Write the changes of index and statistics."""
        txn = not_none(self._txn, "transaction")
        due, statistics = self._handles[DUE_DATABASE], self._handles[STATISTICS_DATABASE]
        removed, added, changes = self.compute_changes()
        for keys in pieces(removed):
            for key in keys:
                txn.delete(key, db=due)
            self._release_mapped_pages()
        for entries in pieces(added):
            txn.cursor(due).putmulti(entries)
            self._release_mapped_pages()
        for name, change in sorted(changes.items()):
            if change:
                count = read_statistic(txn, statistics, name) + change
                if count:
                    txn.put(name.encode(), _COUNT_FORMAT.pack(count), db=statistics)
                else:
                    txn.delete(name.encode(), db=statistics)
