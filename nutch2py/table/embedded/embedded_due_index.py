"""The index of due rows and the figures of an embedded table: read, made anew, and compared with the rows."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from nutch2py.errors import StoreError
from nutch2py.table.due_index import DueCandidate, DueIndex, RowStatistics, TimeSpan
from nutch2py.table.embedded import due_keys, embedded_due_update
from nutch2py.table.embedded.database_selection import DatabaseSelection
from nutch2py.table.embedded.embedded_due_update import (
    DUE_DATABASE,
    INDEXED_FAMILIES,
    LAST_COMMIT_KEY,
    STATISTICS_DATABASE,
    EmbeddedDueUpdate,
    FamilyWrites,
)
from nutch2py.table.embedded.row_reader import KeyBounds, scan_chunk
from nutch2py.table.embedded.storage.mapped_memory import pieces
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE, TableFiles, translate_errors
from nutch2py.table.table_query import KeyRange

REBUILD_HINT = "dueindex makes it"
_CHUNK = 20_000
"""Rows that are looked at together when all are; entries that are counted before some of them are let go of."""
_MAX_TRIES = 3


class EmbeddedDueIndex(DueIndex):
    """The index and the figures in ``:due`` and ``:figures``, as they were at one commit for each call."""

    def __init__(self, get_files: Callable[[], TableFiles], where: str) -> None:
        self._get_files, self._where = get_files, where

    @property
    def unavailable_reason(self) -> str:  # type: ignore[override]
        """Why both cannot be used."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                return _find_problem(txn, files)

    def _check_usable(self, txn: Any, files: TableFiles) -> None:
        trouble = _find_problem(txn, files)
        if trouble:
            raise StoreError(f"the index of what is due in {self._where} cannot be used: {trouble}; start again")

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Count entries slot by slot."""
        found = 0
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                cursor = txn.cursor(files.database_handle(DUE_DATABASE))
                for span in spans:
                    stop = due_keys.next_slot(due_keys.slot(span.last))
                    if cursor.set_range(due_keys.slot(span.first)):
                        for key in islice(cursor.iternext(values=False), limit - found):
                            if stop and key >= stop:
                                break
                            found += 1
                            if found % _CHUNK == 0:
                                files.release_mapped_pages()
        return found

    def read_candidates(self, spans: Sequence[TimeSpan], after_key: bytes, limit: int) -> list[DueCandidate]:
        """Merge the slots that have entries, each from ``after_key`` on."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                due = files.database_handle(DUE_DATABASE)
                merged = heapq.merge(
                    *(_slot_entries(txn, due, slot, after_key, spans) for slot in _used_slots(txn, due, spans))
                )
                return [
                    DueCandidate(place, due_keys.row_key_of(place, value).decode("utf-8", "replace"))
                    for place, value in islice(merged, limit)
                ]

    def is_after_url(self, sort_key: bytes, url: str) -> bool:
        """See :func:`due_keys.url_is_behind`."""
        return due_keys.is_after_url(sort_key, url)

    def score_of(self, sort_key: bytes) -> float | None:
        """See :func:`due_keys.score_of`."""
        return due_keys.score_of(sort_key)

    def after_score(self, sort_key: bytes) -> bytes:
        """See :func:`due_keys.behind_score`."""
        return due_keys.after_score(sort_key)

    def statistics(self) -> RowStatistics:
        """Read the figures."""
        found = RowStatistics()
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                for name, count in embedded_due_update.read_statistics(
                    txn, files.database_handle(STATISTICS_DATABASE)
                ).items():
                    found.add(name, count)
        return found

    def rebuild(self) -> int:
        """Make both anew, in one transaction: killed, it leaves what was there."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.write_transaction((DUE_DATABASE, STATISTICS_DATABASE)) as (txn, handles):
                for name in (DUE_DATABASE, STATISTICS_DATABASE):
                    txn.drop(handles[name], delete=False)
                for part in self._scan_updates(files, txn, handles):
                    part.write()
                embedded_due_update.record_commit(txn, handles)
                return int(txn.stat(handles[DUE_DATABASE])["entries"])

    def check(self, report: Callable[[str], object]) -> int:
        """Look at every row, and change nothing; who writes waits only when writes have come between several times."""
        with translate_errors(self._where):
            files = self._get_files()
            for _ in range(_MAX_TRIES):
                found: list[str] = []
                before = _last_commit(files)
                entries = self._compare_with_rows(files, found.append)
                if _last_commit(files) == before:
                    break
            else:
                with files.write_transaction():
                    found = []
                    entries = self._compare_with_rows(files, found.append)
            for text in found:
                report(text)
            return entries

    def _compare_with_rows(self, files: TableFiles, report: Callable[[str], object]) -> int:
        with files.read_transaction() as txn:
            trouble = _find_problem(txn, files)
            if trouble:
                report(trouble)
                return 0
            stored = embedded_due_update.read_statistics(txn, files.database_handle(STATISTICS_DATABASE))
            entries = int(txn.stat(files.database_handle(DUE_DATABASE))["entries"])
        wanted: Counter[str] = Counter()
        there = 0
        for part in self._scan_updates(files):
            _, come, figures = part.compute_changes()
            wanted.update(figures)
            for some in pieces(come):
                with files.read_transaction(len(some)) as txn:
                    found = dict(txn.cursor(files.database_handle(DUE_DATABASE)).getmulti([place for place, _ in some]))
                for place, value in some:
                    if found.get(place) == value:
                        there += 1
                    else:
                        key = due_keys.row_key_of(place[due_keys.SLOT_BYTES :], value)
                        report(f"row {key.decode('utf-8', 'replace')} is not in the index where it should be")
        if entries != there:
            report(f"{entries - there} entries of the index are of no row")
        for name in sorted(wanted.keys() | stored):
            if wanted[name] != stored.get(name, 0):
                report(f"the figure {name!r} is {stored.get(name, 0)}, and the rows give {wanted[name]}")
        return entries

    def drop(self) -> None:
        """Throw both away."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.write_transaction() as (txn, handles):
                txn.delete(LAST_COMMIT_KEY, db=handles[STATE_DATABASE])
                for name in (DUE_DATABASE, STATISTICS_DATABASE):
                    if name in handles:
                        txn.drop(handles[name], delete=False)

    def _scan_updates(
        self, files: TableFiles, txn: Any = None, handles: Mapping[bytes, Any] = MappingProxyType({})
    ) -> Iterator[EmbeddedDueUpdate]:
        """Yield all rows, some at a time, as if they were written now into ``txn``."""
        selection = DatabaseSelection(
            "webpage", None, [name for name in INDEXED_FAMILIES if name in files.known_families()], self._where
        )
        bounds = KeyBounds(KeyRange())
        position: bytes | None = bounds.first_key
        while position is not None:
            chunk = scan_chunk(files, selection, bounds, position, _CHUNK)
            part = EmbeddedDueUpdate(txn, handles, files.release_mapped_pages, is_rebuild=True)
            for number, name in enumerate(selection.database_names):
                after = {key: row[number] for key, row in chunk.rows if row[number] is not None}
                part.add_family(name, FamilyWrites(after, {}, after))
            yield part
            position = chunk.next_key


