"""The index of due rows and the figures of an embedded table: read, made anew, and compared with the rows."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from nutch2py.errors import StoreError
from nutch2py.table.due import Candidate, DueIndex, Figures, Span
from nutch2py.table.embedded import due_places, keeping
from nutch2py.table.embedded.files import STATE, TableFiles, explained
from nutch2py.table.embedded.keeping import DUE, FIGURES, KEPT, STAMP, Keeping, Written
from nutch2py.table.embedded.mapped import pieces
from nutch2py.table.embedded.reader import Bounds, scan_chunk
from nutch2py.table.embedded.selection import Selection
from nutch2py.table.query import KeyRange

MAKES_IT = "dueindex makes it"
_CHUNK = 20_000
"""Rows that are looked at together when all are; entries that are counted before some of them are let go of."""
_TRIES = 3


class EmbeddedDueIndex(DueIndex):
    """The index and the figures in ``:due`` and ``:figures``, as they were at one commit for each call."""

    def __init__(self, live: Callable[[], TableFiles], where: str) -> None:
        self._live, self._where = live, where

    @property
    def trouble(self) -> str:  # type: ignore[override]
        """Why both cannot be used."""
        with explained(self._where):
            files = self._live()
            with files.reading() as txn:
                return _trouble(txn, files)

    def _sound(self, txn: Any, files: TableFiles) -> None:
        trouble = _trouble(txn, files)
        if trouble:
            raise StoreError(f"the index of what is due in {self._where} cannot be used: {trouble}; start again")

    def count(self, spans: Sequence[Span], most: int) -> int:
        """Count entries slot by slot."""
        found = 0
        with explained(self._where):
            files = self._live()
            with files.reading() as txn:
                self._sound(txn, files)
                cursor = txn.cursor(files.database(DUE))
                for span in spans:
                    stop = due_places.next_slot(due_places.slot(span.last))
                    if cursor.set_range(due_places.slot(span.first)):
                        for key in islice(cursor.iternext(values=False), most - found):
                            if stop and key >= stop:
                                break
                            found += 1
                            if found % _CHUNK == 0:
                                files.look()
        return found

    def read(self, spans: Sequence[Span], after: bytes, size: int) -> list[Candidate]:
        """Merge the slots that have entries, each from ``after`` on."""
        with explained(self._where):
            files = self._live()
            with files.reading() as txn:
                self._sound(txn, files)
                due = files.database(DUE)
                merged = heapq.merge(*(_run(txn, due, slot, after, spans) for slot in _slots(txn, due, spans)))
                return [
                    Candidate(place, due_places.key_of(place, value).decode("utf-8", "replace"))
                    for place, value in islice(merged, size)
                ]

    def url_is_behind(self, place: bytes, url: str) -> bool:
        """See :func:`due_places.url_is_behind`."""
        return due_places.url_is_behind(place, url)

    def score_of(self, place: bytes) -> float | None:
        """See :func:`due_places.score_of`."""
        return due_places.score_of(place)

    def behind_score(self, place: bytes) -> bytes:
        """See :func:`due_places.behind_score`."""
        return due_places.behind_score(place)

    def figures(self) -> Figures:
        """Read the figures."""
        found = Figures()
        with explained(self._where):
            files = self._live()
            with files.reading() as txn:
                self._sound(txn, files)
                for name, count in keeping.stored_figures(txn, files.database(FIGURES)).items():
                    found.add(name, count)
        return found

    def build(self) -> int:
        """Make both anew, in one transaction: killed, it leaves what was there."""
        with explained(self._where):
            files = self._live()
            with files.writing((DUE, FIGURES)) as (txn, handles):
                for name in (DUE, FIGURES):
                    txn.drop(handles[name], delete=False)
                for part in self._all(files, txn, handles):
                    part.write()
                keeping.stamp(txn, handles)
                return int(txn.stat(handles[DUE])["entries"])

    def check(self, note: Callable[[str], object]) -> int:
        """Look at every row, and change nothing; who writes waits only when writes have come between several times."""
        with explained(self._where):
            files = self._live()
            for _ in range(_TRIES):
                found: list[str] = []
                before = _written(files)
                entries = self._compare(files, found.append)
                if _written(files) == before:
                    break
            else:
                with files.writing():
                    found = []
                    entries = self._compare(files, found.append)
            for text in found:
                note(text)
            return entries

    def _compare(self, files: TableFiles, note: Callable[[str], object]) -> int:
        with files.reading() as txn:
            trouble = _trouble(txn, files)
            if trouble:
                note(trouble)
                return 0
            stored = keeping.stored_figures(txn, files.database(FIGURES))
            entries = int(txn.stat(files.database(DUE))["entries"])
        wanted: Counter[str] = Counter()
        there = 0
        for part in self._all(files):
            _, come, figures = part.changes()
            wanted.update(figures)
            for some in pieces(come):
                with files.reading(len(some)) as txn:
                    found = dict(txn.cursor(files.database(DUE)).getmulti([place for place, _ in some]))
                for place, value in some:
                    if found.get(place) == value:
                        there += 1
                    else:
                        key = due_places.key_of(place[due_places.SLOT_BYTES :], value)
                        note(f"row {key.decode('utf-8', 'replace')} is not in the index where it should be")
        if entries != there:
            note(f"{entries - there} entries of the index are of no row")
        for name in sorted(wanted.keys() | stored):
            if wanted[name] != stored.get(name, 0):
                note(f"the figure {name!r} is {stored.get(name, 0)}, and the rows give {wanted[name]}")
        return entries

    def drop(self) -> None:
        """Throw both away."""
        with explained(self._where):
            files = self._live()
            with files.writing() as (txn, handles):
                txn.delete(STAMP, db=handles[STATE])
                for name in (DUE, FIGURES):
                    if name in handles:
                        txn.drop(handles[name], delete=False)

    def _all(
        self, files: TableFiles, txn: Any = None, handles: Mapping[bytes, Any] = MappingProxyType({})
    ) -> Iterator[Keeping]:
        """Yield all rows, some at a time, as if they were written now into ``txn``."""
        selection = Selection("webpage", None, [name for name in KEPT if name in files.known()], self._where)
        bounds = Bounds(KeyRange())
        position: bytes | None = bounds.first
        while position is not None:
            chunk = scan_chunk(files, selection, bounds, position, _CHUNK)
            part = Keeping(txn, handles, files.look, fresh=True)
            for number, name in enumerate(selection.names):
                after = {key: row[number] for key, row in chunk.rows if row[number] is not None}
                part.saw(name, Written(after, {}, after))
            yield part
            position = chunk.next


def _written(files: TableFiles) -> int:
    """Return the number of the last commit."""
    with files.reading() as txn:
        return int(txn.id())


def _trouble(txn: Any, files: TableFiles) -> str:
    names = {name: files.database(name) for name in (STATE, DUE, FIGURES)}
    handles = {name: handle for name, handle in names.items() if handle is not None}
    if keeping.is_kept(txn, handles, txn.id()):
        return ""
    if DUE not in handles or txn.get(STAMP, db=handles[STATE]) is None:
        return f"the table has none ({MAKES_IT})"
    return f"a program that does not keep it has written the table since ({MAKES_IT} anew)"


def _slots(txn: Any, due: Any, spans: Sequence[Span]) -> Iterator[bytes]:
    """Yield the slots of ``spans`` that have entries; of two spans that meet in a slot the first one has it."""
    cursor = txn.cursor(due)
    seen = b""
    for span in spans:
        position, last = due_places.slot(span.first), due_places.slot(span.last)
        while position and cursor.set_range(position):
            found = bytes(cursor.key()[: due_places.SLOT_BYTES])
            if found > last:
                break
            if not seen or found > seen:
                yield found
            seen, position = found, due_places.next_slot(found)


def _run(txn: Any, due: Any, slot: bytes, after: bytes, spans: Sequence[Span]) -> Iterator[tuple[bytes, bytes]]:
    """Yield (place, value) of a slot from behind ``after`` on, those due within ``spans``."""
    cursor = txn.cursor(due)
    start = slot + after
    if not cursor.set_range(start):
        return
    whole = any(_within(slot, span) for span in spans)
    for key, value in cursor:
        if key[: due_places.SLOT_BYTES] != slot:
            return
        if key == start or not (whole or any(due_places.time_of(value) in span for span in spans)):
            continue
        yield key[due_places.SLOT_BYTES :], value


def _within(slot: bytes, span: Span) -> bool:
    """Tell whether all due times of a slot lie in ``span``; of the first and last slot, which hold more, never."""
    number = int.from_bytes(slot, "big")
    first = number << due_places.SLOT_BITS
    return (
        number > 0
        and bool(due_places.next_slot(slot))
        and span.first <= first
        and (first + (1 << due_places.SLOT_BITS) - 1 <= span.last)
    )
