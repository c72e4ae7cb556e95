"""Which process is which: of this machine, and whether one that was noted down is still there."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self


class ProcessIdentity(NamedTuple):
    """A process. ``machine_id`` tells hosts of one name apart; ``start_time`` processes of one id, "" when not known."""

    host: str
    machine_id: str
    pid: int
    start_time: str

    @classmethod
    def current(cls) -> Self:
        """Return this process."""
        return cls(socket.gethostname(), machine_id(), os.getpid(), process_start_time(os.getpid()))

    def is_local(self) -> bool:
        """Tell whether the process would be seen from this one."""
        return (self.host, self.machine_id) == (socket.gethostname(), machine_id())

    def has_exited(self) -> bool:
        """Tell whether it is a process of this machine that is surely gone."""
        if not self.is_local():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # another user's
            pass
        return process_start_time(self.pid) not in ("", self.start_time)


@cache
def machine_id() -> str:
    """Return what tells this machine, since it was started, and this space of process ids from others of its name."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no path
    return " ".join(parts)


def process_start_time(pid: int) -> str:
    """Return when a process was started, in the system's own words; ``dead`` for one that only waits to be buried.

    Empty when the system does not say so.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _ps_start_time(pid)
    return "dead" if fields[0] in "ZX" else fields[19]


def _ps_start_time(pid: int) -> str:
    with suppress(OSError):
        told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
        return told.stdout.decode("ascii", "replace").strip()
    return ""
