"""Machines of a cluster out of namespaces: each with processes, network, host name, /tmp and files of its own.

The *world* is a set of namespaces that holds everything, and whose network leads nowhere; in it are the master, where
the tests run, and nodes, each again namespaces. Every process of a node dies with the node's first one, every process
of the world with the world's first one, and that with the process which has made it: nothing is left after a kill -9.

What machines have in common lies under ``/mnt``: jars, configuration, Java. ``/mnt/node`` is the machine's own disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.counted_kills import strike
from tests.import_graph import ROOT
from tests.processes import wait_until

NODES = ("node1", "node2", "node3")
MASTER = "master"
SITES = ("10.77.0.1", "10.77.0.2", "10.77.0.3")
"""Addresses of the master; web servers of the tests listen there, the cluster's on the first."""
ADDRESSES = {MASTER: SITES[0], **{name: f"10.77.0.{11 + number}" for number, name in enumerate(NODES)}}
HERE = "NUTCH2PY_CLUSTER"
"""Environment of a process in the world: the folder that machines have their disks in."""
_TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "bash": "bash"}
_SYSTEM_PYTHON = tuple(Path(folder, f"python3.{sys.version_info[1]}") for folder in ("/usr/local/bin", "/usr/bin"))

_WORLD = """
set -e
work=$1; shift
hostname master
ip link set lo up
ip link add br0 address 02:00:0a:4d:00:01 type bridge  # which it would have of a node, and lose with it
for site in {sites}; do ip address add "$site/24" dev br0; done
ip link set br0 up
mount -t tmpfs tmpfs /mnt
mkdir /mnt/node /mnt/shared
mount --bind "$work/master" /mnt/node
mount --bind "$work/shared" /mnt/shared
while [ "$1" != -- ]; do
  mkdir "/mnt/$1"
  mount --bind "$2" "/mnt/$1"
  mount -o remount,bind,ro "/mnt/$1"
  shift 2
done
shift
mount --bind "$work/hosts" /etc/hosts
mount --bind "$work/nowhere" "$(readlink -f /etc/resolv.conf)" || :
set +e
"$@"
exit $?
"""
"""First process of the world. After the folder come names for folders, ``--``, and a command."""
_NODE = """
set -e
read -r _
name=$1 address=$2 disk=$3; shift 3
hostname "$name"
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
mount --bind "$disk" /mnt/node
mount -o remount,bind,ro /mnt/shared
for hidden in "$@"; do
  if [ -d "$hidden" ]; then mount -t tmpfs -o size=256m tmpfs "$hidden"; fi
done
cd /mnt/node
echo ready
while :; do sleep 3600; done
"""
"""First process of a node; it starts when it has its end of the network's cable."""


def missing() -> list[str]:
    """Return what this machine lacks for a cluster of namespaces, as sentences."""
    lacking = [
        f"no {tool} (apt-get install {package})" for tool, package in _TOOLS.items() if shutil.which(tool) is None
    ]
    if lacking or not sys.platform.startswith("linux"):
        return lacking or ["namespaces are of Linux"]
    trial = "ip link add br0 type bridge && ip link add one type veth peer name other && mount -t tmpfs tmpfs /mnt"
    done = subprocess.run([*_unshare(), "bash", "-c", trial], capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"no right to make namespaces, a bridge or a mount ({done.stderr.strip()}): try as root"]
    return []


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    separate = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *separate]


def into_the_world(work: Path, folders: Mapping[str, Path], command: Sequence[str]) -> list[str]:
    """Return the command that runs ``command`` on the master of a new world, and ends with its exit code.

    ``folders`` are seen as ``/mnt/NAME`` by all machines, and not to be written; ``work`` holds the disks.
    """
    for name in (*ADDRESSES, "shared"):
        (work / name).mkdir(parents=True, exist_ok=True)
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in ADDRESSES.items())]
    (work / "hosts").write_text("".join(f"{line}\n" for line in lines))
    (work / "nowhere").touch()
    named = [word for name, folder in folders.items() for word in (name, str(folder.resolve()))]
    script = _WORLD.format(sites=" ".join(SITES))
    return [*_unshare(), "bash", "-c", script, "world", str(work), *named, "--", *command]


def python_folder() -> Path | None:
    """Return the folder of a Python for the nodes where the system has none of this version: that of this one."""
    return None if any(path.exists() for path in _SYSTEM_PYTHON) else Path(sys.base_prefix)


def search_path() -> str:
    """Return the PATH of the machines."""
    return "/mnt/java/bin:/mnt/python/bin:/usr/local/bin:/usr/bin:/bin"


def _network(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


class Task(NamedTuple):
    """Output of a process on a machine."""

    code: int
    out: str


class Machine:
    """The master: commands run next to the tests."""

    name = MASTER

    def __init__(self) -> None:
        self.disk = Path(os.environ[HERE]) / self.name
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def _enter(self, command: Sequence[str]) -> list[str]:
        return list(command)

    def run(self, *command: str) -> Task:
        """Run a command to its end."""
        done = subprocess.run(
            self._enter(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=self.environment(),
        )
        return Task(done.returncode, done.stdout)

    def start(self, part: str, *command: str) -> None:
        """Start a server; what it says goes to :meth:`log`."""
        self.log(part).parent.mkdir(exist_ok=True)
        with self.log(part).open("wb") as log:
            self.started[part] = subprocess.Popen(
                self._enter(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                start_new_session=True,
            )

    def log(self, part: str) -> Path:
        """Return the file with what a server says."""
        return self.disk / "log" / f"{part}.out"

    @staticmethod
    def environment() -> dict[str, str]:
        """Return what processes of a machine have: nothing of the tests."""
        return {"PATH": search_path(), "LANG": "C.UTF-8", "JAVA_HOME": "/mnt/java", "HADOOP_CONF_DIR": "/mnt/shared"}


class Node(Machine):
    """A machine of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__()
        work = Path(os.environ[HERE])
        hidden = sorted({"/tmp", "/var/tmp", "/dev/shm", str(Path.home()), str(ROOT), sys.prefix, str(work)} - {"/"})
        script = ["bash", "-c", _NODE, name, name, ADDRESSES[name], str(self.disk), *hidden]
        separate = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._process = subprocess.Popen(
            ["unshare", *separate, *script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        wait_until(lambda: children.read_text().split() or self._process.poll() is not None)
        (self.first,) = map(int, children.read_text().split())
        cable = ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(self.first)]
        wait_until(lambda: _network(self.first) != _network(os.getpid()))
        subprocess.run(cable, check=True)
        subprocess.run(["ip", "link", "set", name, "master", "br0", "up"], check=True)
        self._process.stdin.write(b"begin\n")
        self._process.stdin.close()
        said = self._process.stdout.readline()
        self._process.stdout.close()
        assert said == b"ready\n", f"{name} does not start"

    def _enter(self, command: Sequence[str]) -> list[str]:
        enter = ["bash", "-c", 'cd /mnt/node && exec "$@"', "bash"]
        return ["nsenter", "--target", str(self.first), "--mount", "--net", "--uts", "--ipc", "--pid", *enter, *command]

    def power_off(self) -> bool:
        """Kill all that runs there, as when a machine loses its power; return whether it ran."""
        hit = strike(self.first, signal.SIGKILL)
        self._process.wait()
        for process in self.started.values():
            process.wait()
        # The kernel takes a dead namespace apart later, and its cable with it; a new machine needs the name now.
        subprocess.run(["ip", "link", "delete", self.name], stderr=subprocess.DEVNULL, check=False)
        return hit
