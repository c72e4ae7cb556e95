"""Verdict on the numbers of a soak: no growth, no leftovers, and every page finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Any

WARM_UP = 1 / 3
"""Share of the rounds, from the first, that is ignored: caches fill, libraries are loaded."""
_CLIMB, _CLIMB_MEGABYTES = 0.08, 12.0  # what memory may climb by: a part of its level, and as much besides
_PEAK_CLIMB = 0.25  # a peak depends on what pages a round has met
_HANDLES = 8
BASE_ROUND, GROWTH, _AROUND = 20, 0.2, 2  # of a soak in one process: the round to compare with, and the limit
_LOST = 0.01  # of honest pages: a busy machine is late with an answer now and then


@dataclass
class Row:
    """A round: what it did, what the crawler held at rest after it, and the most that was seen in it."""

    number: int
    minutes: float
    seconds: float
    generated: int
    pages: int
    table_megabytes: float
    index_megabytes: float
    memory: float
    mapped: float
    handles: int
    threads: int
    children: int
    temporary_files: int
    peak_crawler: float
    peak_child: float
    peak_together: float
    peak_handles: int
    peak_temporary: float


@dataclass
class Verdict:
    """What was found: ``slopes`` in units a round, and ``failures`` in words; none when all is well."""

    slopes: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def slope(values: Sequence[float]) -> float:
    """Return by how much a row of numbers climbs at each step: the median of the slopes of all pairs (Theil, Sen).

    A few numbers out of line, such as rounds that met a hostile page, do not move it.
    """
    if len(values) < 2:
        return 0.0
    return median((later - earlier) / (j - i) for (i, earlier), (j, later) in combinations(enumerate(values), 2))


def judge(rows: Sequence[Row], ended: dict[str, Any], child_limit: float) -> Verdict:
    """Judge a soak. ``ended``: see :func:`tests.soak.crawler.endings`; ``child_limit``: megabytes of a parser child."""
    verdict = Verdict()
    late = rows[int(len(rows) * WARM_UP) :]
    if len(late) < 2:
        verdict.failures.append(f"{len(rows)} rounds are too few for a verdict")
        return verdict
    _memory(verdict, "memory at rest", [row.memory for row in late], _CLIMB)
    _memory(verdict, "peak of the crawler", [row.peak_crawler for row in late], _PEAK_CLIMB)
    for name, values in {"handles": [row.handles for row in late], "threads": [row.threads for row in late]}.items():
        verdict.slopes[name] = slope(values)
        if verdict.slopes[name] * (len(values) - 1) > _HANDLES:
            verdict.failures.append(f"{name} climb: {values[0]} to {values[-1]} in {len(values)} rounds")
    if left := [row.number for row in rows if row.temporary_files]:
        verdict.failures.append(f"temporary files are left after {len(left)} rounds, the first is {left[0]}")
    if left := [row.number for row in rows if row.children]:
        verdict.failures.append(f"processes are left after {len(left)} rounds, the first is {left[0]}")
    if (most := max(row.peak_child for row in rows)) > child_limit:
        verdict.failures.append(f"a child has held {most:.0f} MB: parser.child.memory.mb is {child_limit:.0f}")
    if found := ended.get("open"):
        verdict.failures.append(f"{len(found)} pages were to be fetched and have no status, as {found[0]}")
    lost, good = ended.get("lost", []), ended.get("good", 0)
    if len(lost) > _LOST * good:
        verdict.failures.append(f"{len(lost)} honest pages are not there, {good} are; as {lost[:1]}")
    if not ended.get("tricks"):
        verdict.failures.append("no hostile answer was met")
    return verdict


def _memory(verdict: Verdict, name: str, values: list[float], part: float) -> None:
    verdict.slopes[name] = each = slope(values)
    climb, slack = each * (len(values) - 1), part * median(values) + _CLIMB_MEGABYTES
    if climb > slack:
        verdict.failures.append(
            f"{name} climbs by {each:.2f} MB a round, {climb:.0f} in {len(values)} rounds; {slack:.0f} are allowed"
        )


def judge_in_process(rows: Sequence[Row], base: int = BASE_ROUND) -> Verdict:
    """Judge a soak of equal rounds: at its end memory at rest is within :data:`GROWTH` of what round ``base`` had.

    Both are medians over some rounds, since a round ends before or after a collection.
    """
    verdict = Verdict()
    if len(rows) < base + 2 * _AROUND:
        verdict.failures.append(f"{len(rows)} rounds are too few for a verdict")
        return verdict
    first = median(row.memory for row in rows[base - 1 - _AROUND : base + _AROUND])
    last = median(row.memory for row in rows[-2 * _AROUND - 1 :])
    verdict.slopes["memory at rest"] = slope([row.memory for row in rows[base - 1 :]])
    if last > first * (1 + GROWTH):
        verdict.failures.append(f"memory at rest grows from {first:.1f} MB at round {base} to {last:.1f}")
    for name in ("handles", "threads"):
        before, after = (median(getattr(row, name) for row in part) for part in (rows[: 2 * base], rows[-base:]))
        if after > before + _HANDLES:
            verdict.failures.append(f"{name} grow from {before:.0f} to {after:.0f}")
    return verdict
