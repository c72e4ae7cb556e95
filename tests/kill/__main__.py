"""``python -m tests.kill``: the kill harness from the command line."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.kill.crawl import commands
from tests.kill.faults import KINDS, Options, draw
from tests.kill.invariants import INVARIANTS, Violation
from tests.kill.mutations import MUTATIONS, Mutation, mutate
from tests.kill.run import run
from tests.kill.site import Plan
from tests.processes import heeding_signals


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/test kill", description="Kill crawls, and see that they end as if nothing had been."
    )
    parser.add_argument("--schedules", type=int, default=20, metavar="N", help="how many schedules (20)")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="N", help="number of the first (0)")
    parser.add_argument("--seed", default="1", help="what everything is drawn from (1)")
    parser.add_argument("--store", choices=["embedded", "hbase"], default="embedded")
    parser.add_argument(
        "--runner", choices=["inline", "local", "hadoop"], default="inline", help="of the commands that are struck"
    )
    parser.add_argument("--index", choices=["embedded", "solr"], default="embedded")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run one schedule again")
    parser.add_argument(
        "--mutation", metavar="NAME", help="break the program in this way first; stop when that is caught"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder of a run in which something failed")
    parser.add_argument("--list", action="store_true", help="name the kinds of faults and the mutations")
    asked = parser.parse_args()
    with heeding_signals():
        return _run(asked)


def _run(asked: argparse.Namespace) -> int:
    if asked.list:
        for kind in KINDS.values():
            print(f"{kind.name:<12} {kind.does}")
        for mutation in MUTATIONS.values():
            print(f"{mutation.name:<12} {mutation.does}")
        return 0
    options = Options(asked.store, asked.runner, asked.index)
    numbers = [asked.only] if asked.only is not None else [*range(asked.first, asked.first + asked.schedules)]
    if asked.mutation is None:
        summary = run(asked.seed, options, numbers, keep=asked.keep)
        print("\n".join(summary.lines()))
        return summary.code
    return _mutated(asked.mutation, asked.seed, options, numbers)


def _mutated(name: str, seed: str, options: Options, numbers: list[int]) -> int:
    """Run schedules over a broken program; succeed when one of them violates an invariant of the mutation's kind.

    A schedule that fails in another way has found another defect, which is reported and does not count. Those that
    strike none of the jobs in which the defect shows cannot fail: they count, and are not run.
    """
    jobs = [command.job for command in commands(Plan("any"))]
    shows = {place for place, job in enumerate(jobs) if job in MUTATIONS[name].shows}
    chosen = [n for n in numbers if any(f.command in shows for f in draw(seed, n, options, jobs, frozenset()))]

    folder = Path(tempfile.mkdtemp(prefix="nutch2py-mutation-"))
    try:
        mutate(MUTATIONS[name], folder)
        summary = run(
            seed, options, chosen, package=folder, stops=lambda report: bool(caught_by(MUTATIONS[name], report.wrong))
        )
    finally:
        shutil.rmtree(folder)
    print("\n".join(summary.lines()))
    if summary.interrupted:
        return summary.code
    result, code = "NOT caught", 1
    for number, wrong in summary.failed.items():
        place = numbers.index(number) + 1
        if invariant := caught_by(MUTATIONS[name], wrong):
            result, code = f"caught by schedule {place}, by the invariant {invariant} ({INVARIANTS[invariant]}),", 0
        else:
            print(f"schedule {place} failed by {', '.join(sorted({each.invariant for each in wrong}))}: another defect")
    print(f"{name}: {result} of at most {len(numbers)}")
    return code


def caught_by(mutation: Mutation, wrong: Iterable[Violation]) -> str:
    """Return the invariant of the mutation's kind that is violated, "" when others alone are."""
    return next((each.invariant for each in wrong if each.invariant in mutation.violates), "")


if __name__ == "__main__":
    sys.exit(main())
