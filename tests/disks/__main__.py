"""``scripts/test disks``: the command line of the sweep."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.disks.disk_sweep import COMMANDS, Sweep, draw_sizes
from tests.disks.small_disk import KINDS, SmallDisk, can_mount
from tests.jobs import crawl


def main(words: list[str] | None = None) -> int:
    """Run the sweep of the command line; return 1 if a command did not end as promised."""
    parser = argparse.ArgumentParser(prog="scripts/test disks", description=__doc__)
    parser.add_argument("--sizes", type=int, default=200, help="runs in total on each file system (default: 200)")
    parser.add_argument("--file-system", nargs="+", choices=KINDS, default=[*KINDS], help="which (default: all)")
    parser.add_argument("--command", nargs="+", choices=COMMANDS, default=[*COMMANDS], help="which (default: all)")
    parser.add_argument("--seed", default="1", help="of the sizes (default: 1)")
    given = parser.parse_args(words)
    bad = 0
    with crawl.changing_site() as site, tempfile.TemporaryDirectory(prefix="disks-") as folder:
        stages_made = False
        for kind in given.file_system:
            if not can_mount(kind, Path(folder)):
                print(f"{kind}: cannot be made and mounted here (it needs root and its mkfs)")
                bad += len(given.file_system) == 1
                continue
            with SmallDisk(kind, Path(folder, kind)) as disk:
                sweep = Sweep(Path(folder, "stages"), disk, site)
                if not stages_made:
                    sweep.make_stages()
                    stages_made = True
                bad += _sweep(sweep, given.command, given.sizes, random.Random(f"{given.seed} {kind}"))
    return 1 if bad else 0


def _sweep(sweep: Sweep, names: list[str], sizes: int, drawn: random.Random) -> int:
    """Run each command with its share of the sizes; print each trouble, and a line for each command."""
    bad = 0
    for place, name in enumerate(names):
        peak = sweep.measure(name)
        codes: Counter[int] = Counter()
        for free in draw_sizes(peak, sizes * (place + 1) // len(names) - sizes * place // len(names), drawn):
            outcome = sweep.run(name, free, drawn.random() < 0.5)
            codes[outcome.code] += 1
            if outcome.trouble:
                bad += 1
                print(f"FAILED: {name} on {outcome.kind} with {free} free pages: {outcome.trouble}", flush=True)
        ends = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
        print(f"{sweep.disk.kind}: {name} needs {peak} pages; ended: {ends}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
