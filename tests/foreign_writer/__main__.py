"""``scripts/test foreign_writer``: random mixes of the writes of another program, for as long as it is told to."""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time

from tests.foreign_writer.scenarios import SCENARIOS, run_mix, standin


def main(words: list[str] | None = None) -> int:
    """Run mixes; print each batch that is not that of a full scan, and return 1 if there was one."""
    parser = argparse.ArgumentParser(prog="scripts/test foreign_writer", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="time in which mixes start (default: 60)")
    parser.add_argument("--seed", default="1", help="of the mixes (default: 1)")
    given = parser.parse_args(words)
    ends, number, bad = time.monotonic() + given.minutes * 60, 0, 0
    while time.monotonic() < ends:
        number += 1
        with standin() as server, contextlib.redirect_stdout(io.StringIO()):
            wrong = run_mix(server, random.Random(f"{given.seed} {number}"))
        bad += len(wrong)
        for line in wrong:
            print(f"mix {number}: {line}", flush=True)
    print(f"{number} mixes of {len(SCENARIOS)} writes, {bad} wrong batches")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
