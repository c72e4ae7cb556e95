"""``scripts/test cluster``: tests on three nodes that are namespaces of this machine.

    scripts/test cluster                 all of tests/cluster that needs a cluster
    scripts/test cluster -k killed       arguments are handed to pytest

Needs what tests of real servers need (a JDK 17, Maven) and what namespaces need: root, or a kernel that lets users
make them; ``unshare``, ``nsenter``, ``setpriv`` and ``ip``. About 5 GB of memory and 3 GB of disk.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.nodes import HERE, into_the_world, missing, python_folder
from tests.counted_kills import strike
from tests.import_graph import ROOT
from tests.processes import heeding_signals

_PREFIX = "nutch2py-cluster-"


@contextmanager
def work_folder() -> Iterator[Path]:
    """Give a folder for the disks of a world; delete it afterwards, and what worlds have left that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with (path / "held").open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(path)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (folder / "held").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run_in_a_world(command: list[str], jars: bool = True) -> int:
    """Run a command on the master of a new world; return its exit code."""
    folders: dict[str, Path] = {}
    if jars:
        for name in ("hadoop", "hbase"):
            subprocess.run([ROOT / "scripts" / "services", "fetch", name], check=True)
            folders[name] = ROOT / ".cache" / "services" / name / "lib"
        java = shutil.which("java")
        assert java is not None
        folders["java"] = Path(java).resolve().parent.parent
    if python := python_folder():
        folders["python"] = python
    with work_folder() as work, heeding_signals():
        environment = {**os.environ, HERE: str(work)}
        process = subprocess.Popen(into_the_world(work, folders, command), env=environment)
        try:
            return process.wait()
        except KeyboardInterrupt:
            strike(process)  # the whole world with it
            return 130


def main(words: list[str]) -> int:
    """Run the tests; return pytest's exit code, 2 where there can be no cluster."""
    lacking = missing() + [f"no {tool} on the PATH" for tool in ("java", "mvn") if shutil.which(tool) is None]
    if lacking:
        print(f"scripts/test cluster: {'; '.join(lacking)}", file=sys.stderr)
        return 2
    paths = [] if any(word.startswith("tests/") for word in words) else ["tests/cluster"]
    return run_in_a_world([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *paths, *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
