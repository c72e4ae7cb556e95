"""cycle-hbase: inject to index of ROWS pages with the table in a temporary HBase, including its CPU seconds."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

from bench.cycle import in_turns, ours
from bench.fetch import site
from bench.measuring import Measurement
from bench.services import service

ROWS = (10_000,)
_TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of_threads(pid: int) -> dict[str, float]:
    """Return the CPU seconds of the live threads of a process, by name and number."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, _, rest = (task / "stat").read_text(encoding="utf-8", errors="replace").partition("(")[2].rpartition(")")
        fields = rest.split()
        found[f"{name} {task.name}"] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure the cycle; the first job runs on servers that have just started."""
    (folder / "ours").mkdir()
    with service("hbase", "cycle", folder / "hbase") as hbase:
        job = ours(folder / "ours", runner, folder / "hosts.txt", **{"storage.data.store": hbase.address})
        with site(rows, folder):
            seeds = folder / "seeds"
            seeds.mkdir()
            shutil.copy(folder / "all_urls.txt", seeds)
            before = hbase.seconds()
            at_first = {part: seconds_of_threads(pid) for part, pid in hbase.processes().items()}
            found = in_turns([f"nutch2py, {runner}, HBase"], [lambda name: job(name, seeds)], rows, hbase.used)
            after = hbase.seconds()
        for part, pid in hbase.processes().items():
            threads = Counter[str]()
            for thread, seconds in seconds_of_threads(pid).items():
                threads[re.sub(r"[^A-Za-z]*\d.*", "", thread)] += seconds - at_first[part].get(thread, 0.0)
            usage = ", ".join(f"{name} {seconds:.1f}" for name, seconds in threads.most_common(8))
            print(f"  {part}: {after[part] - before[part]:.1f} CPU s, of which by threads {usage}", file=sys.stderr)
        return found
