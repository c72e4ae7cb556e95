"""Base of the suites: cases, goals and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.repositories import checked_out


class Repository(NamedTuple):
    """Public test data: ``owner/name`` at a commit, and which of its files are wanted."""

    name: str
    commit: str
    patterns: tuple[str, ...]

    def folder(self, data: Path) -> Path:
        """Get the files, unless ``data`` has them; return their folder."""
        return checked_out(self.name, self.commit, list(self.patterns), data)


class Case(NamedTuple):
    """One case. ``left``: why it did not come out as expected, "" when it did; ``part``: the part of the suite."""

    part: str
    name: str
    left: str = ""


class Goal(NamedTuple):
    """The least share of a part that has to pass."""

    part: str
    share: float


def report(cases: Iterable[Case], goals: Iterable[Goal], verbose: bool) -> bool:
    """Print each part with passed/total and its failures; return whether all goals are reached."""
    found = list(cases)
    totals, passed = Counter(case.part for case in found), Counter(case.part for case in found if not case.left)
    reached = bool(found)
    least = {goal.part: goal.share for goal in goals}
    for part, total in totals.items():
        share = passed[part] / total
        met = share >= least.get(part, 0.0)
        reached &= met
        aim = f", aim {least[part]:.0%}: {'reached' if met else 'MISSED'}" if part in least else ""
        print(f"{part}: {passed[part]}/{total} ({share:.1%}{aim})")
    left = [case for case in found if case.left]
    for case in left if verbose else left[:10]:
        print(f"  left: {case.part}: {case.name}: {case.left}")
    if len(left) > 10 and not verbose:
        print(f"  … and {len(left) - 10} more (-v lists all)")
    return reached
