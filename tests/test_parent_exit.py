"""What a driver has started ends with it, also while it still starts, and where the system sends no signal for that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.processes import alive, wait_until

STARTED = """
import os, sys, time
sys.platform = sys.argv[1]
from nutch2py.support.parent_exit import exit_with_parent
exit_with_parent(int(sys.argv[2]))
open(os.environ["PID_FILE"], "w").write(f"{os.getpid()} ")
time.sleep(600)
"""
SLOW_MODULE = """
import os, time
open(os.environ["PID_FILE"], "w").write(f"{os.getpid()} ")
time.sleep(600)
"""
OWNERS = {
    "signal": f"subprocess.Popen([sys.executable, '-c', {STARTED!r}, 'linux', str(os.getpid())])",
    "polling": f"subprocess.Popen([sys.executable, '-c', {STARTED!r}, 'darwin', str(os.getpid())])",
    "loading fork server": "ForkServer('slow_module:Job', 'none')",
    "loading parse worker": "ParseWorkerClient(Configuration.load(overrides={'http.agent.name': 'x'})).parse_row("
    "KEY, fetched(b'x'))",
    "loading search worker": "SearchWorkerPool(Configuration.load(), SearchMetrics()).run(SearchCall('suggest', 'x'))",
}
OWNER = """
import os, subprocess, sys, time
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.runners.fork_server import ForkServer
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.search.search_worker.search_messages import SearchCall
from nutch2py.search.search_worker.search_metrics import SearchMetrics
from nutch2py.search.search_worker.search_worker_pool import SearchWorkerPool
from tests.parser.pages import KEY, fetched
sys.path.insert(0, sys.argv[1])
owned = {}
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
@pytest.mark.parametrize("what", OWNERS)
def test_child_ends_with_killed_parent(what: str, tmp_path: Path) -> None:
    for name in ("slow_module", "msgspec"):  # the owner has imported msgspec; what it starts begins with that
        (tmp_path / f"{name}.py").write_text(SLOW_MODULE)
    pid_file = tmp_path / "pid"
    environment = {**os.environ, "PID_FILE": str(pid_file)}
    code = OWNER.replace("owned = {}", f"owned = {OWNERS[what]}")
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, env=environment) as owner:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith(" "))
        child = int(pid_file.read_text())
        assert alive(child)
        assert strike(owner)
        wait_until(lambda: not alive(child))


TASK = """
import os, sys, time
from nutch2py.mapreduce.task_progress import watch_driver
task = os.fork()
if not task:
    watch_driver(int(sys.argv[1]), ".")
    time.sleep(600)
print(task, flush=True)
sys.stdin.read()
"""


def test_task_ends_with_fork_server_of_zombie_driver() -> None:
    """A driver whose own parent does not ask for its end yet still has its id."""
    with subprocess.Popen(["sleep", "600"]) as driver:
        words = [sys.executable, "-c", TASK, str(driver.pid)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as server:
            assert server.stdout is not None
            task = int(server.stdout.readline())
            os.kill(driver.pid, 9)
            wait_until(lambda: not alive(driver.pid))
            assert alive(task)
            assert strike(server)
            wait_until(lambda: not alive(task))
