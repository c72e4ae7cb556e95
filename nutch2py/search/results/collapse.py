"""Collapses hits of one host, or of nearly the same text: shows the best one, and counts and names the others.

Hits are read from the best on, a hundred per step, until enough groups exist, and at most a thousand. Texts are similar
by :mod:`nutch2py.backends.analysis.minhash`. Pages of one host, which share its menus, must have the same words, or the
same title apart from numbers. When one text makes up half of a step, its exact copies are excluded from the query for
the next steps, so that thousands of copies hide no other hit.
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
_HITS_PER_STEP, _MAX_HITS = 100, 1_000  # hits read per step and in total
_MAX_EXCLUDED_SKETCHES = 10
_MAX_NAMED_HITS = 10  # of the other hits of a group
_NON_LETTERS = re.compile(r"[\W\d_]+")
NO_SKETCHES_MESSAGE = "near copies cannot be detected: these pages were indexed without sketches (run index -reindex)"

HitType = TypeVar("HitType", ScoredDocument, Hit)


class CollapsedHits(NamedTuple, Generic[HitType]):
    """Result of collapsing.

    Attributes:
        total: Number of matching documents.
        hits: The requested hits, each with the number of other hits in its group.
        collapsed_total: Number of groups, as far as known; hits that were not read count as groups of their own.
        note: Reason why collapsing was impossible.

    """

    total: int
    hits: list[HitType]
    collapsed_total: int
    note: str


def read_collapse_mode(conf: Configuration) -> str:
    """Return the value of ``index.search.collapse``: "" (none), "host" or "near"."""
    value = conf.get_trimmed(_COLLAPSE_PROPERTY, "none").lower()
    if value not in ("none", COLLAPSE_BY_HOST, COLLAPSE_NEAR_DUPLICATES):
        raise ConfigurationError(f"{_COLLAPSE_PROPERTY} is {value!r}: write none, host or near")
    return "" if value == "none" else value


def collapse_hits(
    fetch: Callable[[int, int, tuple[str, ...]], tuple[int, list[HitType]]], mode: str, start: int, rows: int
) -> CollapsedHits[HitType]:
    """Return hits from ``start`` on, the best of each group.

    ``fetch(start, rows, excluded)`` returns the number of matches, and hits, without documents that have one of the
    excluded sketches.
    """
    groups = _HitGroups[HitType](mode)
    excluded: list[str] = []
    begin = examined = 0
    total, hits = fetch(0, _HITS_PER_STEP, ())
    count = total
    while True:
        examined, begin = examined + len(hits), begin + len(hits)
        for hit in hits:
            groups.add(hit)
        at_end = begin >= count or not hits
        sketch = (
            groups.dominant_sketch(hits)
            if mode == COLLAPSE_NEAR_DUPLICATES and len(excluded) < _MAX_EXCLUDED_SKETCHES
            else ""
        )
        if sketch and not at_end:
            excluded.append(sketch)
            seen = groups.copies[sketch]
            begin -= seen
            rest, hits = fetch(begin, _HITS_PER_STEP, tuple(excluded))
            groups.count_excluded(sketch, count - rest - seen)
            count = rest
        if at_end or examined >= _MAX_HITS or len(groups.best) >= start + rows:
            break
        if not sketch:
            _, hits = fetch(begin, _HITS_PER_STEP, tuple(excluded))
    note = NO_SKETCHES_MESSAGE if mode == COLLAPSE_NEAR_DUPLICATES and total and not groups.copies else ""
    collapsed_total = len(groups.best) + (0 if examined >= _MAX_HITS else max(count - begin, 0))
    return CollapsedHits(total, groups.collapsed_hits(start, start + rows), collapsed_total, note)


class _HitGroups(Generic[HitType]):
    """The groups of the hits read so far. ``best``: best hit of each group; ``copies``: number of hits by sketch."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._sketches = SketchIndex()
        self._pages: list[tuple[str, str]] = []  # host and title, without numbers, of each sketch
        self._group: dict[str, int] = {}  # group by host, or by the number of a sketch
        self.best: list[HitType] = []
        self._more: list[int] = []
        self._others: list[list[tuple[str, str]]] = []
        self.copies = Counter[str]()

    def add(self, hit: HitType) -> None:
        """Add a hit to its group, or start a new group."""
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
        page = (
            first_value(hit.fields, "host"),
            _NON_LETTERS.sub(" ", first_value(hit.fields, "title")).strip().lower(),
        )
        number = self._sketches.find(hit.sketch, lambda known: self._may_be_copy(page, self._pages[known]))
        if number is None:
            number = self._sketches.add(hit.sketch)
            self._pages.append(page)
        return str(number)

    def _may_be_copy(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Return whether similar texts may be copies; pages of one host have much text in common."""
        return one[0] != other[0] or one[1] == other[1]

    def dominant_sketch(self, hits: list[HitType]) -> str:
        """Return the sketch of at least half of a step's hits, "" when there is none."""
        most = Counter(hit.sketch for hit in hits if hit.sketch).most_common(1)
        return most[0][0] if most and most[0][1] >= _HITS_PER_STEP // 2 else ""

    def count_excluded(self, sketch: str, number: int) -> None:
        """Count hits that were excluded by their sketch."""
        group = self._sketches.find(sketch)
        if group is not None:
            self._more[self._group[str(group)]] += max(number, 0)

    def collapsed_hits(self, start: int, end: int) -> list[HitType]:
        """Return the best hits with the other hits of their groups."""
        return [
            hit._replace(more=more, others=tuple(others))
            for hit, more, others in zip(
                self.best[start:end], self._more[start:end], self._others[start:end], strict=True
            )
        ]
