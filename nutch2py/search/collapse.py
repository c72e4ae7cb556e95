"""Collapse: of hits of one host, or of nearly the same text, the best is shown; the others are counted and named.

It looks at hits from the best on, a hundred at a time, until there are as many as are asked for, and at a thousand at
most. Texts are the same by :mod:`nutch2py.backends.sketch`; pages of one host, which share its menus, have to have the
same words, or one title but for numbers. Where one text takes half of a hundred hits, its exact
copies are left out of what is asked for from then on, so that ten thousand of them hide nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from nutch2py.backends.sketch import Sketches
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.results import Found, Hit, first_of

HOST, NEAR = "host", "near"
_PROPERTY = "index.search.collapse"
_STEP, _MOST = 100, 1_000  # hits looked at, at once and at most
_LEFT_OUT = 10  # texts
_NAMED = 10  # of the others of a hit
_NO_LETTERS = re.compile(r"[\W\d_]+")
NO_SKETCHES = "near copies cannot be told: these pages were indexed before that was noted (index -reindex)"

Shown = TypeVar("Shown", Found, Hit)


class Collapsed(NamedTuple, Generic[Shown]):
    """``total`` documents match; ``hits``: those asked for, each with how many others it stands for.

    ``shown``: how many there are to be shown, as far as is known, what was not looked at being taken for unlike.
    ``note``: why nothing could be done.
    """

    total: int
    hits: list[Shown]
    shown: int
    note: str


def collapse_of(conf: Configuration) -> str:
    """Return what ``index.search.collapse`` says: "" (none), "host" or "near"."""
    value = conf.get_trimmed(_PROPERTY, "none").lower()
    if value not in ("none", HOST, NEAR):
        raise ConfigurationError(f"{_PROPERTY} is {value!r}: write none, host or near")
    return "" if value == "none" else value


def collapsed(
    find: Callable[[int, int, tuple[str, ...]], tuple[int, list[Shown]]], by: str, start: int, rows: int
) -> Collapsed[Shown]:
    """Return hits from ``start`` on, the best of each group.

    ``find``: gives how many hits match and those from a number on, so many, without those of some sketches.
    """
    groups = _Groups[Shown](by)
    left_out: list[str] = []
    begin = looked = 0
    total, hits = find(0, _STEP, ())
    count = total
    while True:
        looked, begin = looked + len(hits), begin + len(hits)
        for hit in hits:
            groups.add(hit)
        ends = begin >= count or not hits
        sketch = groups.copied(hits) if by == NEAR and len(left_out) < _LEFT_OUT else ""
        if sketch and not ends:
            left_out.append(sketch)
            seen = groups.copies[sketch]
            begin -= seen
            rest, hits = find(begin, _STEP, tuple(left_out))
            groups.add_unseen(sketch, count - rest - seen)
            count = rest
        if ends or looked >= _MOST or len(groups.best) >= start + rows:
            break
        if not sketch:
            _, hits = find(begin, _STEP, tuple(left_out))
    note = NO_SKETCHES if by == NEAR and total and not groups.copies else ""
    shown = len(groups.best) + (0 if looked >= _MOST else max(count - begin, 0))
    return Collapsed(total, groups.shown(start, start + rows), shown, note)


class _Groups(Generic[Shown]):
    """Hits that were looked at. ``best``: of each group the best; ``copies``: hits seen by sketch."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._sketches = Sketches()
        self._places: list[tuple[str, str]] = []  # host and title, without numbers, of each sketch
        self._group: dict[str, int] = {}  # of a host, or of a sketch by its number
        self.best: list[Shown] = []
        self._more: list[int] = []
        self._others: list[list[tuple[str, str]]] = []
        self.copies = Counter[str]()

    def add(self, hit: Shown) -> None:
        """Put a hit into its group, or begin one with it."""
        if hit.near:
            self.copies[hit.near] += 1
        key = self._key(hit)
        number = self._group.get(key) if key else None
        if number is None:
            if key:
                self._group[key] = len(self.best)
            self.best.append(hit)
            self._more.append(0)
            self._others.append([])
            return
        self._more[number] += 1
        if len(self._others[number]) < _NAMED:
            url = first_of(hit.fields, "url") or first_of(hit.fields, "id")
            self._others[number].append((first_of(hit.fields, "title") or url, url))

    def _key(self, hit: Shown) -> str:
        if self._by == HOST:
            return first_of(hit.fields, "host")
        if not hit.near:
            return ""
        place = (first_of(hit.fields, "host"), _NO_LETTERS.sub(" ", first_of(hit.fields, "title")).strip().lower())
        number = self._sketches.find(hit.near, lambda known: self._may_be(place, self._places[known]))
        if number is None:
            number = self._sketches.keep(hit.near)
            self._places.append(place)
        return str(number)

    def _may_be(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Tell whether texts that are not quite the same may be copies: pages of one host have much text in common."""
        return one[0] != other[0] or one[1] == other[1]

    def copied(self, hits: list[Shown]) -> str:
        """Return the sketch that half of a step's hits or more have, "" when there is none."""
        most = Counter(hit.near for hit in hits if hit.near).most_common(1)
        return most[0][0] if most and most[0][1] >= _STEP // 2 else ""

    def add_unseen(self, sketch: str, number: int) -> None:
        """Count hits that have a sketch and were not given."""
        group = self._sketches.find(sketch)
        if group is not None:
            self._more[self._group[str(group)]] += max(number, 0)

    def shown(self, start: int, end: int) -> list[Shown]:
        """Return hits with what is behind them."""
        return [
            hit._replace(more=more, others=tuple(others))
            for hit, more, others in zip(
                self.best[start:end], self._more[start:end], self._others[start:end], strict=True
            )
        ]
