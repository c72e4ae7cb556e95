"""``scripts/test outages``: the command line; prints a row of docs/operations.md#outages per trial."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.jobs import crawl
from tests.jobs.stages import make_stages
from tests.outages.outage_trials import WAYS, Outcome, run
from tests.outages.retry_subjects import SUBJECTS
from tests.processes import Terminated, heeding_signals


def main(words: list[str] | None = None) -> int:
    """Run the trials of the command line; return 1 if any of them lost data."""
    parser = argparse.ArgumentParser(prog="scripts/test outages", description=__doc__)
    parser.add_argument("--service", nargs="+", choices=SUBJECTS, default=[*SUBJECTS], help="which (default: all)")
    parser.add_argument("--seconds", nargs="+", type=float, default=[5, 30, 300], help="duration of each outage")
    parser.add_argument(
        "--way", nargs="+", choices=WAYS, default=[*WAYS], help="silent (SIGSTOP), or killed and restarted"
    )
    given = parser.parse_args(words)
    try:
        with heeding_signals():
            return _run(given)
    except KeyboardInterrupt as stop:
        return 143 if isinstance(stop, Terminated) else 130


def _run(given: argparse.Namespace) -> int:
    bad = 0
    with crawl.changing_site() as site, tempfile.TemporaryDirectory(prefix="outages-") as folder:
        stages = make_stages(site, Path(folder))
        for name in given.service:
            subject = SUBJECTS[name]()
            try:
                subject.start()
                for way in given.way:
                    for seconds in given.seconds:
                        place = Path(folder, name)
                        place.mkdir(exist_ok=True)
                        outcome = run(subject, stages, way, seconds, place)
                        bad += not outcome.well
                        _print(name, outcome)
            finally:
                subject.remove()
    return 1 if bad else 0


def _print(name: str, outcome: Outcome) -> None:
    concurrent = f", the job next to it {' then '.join(map(str, outcome.concurrent))}" if outcome.concurrent else ""
    end = "passes" if outcome.code == 0 else f"exit {outcome.code}, run again: exit {outcome.again}"
    print(
        f"| {name} | {outcome.way} | {outcome.seconds:g} s | {outcome.away:.0f} s | {outcome.after:.1f} s "
        f"| {end}{concurrent} | "
        f"{'right' if outcome.right else 'WRONG'} |"
    )
    for line in outcome.said:
        print(f"    {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
