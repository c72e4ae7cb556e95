"""Which process is which: of this machine, and whether one that was noted down is still there."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self


class Process(NamedTuple):
    """A process. ``machine`` tells hosts of one name apart; ``started`` processes of one id, "" when not known."""

    host: str
    machine: str
    pid: int
    started: str

    @classmethod
    def own(cls) -> Self:
        """Return this process."""
        return cls(socket.gethostname(), machine(), os.getpid(), started(os.getpid()))

    def is_here(self) -> bool:
        """Tell whether the process would be seen from this one."""
        return (self.host, self.machine) == (socket.gethostname(), machine())

    def is_gone(self) -> bool:
        """Tell whether it is a process of this machine that is surely gone."""
        if not self.is_here():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # another user's
            pass
        return started(self.pid) not in ("", self.started)


@cache
def machine() -> str:
    """Return what tells this machine, since it was started, and this space of process ids from others of its name."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no path
    return " ".join(parts)


def started(pid: int) -> str:
    """Return when a process was started, in the system's own words; ``dead`` for one that only waits to be buried.

    Empty when the system does not say so.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _started_by_ps(pid)
    return "dead" if fields[0] in "ZX" else fields[19]


def _started_by_ps(pid: int) -> str:
    with suppress(OSError):
        told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
        return told.stdout.decode("ascii", "replace").strip()
    return ""
