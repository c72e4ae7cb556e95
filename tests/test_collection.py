"""The names of the tests are the same in every process: workers that collect different ones run none at all."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.conftest import ROOT

COLLECT = [sys.executable, "-m", "pytest", "-o", "addopts=", "--strict-markers", "-q", "--collect-only", "tests"]


def collecting(seed: int, zone: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONHASHSEED": str(seed), "TZ": zone}
    return subprocess.Popen(COLLECT, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_collect_the_same_names() -> None:
    first = collecting(1, "UTC")
    time.sleep(1.1)  # names that are made of a clock's seconds differ now
    with first, collecting(2, "Asia/Tokyo") as second:
        names = [process.communicate()[0].splitlines() for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), names
    found = [[name for name in each if "::" in name] for each in names]
    assert len(found[0]) > 5000
    assert found[0] == found[1]
