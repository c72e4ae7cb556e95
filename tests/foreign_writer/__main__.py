"""``scripts/test foreign_writer``: random mixes of the writes of another program, for as long as it is told to."""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.foreign_writer.real_writer import REAL_SCENARIOS, ClientProgram, HBaseWriter
from tests.foreign_writer.scenarios import SCENARIOS, StandinWriter, make_table, run_mix, standin
from tests.services import running
from tests.table.hbase_server import Server

_LINES = {
    "by the index": "reading the rows that the due index lists",
    "by a full scan that the check asked for": "are missing in the due index",
    "by a full scan until the index is rebuilt": "as the due index is not available",
    "read again in full": "were changed by a program that does not maintain the due index: full",
}
"""What is counted, and the part of generate's log that shows it."""


def main(words: list[str] | None = None) -> int:
    """Run mixes; print each batch that is not that of a full scan, and return 1 if there was one."""
    parser = argparse.ArgumentParser(prog="scripts/test foreign_writer", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="time in which mixes start (default: 60)")
    parser.add_argument("--seed", default="1", help="of the mixes (default: 1)")
    parser.add_argument("--hbase", action="store_true", help="beside a real HBase, not beside its stand-in")
    given = parser.parse_args(words)
    ends, number, bad = time.monotonic() + given.minutes * 60, 0, 0
    counts: Counter[str] = Counter()
    with _real_mixes() if given.hbase else _standin_mixes() as run_one:
        while time.monotonic() < ends:
            number += 1
            with contextlib.redirect_stdout(io.StringIO()) as log:
                wrong = run_one(random.Random(f"{given.seed} {number}"))
            bad += len(wrong)
            counts.update({name: log.getvalue().count(line) for name, line in _LINES.items()})
            for line in wrong:
                print(f"mix {number}: {line}", flush=True)
            if number % (10 if given.hbase else 1_000) == 0:
                print(_summary(number, bad, counts), flush=True)
    print(f"{len(REAL_SCENARIOS if given.hbase else SCENARIOS)} kinds of writes; {_summary(number, bad, counts)}")
    return 1 if bad else 0


def _summary(number: int, bad: int, counts: Counter[str]) -> str:
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{number} mixes; batches: {found}; {bad} wrong batches"


@contextlib.contextmanager
def _standin_mixes() -> Iterator[Callable[[random.Random], list[str]]]:
    """Give a function that runs a mix beside the stand-in."""

    def run(drawn: random.Random) -> list[str]:
        with standin() as server:
            return run_mix(StandinWriter(server, make_table()), drawn)

    yield run


@contextlib.contextmanager
def _real_mixes() -> Iterator[Callable[[random.Random], list[str]]]:
    """Give a function that runs a mix beside an HBase of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="foreign-") as scratch,
        running(Server()) as server,
        ClientProgram(server, Path(scratch)) as program,
    ):

        def run(drawn: random.Random) -> list[str]:
            writer = HBaseWriter(program, make_table(address=server.address()))
            try:
                return run_mix(writer, drawn, 12, REAL_SCENARIOS, concurrent_share=0.3, rebuild_share=0.9)
            finally:
                writer.drop()

        yield run


if __name__ == "__main__":
    sys.exit(main())