def _last_commit(files: TableFiles) -> int:
    """Return the number of the last commit."""
    with files.read_transaction() as txn:
        return int(txn.id())


def _find_problem(txn: Any, files: TableFiles) -> str:
    names = {name: files.database_handle(name) for name in (STATE_DATABASE, DUE_DATABASE, STATISTICS_DATABASE)}
    handles = {name: handle for name, handle in names.items() if handle is not None}
    if embedded_due_update.is_up_to_date(txn, handles, txn.id()):
        return ""
    if DUE_DATABASE not in handles or txn.get(LAST_COMMIT_KEY, db=handles[STATE_DATABASE]) is None:
        return f"the table has none ({REBUILD_HINT})"
    return f"a program that does not keep it has written the table since ({REBUILD_HINT} anew)"


def _used_slots(txn: Any, due: Any, spans: Sequence[TimeSpan]) -> Iterator[bytes]:
    """Yield the slots of ``spans`` that have entries; of two spans that meet in a slot the first one has it."""
    cursor = txn.cursor(due)
    seen = b""
    for span in spans:
        position, last = due_keys.slot(span.first), due_keys.slot(span.last)
        while position and cursor.set_range(position):
            found = bytes(cursor.key()[: due_keys.SLOT_BYTES])
            if found > last:
                break
            if not seen or found > seen:
                yield found
            seen, position = found, due_keys.next_slot(found)


def _slot_entries(
    txn: Any, due: Any, slot: bytes, after: bytes, spans: Sequence[TimeSpan]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (place, value) of a slot from behind ``after`` on, those due within ``spans``."""
    cursor = txn.cursor(due)
    start = slot + after
    if not cursor.set_range(start):
        return
    whole = any(_is_slot_within(slot, span) for span in spans)
    for key, value in cursor:
        if key[: due_keys.SLOT_BYTES] != slot:
            return
        if key == start or not (whole or any(due_keys.due_time_of(value) in span for span in spans)):
            continue
        yield key[due_keys.SLOT_BYTES :], value


def _is_slot_within(slot: bytes, span: TimeSpan) -> bool:
    """Tell whether all due times of a slot lie in ``span``; of the first and last slot, which hold more, never."""
    number = int.from_bytes(slot, "big")
    first = number << due_keys.SLOT_BITS
    return (
        number > 0
        and bool(due_keys.next_slot(slot))
        and span.first <= first
        and (first + (1 << due_keys.SLOT_BITS) - 1 <= span.last)
    )
