"""Machines of ``scripts/test cluster`` without servers: what each sees, and their cleanup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import __main__ as program
from tests.cluster import nodes
from tests.counted_kills import Kills
from tests.import_graph import ROOT
from tests.processes import alive, wait_until

_MEETING = """
import socket, subprocess
from tests.cluster.nodes import ADDRESSES, SITES, Machine, Node

machines = {name: Node(name) for name in ("node1", "node2")}
one, other = machines.values()
for name, machine in machines.items():
    assert machine.run("hostname").out == name + "\\n"
    assert machine.run("ls", "-A", "/tmp").out == ""
    machine.run("bash", "-c", "echo $HOSTNAME > /tmp/mine; echo $HOSTNAME > mine")
assert [each.run("cat", "/tmp/mine").out for each in (one, other)] == ["node1\\n", "node2\\n"]
assert (one.disk / "mine").read_text() == "node1\\n"
for hidden in (HIDDEN):
    assert one.run("ls", hidden).code, hidden
assert one.run("touch", "/mnt/shared/x").code
with socket.create_server((SITES[2], 0)) as server:
    port = server.getsockname()[1]
    connect = f"exec 3<>/dev/tcp/{SITES[2]}/{port}"
    for name, machine in machines.items():
        assert machine.run("bash", "-c", connect).code == 0
        with server.accept()[0] as accepted:
            assert accepted.getpeername()[0] == ADDRESSES[name]
    for machine in (one, Machine()):
        routes = machine.run("ip", "route", "show").out.splitlines()
        assert routes and all(route.startswith("10.77.0.0/24 ") for route in routes), routes
    one.start("sleeper", "sleep", "600")
    assert one.power_off()
    assert not one.power_off()
    assert one.started["sleeper"].poll() is not None
    assert one.run("true").code
    assert other.run("bash", "-c", connect).code == 0
other.power_off()
again = Node("node1")
assert again.run("cat", "mine").out == "node1\\n", "a disk outlives its machine"
assert again.run("ls", "-A", "/tmp").out == ""
again.power_off()
"""
_SLEEP = """
from tests.cluster.nodes import Node
node = Node("node1")
node.start("sleeper", "sleep", "600")
print("ready", flush=True)
node.started["sleeper"].wait()
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    lacking = nodes.missing()
    if lacking:
        pytest.skip("; ".join(lacking))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.tempfile, "tempdir", str(tmp_path))


def in_a_world(script: str) -> list[str]:
    """Return the command that runs a script on the master of a new world."""
    run = f"run_in_a_world([{sys.executable!r}, '-c', {script!r}], jars=False)"
    return [sys.executable, "-c", f"import sys; from tests.cluster.__main__ import run_in_a_world; sys.exit({run})"]


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        in_a_world(script), cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_machines_share_only_network(tmp_path: Path) -> None:
    hidden = repr([str(ROOT / "README.md"), str(ROOT / ".venv" / "bin"), str(tmp_path), str(Path.home() / ".cache")])
    done = run(_MEETING.replace("(HIDDEN)", hidden), tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_exit_codes_are_returned(tmp_path: Path) -> None:
    assert run("raise SystemExit(7)", tmp_path).returncode == 7


def test_kill_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with Kills("worlds") as kills:
        process = subprocess.Popen(
            in_a_world(_SLEEP), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        inside = descendants(process.pid)
        assert len(inside) > 5
        kills.kill(process)
        process.stdout.close()
    wait_until(lambda: not any(map(alive, inside)))
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("nutch2py-cluster-")
    assert run("", tmp_path).returncode == 0  # the next one takes away what that has left
    assert list(tmp_path.iterdir()) == []


def descendants(pid: int) -> list[int]:
    """Return the ids of the processes below one."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [each for child in found for each in descendants(child)]


def test_missing_prerequisites_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nodes.shutil, "which", lambda name: None if name in ("ip", "java") else f"/bin/{name}")
    assert program.main([]) == 2
    assert capsys.readouterr().err == ("scripts/test cluster: no ip (apt-get install iproute2); no java on the PATH\n")
