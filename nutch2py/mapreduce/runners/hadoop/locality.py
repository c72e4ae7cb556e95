"""Map tasks where their rows are: what tells YARN the machine of each split.

Hadoop streaming asks an input format, a class of Java, for the splits and their machines, and none of Hadoop's reads
them from a file. ``PlacedSplits`` does; ``PlacedSplits.class`` beside this module is compiled from
``PlacedSplits.java`` (``javac --release 8 -g:none``), so that a client needs no compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

from nutch2py.mapreduce.input_splits import RangeSplit, Split

PLACED_SPLITS_FORMAT = "nutch2py.PlacedSplits"
HOSTS_FILE = "hosts"
"""Name of the file beside that of the splits: a line for each of them, a machine's name or nothing."""


def prepare_locality(work: Path, splits: Sequence[Split]) -> list[str]:
    """Write where splits are best run into ``work``; return arguments for mrjob, none where nothing is known."""
    hosts = [split.host if isinstance(split, RangeSplit) else "" for split in splits]
    if not any(hosts):
        return []
    (work / HOSTS_FILE).write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    with ZipFile(work / "placing.jar", "w") as jar:
        jar.writestr("nutch2py/PlacedSplits.class", Path(__file__).with_name("PlacedSplits.class").read_bytes())
    return ["--libjars", str(work / "placing.jar")]
