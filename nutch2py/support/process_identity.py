"""Identifies processes across hosts, and checks whether a recorded process still runs."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self


class ProcessIdentity(NamedTuple):
    """A process.

    ``machine_id`` distinguishes hosts of the same name; ``start_time`` processes of the same id, "" if unknown.
    """

    host: str
    machine_id: str
    pid: int
    start_time: str

    @classmethod
    def current(cls) -> Self:
        """Return this process."""
        return cls(socket.gethostname(), machine_id(), os.getpid(), process_start_time(os.getpid()))

    def is_local(self) -> bool:
        """Return whether the process would be visible from this one."""
        return (self.host, self.machine_id) == (socket.gethostname(), machine_id())

    def has_exited(self) -> bool:
        """Return whether it is a process of this machine that has certainly exited."""
        if not self.is_local():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # owned by another user
            pass
        return process_start_time(self.pid) not in ("", self.start_time)


@cache
def machine_id() -> str:
    """Return an id of this machine since its boot and of its process id namespace."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no path
    return " ".join(parts)


def process_start_time(pid: int) -> str:
    """Return the start time of a process in the system's own format; ``dead`` for a zombie.

    Empty when the system does not provide it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _ps_start_time(pid)
    return "dead" if fields[0] in "ZX" else fields[19]


def _ps_start_time(pid: int) -> str:
    with suppress(OSError):
        result = subprocess.run(  # noqa: S603 - no shell; a number
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False
        )
        return result.stdout.decode("ascii", "replace").strip()
    return ""
