"""Keeping the index of due rows and the figures of a table up to date, within the transaction that writes the rows.

Both are kept only as long as no one writes without them: every commit leaves its number (LMDB counts them) in the
table, and who finds another number there than that of the last commit knows that an older program has written since.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from nutch2py.table.due import COUNTED, figure_of
from nutch2py.table.embedded.due_places import Entry, entries, front
from nutch2py.table.embedded.files import STATE
from nutch2py.table.embedded.mapped import PIECE, pieces
from nutch2py.table.embedded.packing import LONGEST_KEY, columns, place, sound_columns, unpack_bucket
from nutch2py.webpage import WebPage

DUE, FIGURES = b":due", b":figures"
"""Databases of ``meta``: the index, and the figures, by name."""
STAMP = b"due written by"
"""Where a table says which commit has last kept both up to date."""
TIME, SCORE, MARKS = WebPage.fetch_time, WebPage.score, WebPage.markers.family
KEPT = (TIME.family, SCORE.family, MARKS, WebPage.parse_status.family)
"""The families that both are made of."""
_ORDERING = {TIME.family: TIME.qualifier, SCORE.family: SCORE.qualifier}
_BARE = "parsed only"
"""Figure: rows that are counted for their parse status alone, which no job makes."""
_COUNT = struct.Struct(">q")
_NOTHING: dict[bytes, bytes] = {}
_STATUS, _RETRIES, _INTERVAL, _PROTOCOL = COUNTED[TIME.family]
Cell = bytes | None
"""A cell that orders the index; b"" when it is not there, None when its family is not."""
State = tuple[bytes | None, ...]
"""The cells of a family that are counted, in the order of :data:`COUNTED`."""


def is_kept(txn: Any, handles: Mapping[bytes, Any], written: int) -> bool:
    """Tell whether index and figures are there, and of the commit ``written``."""
    if DUE not in handles or FIGURES not in handles:
        return False
    stamp = txn.get(STAMP, db=handles[STATE])
    return stamp is not None and stamp == _COUNT.pack(written)


def stamp(txn: Any, handles: Mapping[bytes, Any]) -> None:
    """Say that this commit has kept both up to date."""
    txn.put(STAMP, _COUNT.pack(txn.id()), db=handles[STATE])


def stored_figure(txn: Any, handle: Any, name: str) -> int:
    """Return one figure."""
    return int(_COUNT.unpack(txn.get(name.encode(), db=handle) or bytes(_COUNT.size))[0])


def stored_figures(txn: Any, handle: Any) -> dict[str, int]:
    """Return the figures by name."""
    return {bytes(name).decode(): _COUNT.unpack(count)[0] for name, count in txn.cursor(handle)}


class Written(NamedTuple):
    """What was written of a family: the keys of rows, and their packed values before and after, if they had any."""

    rows: Collection[bytes]
    before: Mapping[bytes, bytes]
    after: Mapping[bytes, bytes]


class Keeping:
    """What a group of writes changes of index and figures: :meth:`saw` each family, then :meth:`write`.

    ``txn`` shows the rows as they are when everything is written. ``fresh``: nothing is there yet; both are made anew.
    ``look`` is called after each piece of what is read and written.
    """

    def __init__(self, txn: Any, handles: Mapping[bytes, Any], look: Callable[[], object], fresh: bool = False) -> None:
        self._txn, self._handles, self._look, self._fresh = txn, handles, look, fresh
        self._read = 0  # cells of rows that were not written
        self._written: dict[bytes, Written] = dict.fromkeys(KEPT, Written((), {}, {}))
        self._bare = 0 if fresh else stored_figure(txn, handles[FIGURES], _BARE)
        self._leaving: list[tuple[bytes, Entry]] = []  # row keys, and the beginnings of their entries
        self._coming: list[tuple[bytes, Entry]] = []
        self._states: dict[bytes, Counter[State]] = {family: Counter() for family in COUNTED}
        self._rows: Counter[str] = Counter()

    def saw(self, family: bytes, written: Written) -> None:
        """Note what was written of a family."""
        self._written[family] = written

    def changes(self) -> tuple[list[bytes], list[Entry], Counter[str]]:
        """Return the keys of the entries that go, the entries that come, and by how much each figure changes."""
        self._other_rows(self._new_rows())
        gone = sorted(key for key, _ in entries(self._leaving))
        come = sorted(entries(self._coming))
        for family, states in self._states.items():
            for state, count in states.items():
                for qualifier, cell in zip(COUNTED[family], state, strict=True):
                    if count and cell is not None and (name := figure_of(family, qualifier, cell)):
                        self._rows[name] += count
        return gone, come, self._rows

    def _new_rows(self) -> set[bytes]:
        """Take in the rows that were not there, the most of what inject and updatedb write; return their keys.

        Of such a row all is known from what was written, and most of them are alike: equal values are unpacked once.
        """
        times, scores, marks, parsed = (self._written[family] for family in KEPT)
        if self._bare or not times.after:
            return set()
        others = {*times.before, *scores.before, *marks.before, *parsed.rows}
        worth, marked = scores.after, times.after if self._fresh else marks.rows
        keys = [key for key in times.after if key in worth and key in marked and key not in others]
        values = [(times.after[key], worth[key]) for key in keys]
        fronts: dict[tuple[bytes, bytes], Entry] = {}
        for (time, score), count in Counter(values).items():
            cells, of_score = columns(time), columns(score)
            fronts[time, score] = front(cells.get(TIME.qualifier), of_score.get(SCORE.qualifier))
            counted = False
            for family, found in ((TIME.family, cells), (SCORE.family, of_score)):
                state = tuple(map(found.get, COUNTED[family]))
                self._states[family][state] += count
                counted |= any(cell is not None for cell in state)
            self._rows["total"] += counted * count
        self._coming = list(zip(keys, map(fronts.__getitem__, values), strict=True))
        return set(keys)

    def _other_rows(self, done: set[bytes]) -> None:
        ordering: dict[bytes, dict[bytes, tuple[Cell, Cell]]] = {}
        counted: dict[bytes, dict[bytes, tuple[bool, bool]]] = {}
        for family in COUNTED:
            ordering[family], counted[family] = self._changed(family, done)
        rows, before, after = self._written[MARKS]
        others = [key for key in rows if key not in done]
        marked = {key: (key in before, key in after) for key in others if (key in before) != (key in after)}
        times, scores = ordering[TIME.family], ordering[SCORE.family]
        for key in sorted({**times, **scores, **marked}):
            self._move(key, times.get(key), scores.get(key), marked.get(key))
        for key in {key: None for keys in counted.values() for key in keys}:
            self._count(key, *(keys.get(key) for keys in counted.values()))

    def _changed(
        self, family: bytes, done: set[bytes]
    ) -> tuple[dict[bytes, tuple[Cell, Cell]], dict[bytes, tuple[bool, bool]]]:
        """Return, before and after, the cells that order the index and whether any cell is counted, where they differ.

        Rows are counted by the cells that changed on the way.
        """
        by_order: dict[bytes, tuple[Cell, Cell]] = {}
        by_count: dict[bytes, tuple[bool, bool]] = {}
        ordering, qualifiers, states = _ORDERING.get(family), COUNTED[family], self._states[family]
        nothing = (None,) * len(qualifiers)
        rows, before, after = self._written[family]
        read = columns if self._fresh else sound_columns  # what was just changed has been looked at
        for key in rows if ordering is None or len(rows) > len(done) else ():  # of a new row, both that order are seen
            old, new = before.get(key), after.get(key)
            if old == new or key in done:
                continue
            was, now = _NOTHING if old is None else read(old), _NOTHING if new is None else read(new)
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

    def _move(
        self,
        key: bytes,
        time: tuple[Cell, Cell] | None,
        score: tuple[Cell, Cell] | None,
        marked: tuple[bool, bool] | None,
    ) -> None:
        """Note what becomes of the entry of a row; None for what has not changed."""
        time, score = time or self._unmoved(TIME.family, key), score or self._unmoved(SCORE.family, key)
        was, now = (time[0] is not None or score[0] is not None), (time[1] is not None or score[1] is not None)
        if not was or not now:
            if marked is None:
                there = self._stored(MARKS, key) is not None
                marked = (there, there)
            was, now = was or marked[0], now or marked[1]
        old, new = front(time[0], score[0]) if was else None, front(time[1], score[1]) if now else None
        if old is not None and (new is None or old[0] != new[0]):
            self._leaving.append((key, old))
        if new is not None and old != new:
            self._coming.append((key, new))

    def _count(
        self,
        key: bytes,
        time: tuple[bool, bool] | None,
        score: tuple[bool, bool] | None,
        parsed: tuple[bool, bool] | None,
    ) -> None:
        """Note whether a row counts; None for families of which that has not changed."""
        time, score = time or self._uncounted(TIME.family, key), score or self._uncounted(SCORE.family, key)
        was, now = time[0] or score[0], time[1] or score[1]
        if parsed is None:
            if was == now:
                return
            # without rows of that kind, one that was not there has no parse status
            parsed = (False, False) if not was and not self._bare else self._uncounted(KEPT[3], key)
        self._rows["total"] += (now or parsed[1]) - (was or parsed[0])
        self._rows[_BARE] += (parsed[1] and not now) - (parsed[0] and not was)

    def _stored(self, family: bytes, key: bytes) -> dict[bytes, bytes] | None:
        """Return the cells of a row as they are now, None when it has none."""
        handle = self._handles.get(family)
        if handle is None or self._fresh:  # then all that there is was seen
            return None
        self._read += 1
        if self._read % PIECE == 0:
            self._look()
        packed = self._txn.get(place(key), db=handle)
        if packed is not None and len(key) > LONGEST_KEY:
            packed = unpack_bucket(place(key), packed).get(key)
        return None if packed is None else columns(packed)

    def _unmoved(self, family: bytes, key: bytes) -> tuple[Cell, Cell]:
        found = self._stored(family, key)
        cell = None if found is None else found.get(_ORDERING[family], b"")
        return cell, cell

    def _uncounted(self, family: bytes, key: bytes) -> tuple[bool, bool]:
        found = self._stored(family, key) or _NOTHING
        there = any(qualifier in found for qualifier in COUNTED[family])
        return there, there

    def write(self) -> None:
        """Change index and figures."""
        txn, due, figures = self._txn, self._handles[DUE], self._handles[FIGURES]
        gone, come, changes = self.changes()
        for keys in pieces(gone):
            for key in keys:
                txn.delete(key, db=due)
            self._look()
        for some in pieces(come):
            txn.cursor(due).putmulti(some)
            self._look()
        for name, change in sorted(changes.items()):
            if change:
                count = stored_figure(txn, figures, name) + change
                if count:
                    txn.put(name.encode(), _COUNT.pack(count), db=figures)
                else:
                    txn.delete(name.encode(), db=figures)
