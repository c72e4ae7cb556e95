"""Due index and row statistics of an embedded table: reads, rebuilds and checks them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import lmdb

from nutch2py.errors import StoreError
from nutch2py.support.invariants import not_none
from nutch2py.table.due_index import (
    REBUILD_HINT,
    SLOT_BITS,
    SLOT_BYTES,
    DueCandidate,
    DueIndex,
    RowStatistics,
    TimeSpan,
    slot_of,
)
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
from nutch2py.table.embedded.storage.lmdb_errors import translate_errors
from nutch2py.table.embedded.storage.resident_pages import pieces
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE, TableFiles
from nutch2py.table.table_query import KeyRange

CHUNK = 20_000
"""Rows per chunk of a full scan, and entries counted between two releases of mapped pages."""
_MAX_TRIES = 3


class EmbeddedDueIndex(DueIndex):
    """Index and statistics in the databases ``:due`` and ``:figures``; each call reads the state of one commit."""

    def __init__(self, get_files: Callable[[], TableFiles], where: str) -> None:
        self._get_files, self._where = get_files, where

    @property
    def unavailable_reason(self) -> str:  # type: ignore[override]
        """The reason why both cannot be used, "" if they can."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                return _find_problem(txn, files)

    def _check_usable(self, txn: lmdb.Transaction[bytes], files: TableFiles) -> None:
        problem = _find_problem(txn, files)
        if problem:
            raise StoreError(f"cannot use the due index of {self._where}: {problem}; start the job again")

    def count(self, spans: Sequence[TimeSpan], limit: int) -> int:
        """Count entries slot by slot."""
        found = 0
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                cursor = txn.cursor(not_none(files.database_handle(DUE_DATABASE), "due index"))
                for span in spans:
                    stop = due_keys.next_slot(slot_of(span.last))
                    if cursor.set_range(slot_of(span.first)):
                        for key in islice(cursor.iternext(values=False), limit - found):
                            if stop and key >= stop:
                                break
                            found += 1
                            if found % CHUNK == 0:
                                files.release_mapped_pages()
        return found

    def read_candidates(self, spans: Sequence[TimeSpan], after_key: bytes, limit: int) -> list[DueCandidate]:
        """Merge the slots that have entries, each from after ``after_key``."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                due = not_none(files.database_handle(DUE_DATABASE), "due index")
                merged = heapq.merge(
                    *(_slot_entries(txn, due, slot, after_key, spans) for slot in _used_slots(txn, due, spans))
                )
                return [
                    DueCandidate(place, due_keys.row_key_of(place, value).decode("utf-8", "replace"))
                    for place, value in islice(merged, limit)
                ]

    def is_after_url(self, sort_key: bytes, url: str) -> bool:
        """See :func:`nutch2py.table.embedded.due_keys.is_after_url`."""
        return due_keys.is_after_url(sort_key, url)

    def score_of(self, sort_key: bytes) -> float | None:
        """See :func:`nutch2py.table.embedded.due_keys.score_of`."""
        return due_keys.score_of(sort_key)

    def after_score(self, sort_key: bytes) -> bytes:
        """See :func:`nutch2py.table.embedded.due_keys.after_score`."""
        return due_keys.after_score(sort_key)

    def statistics(self) -> RowStatistics:
        """Read the statistics."""
        found = RowStatistics()
        with translate_errors(self._where):
            files = self._get_files()
            with files.read_transaction() as txn:
                self._check_usable(txn, files)
                for name, count in embedded_due_update.read_statistics(
                    txn, not_none(files.database_handle(STATISTICS_DATABASE), "statistics")
                ).items():
                    found.add(name, count)
        return found

    def rebuild(self) -> int:
        """Rebuild both in one transaction; if it is killed, the old state remains."""
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
        """Compare with every row without changes; writers wait only if writes have interfered several times."""
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
            problem = _find_problem(txn, files)
            if problem:
                report(problem)
                return 0
            stored = embedded_due_update.read_statistics(
                txn, not_none(files.database_handle(STATISTICS_DATABASE), "statistics")
            )
            entries = int(txn.stat(not_none(files.database_handle(DUE_DATABASE), "due index"))["entries"])
        expected: Counter[str] = Counter()
        matching = 0
        for part in self._scan_updates(files):
            _, added, statistics = part.compute_changes()
            expected.update(statistics)
            for some in pieces(added):
                with files.read_transaction(len(some)) as txn:
                    found = dict(
                        txn.cursor(not_none(files.database_handle(DUE_DATABASE), "due index")).getmulti(
                            [key for key, _ in some]
                        )
                    )
                for entry_key, value in some:
                    if found.get(entry_key) == value:
                        matching += 1
                    else:
                        row = due_keys.row_key_of(entry_key[SLOT_BYTES:], value)
                        report(f"row {row.decode('utf-8', 'replace')} has no matching entry in the index")
        if entries != matching:
            report(f"{entries - matching} entries of the index have no row")
        for name in sorted(expected.keys() | stored):
            if expected[name] != stored.get(name, 0):
                report(f"the statistic {name!r} is {stored.get(name, 0)}, the rows give {expected[name]}")
        return entries

    def drop(self) -> None:
        """Delete both."""
        with translate_errors(self._where):
            files = self._get_files()
            with files.write_transaction() as (txn, handles):
                txn.delete(LAST_COMMIT_KEY, db=handles[STATE_DATABASE])
                for name in (DUE_DATABASE, STATISTICS_DATABASE):
                    if name in handles:
                        txn.drop(handles[name], delete=False)

    def _scan_updates(
        self,
        files: TableFiles,
        txn: lmdb.Transaction[bytes] | None = None,
        handles: Mapping[bytes, lmdb._Database] = MappingProxyType({}),
    ) -> Iterator[EmbeddedDueUpdate]:
        """Yield updates that add all rows, in chunks, as if they were written now in ``txn``."""
        selection = DatabaseSelection(
            "webpage", None, [name for name in INDEXED_FAMILIES if name in files.known_families()], self._where
        )
        bounds = KeyBounds(KeyRange())
        position: bytes | None = bounds.first_key
        while position is not None:
            chunk = scan_chunk(files, selection, bounds, position, CHUNK)
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


def _find_problem(txn: lmdb.Transaction[bytes], files: TableFiles) -> str:
    names = {name: files.database_handle(name) for name in (STATE_DATABASE, DUE_DATABASE, STATISTICS_DATABASE)}
    handles = {name: handle for name, handle in names.items() if handle is not None}
    if embedded_due_update.is_up_to_date(txn, handles, txn.id()):
        return ""
    if DUE_DATABASE not in handles or txn.get(LAST_COMMIT_KEY, db=handles[STATE_DATABASE]) is None:
        return f"the table has none ({REBUILD_HINT})"
    return f"a program that does not update it has written the table since ({REBUILD_HINT})"


def _used_slots(txn: lmdb.Transaction[bytes], due: lmdb._Database, spans: Sequence[TimeSpan]) -> Iterator[bytes]:
    """Yield the slots of ``spans`` that have entries, each once."""
    cursor = txn.cursor(due)
    seen = b""
    for span in spans:
        position, last = slot_of(span.first), slot_of(span.last)
        while position and cursor.set_range(position):
            found = bytes(cursor.key()[:SLOT_BYTES])
            if found > last:
                break
            if not seen or found > seen:
                yield found
            seen, position = found, due_keys.next_slot(found)


def _slot_entries(
    txn: lmdb.Transaction[bytes], due: lmdb._Database, slot: bytes, after: bytes, spans: Sequence[TimeSpan]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (sort key, value) of the entries of a slot after the sort key ``after`` that are due within ``spans``."""
    cursor = txn.cursor(due)
    start = slot + after
    if not cursor.set_range(start):
        return
    whole = any(_is_slot_within(slot, span) for span in spans)
    for key, value in cursor:
        if key[:SLOT_BYTES] != slot:
            return
        if key == start or not (whole or any(due_keys.due_time_of(value) in span for span in spans)):
            continue
        yield key[SLOT_BYTES:], value


def _is_slot_within(slot: bytes, span: TimeSpan) -> bool:
    """Return whether all due times of a slot are in ``span``; False for the first and last slot, which hold more."""
    number = int.from_bytes(slot, "big")
    first = number << SLOT_BITS
    return (
        number > 0
        and bool(due_keys.next_slot(slot))
        and span.first <= first
        and (first + (1 << SLOT_BITS) - 1 <= span.last)
    )
