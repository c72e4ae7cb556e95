"""The audit log: who changed or was refused what, when, with which result; a line of JSON each."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import msgspec

from nutch2py.reporting import warn
from nutch2py.rest.state import made


class Audit:
    """The file ``<rest.folder>/audit.log``; above ``most`` bytes it becomes ``audit.log.1``, and a new one begins."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, most
        self._lock = threading.Lock()

    def note(self, who: str, address: str, method: str, path: str, status: int, what: str = "") -> None:
        """Write a line; what cannot be written is warned of, for the server is to go on."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "who": who, "address": address,
                "method": method, "path": path[:500], "status": status, "what": what[:500]}  # fmt: skip
        try:
            with self._lock:
                made(self.path.parent)
                descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with open(descriptor, "ab") as file:  # noqa: PTH123
                    file.write(msgspec.json.encode(line) + b"\n")
                    grown = file.tell() > self._most
                if grown:
                    self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        except OSError as error:
            warn(f"cannot write {self.path}: {error.strerror}")
