"""Collapse: of hits of one host, or of nearly the same text, the best is shown; the others are counted and named.

It looks at hits from the best on, a hundred at a time, until there are as many as are asked for, and at a thousand at
most. Texts are the same by :mod:`nutch2py.backends.analysis.minhash`; pages of one host, which share its menus, have to have the
same words, or one title but for numbers. Where one text takes half of a hundred hits, its exact
copies are left out of what is asked for from then on, so that ten thousand of them hide nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from nutch2py.backends.analysis.minhash import SketchIndex
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.results.search_results import Hit, ScoredDocument, first_value

COLLAPSE_BY_HOST, COLLAPSE_NEAR_DUPLICATES = "host", "near"
_COLLAPSE_PROPERTY = "index.search.collapse"
_HITS_PER_STEP, _MAX_HITS = 100, 1_000  # hits looked at, at once and at most
_MAX_EXCLUDED_SKETCHES = 10  # texts
_MAX_NAMED_HITS = 10  # of the others of a hit
_NON_LETTERS = re.compile(r"[\W\d_]+")
NO_SKETCHES_MESSAGE = "near copies cannot be told: these pages were indexed before that was noted (index -reindex)"

HitType = TypeVar("HitType", ScoredDocument, Hit)


class CollapsedHits(NamedTuple, Generic[HitType]):
    """``total`` documents match; ``hits``: those asked for, each with how many others it stands for.

    ``collapsed_total``: how many there are to be shown, as far as is known, what was not looked at being taken for unlike.
    ``note``: why nothing could be done.
    """

    total: int
    hits: list[HitType]
    collapsed_total: int
    note: str


def read_collapse_mode(conf: Configuration) -> str:
    """Return what ``index.search.collapse`` says: "" (none), "host" or "near"."""
    value = conf.get_trimmed(_COLLAPSE_PROPERTY, "none").lower()
    if value not in ("none", COLLAPSE_BY_HOST, COLLAPSE_NEAR_DUPLICATES):
        raise ConfigurationError(f"{_COLLAPSE_PROPERTY} is {value!r}: write none, host or near")
    return "" if value == "none" else value


def collapse_hits(
    fetch: Callable[[int, int, tuple[str, ...]], tuple[int, list[HitType]]], mode: str, start: int, rows: int
) -> CollapsedHits[HitType]:
    """Return hits from ``start`` on, the best of each group.

    ``fetch``: gives how many hits match and those from a number on, so many, without those of some sketches.
    """
    groups = _HitGroups[HitType](mode)
    left_out: list[str] = []
    begin = looked = 0
    total, hits = fetch(0, _HITS_PER_STEP, ())
    count = total
    while True:
        looked, begin = looked + len(hits), begin + len(hits)
        for hit in hits:
            groups.add(hit)
        ends = begin >= count or not hits
        sketch = (
            groups.dominant_sketch(hits)
            if mode == COLLAPSE_NEAR_DUPLICATES and len(left_out) < _MAX_EXCLUDED_SKETCHES
            else ""
        )
        if sketch and not ends:
            left_out.append(sketch)
            seen = groups.copies[sketch]
            begin -= seen
            rest, hits = fetch(begin, _HITS_PER_STEP, tuple(left_out))
            groups.count_excluded(sketch, count - rest - seen)
            count = rest
        if ends or looked >= _MAX_HITS or len(groups.best) >= start + rows:
            break
        if not sketch:
            _, hits = fetch(begin, _HITS_PER_STEP, tuple(left_out))
    note = NO_SKETCHES_MESSAGE if mode == COLLAPSE_NEAR_DUPLICATES and total and not groups.copies else ""
    shown = len(groups.best) + (0 if looked >= _MAX_HITS else max(count - begin, 0))
    return CollapsedHits(total, groups.collapsed_hits(start, start + rows), shown, note)


class _HitGroups(Generic[HitType]):
    """Hits that were looked at. ``best``: of each group the best; ``copies``: hits seen by sketch."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._sketches = SketchIndex()
        self._places: list[tuple[str, str]] = []  # host and title, without numbers, of each sketch
        self._group: dict[str, int] = {}  # of a host, or of a sketch by its number
        self.best: list[HitType] = []
        self._more: list[int] = []
        self._others: list[list[tuple[str, str]]] = []
        self.copies = Counter[str]()

    def add(self, hit: HitType) -> None:
        """Put a hit into its group, or begin one with it."""
        if hit.sketch:
            self.copies[hit.sketch] += 1
        key = self._group_key(hit)
        number = self._group.get(key) if key else None
        if number is None:
            if key:
                self._group[key] = len(self.best)
            self.best.append(hit)
            self._more.append(0)
            self._others.append([])
            return
        self._more[number] += 1
        if len(self._others[number]) < _MAX_NAMED_HITS:
            url = first_value(hit.fields, "url") or first_value(hit.fields, "id")
            self._others[number].append((first_value(hit.fields, "title") or url, url))

    def _group_key(self, hit: HitType) -> str:
        if self._mode == COLLAPSE_BY_HOST:
            return first_value(hit.fields, "host")
        if not hit.sketch:
            return ""
        place = (
            first_value(hit.fields, "host"),
            _NON_LETTERS.sub(" ", first_value(hit.fields, "title")).strip().lower(),
        )
        number = self._sketches.find(hit.sketch, lambda known: self._may_be_copy(place, self._places[known]))
        if number is None:
            number = self._sketches.add(hit.sketch)
            self._places.append(place)
        return str(number)

    def _may_be_copy(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Tell whether texts that are not quite the same may be copies: pages of one host have much text in common."""
        return one[0] != other[0] or one[1] == other[1]

    def dominant_sketch(self, hits: list[HitType]) -> str:
        """Return the sketch that half of a step's hits or more have, "" when there is none."""
        most = Counter(hit.sketch for hit in hits if hit.sketch).most_common(1)
        return most[0][0] if most and most[0][1] >= _HITS_PER_STEP // 2 else ""

    def count_excluded(self, sketch: str, number: int) -> None:
        """Count hits that have a sketch and were not given."""
        group = self._sketches.find(sketch)
        if group is not None:
            self._more[self._group[str(group)]] += max(number, 0)

    def collapsed_hits(self, start: int, end: int) -> list[HitType]:
        """Return hits with what is behind them."""
        return [
            hit._replace(more=more, others=tuple(others))
            for hit, more, others in zip(
                self.best[start:end], self._more[start:end], self._others[start:end], strict=True
            )
        ]
