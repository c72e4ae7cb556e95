"""``scripts/test soak``: the command line of the soak."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.soak.memory_chart import write_csv, write_svg
from tests.soak.memory_verdict import Row, Verdict, judge, judge_in_process
from tests.soak.small_site import SMALL_PROGRAM, SMALL_SETTINGS, SmallSite
from tests.soak.soak_run import CHILD_MEGABYTES, Soak
from tests.soak.web import Web


def main(argv: list[str] | None = None) -> int:
    """Soak, and return 0; 1 when anything climbs, is left, or has not ended."""
    parser = argparse.ArgumentParser(
        prog="scripts/test soak",
        description="Crawls a generated web of honest, odd and hostile hosts round after round, and draws what the "
        "crawl keeps: memory, handles, files, table. All traffic stays on the loopback.",
    )
    parser.add_argument("--minutes", type=float, default=10, help="time in which rounds start (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="of the web (default: 1)")
    parser.add_argument("--hosts", type=int, default=100_000, help="of the web (default: 100000)")
    parser.add_argument("--pages", type=int, default=1000, help="of a round (default: 1000)")
    parser.add_argument("--to", type=Path, help="where soak.csv, soak.svg, soak.json are left (default: a new folder)")
    parser.add_argument("-D", dest="properties", action="append", default=[], metavar="NAME=VALUE", help="a property")
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="instead crawl a small site --rounds times; memory at the end is compared with round 20",
    )
    parser.add_argument("--rounds", type=int, default=300, help="rounds with --in-process (default: 300)")
    args = parser.parse_args(argv)
    to = args.to or Path(tempfile.mkdtemp(prefix="nutch2py-soak-"))
    to.mkdir(parents=True, exist_ok=True)
    work = to / "crawl"
    shutil.rmtree(work, ignore_errors=True)
    given = dict(each.split("=", 1) for each in args.properties)
    if args.in_process:
        soak = Soak(SmallSite(args.seed), work, 60, {**SMALL_SETTINGS, **given}, SMALL_PROGRAM)
    else:
        soak = Soak(Web(args.seed, args.hosts), work, args.pages, given)
    soak.web.prepare()
    ends = time.monotonic() + args.minutes * 60

    def tell(row: Row, counters: dict[str, Any]) -> None:
        print(
            f"round {row.number}: {row.minutes:.1f} min, {row.seconds:.0f} s, {row.pages} pages; "
            f"at rest {row.memory:.1f} MB (+ {row.mapped:.0f} of files), {row.handles} handles, {row.threads} threads, "
            f"{row.temporary_files} files; peaks {row.peak_crawler:.0f}, child {row.peak_child:.0f}, "
            f"all {row.peak_together:.0f} MB; table {row.table_megabytes:.0f}, index {row.index_megabytes:.0f} MB",
            flush=True,
        )
        write_csv(soak.rows, to / "soak.csv")
        write_svg(soak.rows, to / "soak.svg")

    try:
        soak.run(lambda done: done < args.rounds if args.in_process else time.monotonic() < ends, tell)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if args.in_process:
        return _report(judge_in_process(soak.rows), to)
    verdict = judge(soak.rows, soak.ended, CHILD_MEGABYTES)
    found = {
        "hostile": soak.hostile,
        "requests": soak.requests,
        **soak.ended,
        "warned": soak.warned,
        "slopes": verdict.slopes,
    }
    (to / "soak.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    ended = soak.ended
    for trick, labels in sorted(ended["tricks"].items()):
        print(f"  {trick}: {', '.join(f'{count} {label}' for label, count in labels.items())}")
    print(
        f"{soak.requests} requests, {soak.hostile} hostile answers; "
        f"{ended['good']} honest pages of {ended['rows']} rows"
    )
    return _report(verdict, to)


def _report(verdict: Verdict, to: Path) -> int:
    """Print a verdict; return the exit code."""
    for name, value in verdict.slopes.items():
        print(f"{name}: {value:+.3f} a round")
    print(f"soak.csv, soak.svg: {to}")
    for failure in verdict.failures:
        print(f"FAILED: {failure}")
    return 1 if verdict.failures else 0


if __name__ == "__main__":
    sys.exit(main())
