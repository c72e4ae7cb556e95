"""Runs map tasks where their rows are: passes the host of each split to YARN.

Hadoop streaming gets splits and their hosts from an input format, a Java class, and none of Hadoop's classes reads them
from a file. ``PlacedSplits`` does. ``PlacedSplits.class`` next to this module is compiled from ``PlacedSplits.java``
(``javac --release 8 -g:none``), so that a client needs no compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

from nutch2py.mapreduce.input_splits import RangeSplit, Split

PLACED_SPLITS_FORMAT = "nutch2py.PlacedSplits"
HOSTS_FILE = "hosts"
"""Name of the file next to the splits file: a line with the host of each split, or an empty one."""


def prepare_locality(work: Path, splits: Sequence[Split]) -> list[str]:
    """Write the preferred hosts of splits into ``work``; return arguments for mrjob, empty if no host is known."""
    hosts = [split.host if isinstance(split, RangeSplit) else "" for split in splits]
    if not any(hosts):
        return []
    (work / HOSTS_FILE).write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    with ZipFile(work / "placing.jar", "w") as jar:
        jar.writestr("nutch2py/PlacedSplits.class", Path(__file__).with_name("PlacedSplits.class").read_bytes())
    return ["--libjars", str(work / "placing.jar")]
