"""Servers of the tests are removed when their process ends, by SIGKILL, too, as workers of pytest-xdist do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.processes import wait_until

PROGRAM = """
import sys
from pathlib import Path
from tests.services import Service

class Server(Service):
    kind = "fake"
    program = Path(sys.argv[1])

server = Server("one")
server.start()
if sys.argv[2:]:
    server.remove()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("is_removed", "expected"), [(False, 3), (True, 1)], ids=["running", "removed"])
def test_server_of_killed_tests_is_removed(tmp_path: Path, is_removed: bool, expected: int) -> None:
    """Three attempts: a start that is under way may go on for a moment."""
    log, script = tmp_path / "log", tmp_path / "services"
    script.write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
    script.chmod(0o755)
    words = ["yes"] * is_removed
    command = [sys.executable, "-c", PROGRAM, str(script), *words]
    tests = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert tests.stdout is not None
    tests.stdout.readline()
    assert strike(tests, signal.SIGKILL)
    removal = "remove fake --instance one"
    wait_until(lambda: log.read_text().splitlines().count(removal) == expected)
    assert log.read_text().splitlines() == ["start fake --instance one", *[removal] * expected]
    tests.communicate()
