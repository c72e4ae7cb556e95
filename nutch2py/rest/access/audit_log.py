"""The audit log: who changed or was refused what, when, with which result; a line of JSON each."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from nutch2py.rest.state_dir import ensure_private_dir
from nutch2py.support.reporting import warn


class AuditLog:
    """The file ``<rest.folder>/audit.log``; above ``most`` bytes it becomes ``audit.log.1``, and a new one begins.

    Several servers can write it: who has it locked writes, and only to the file that has the name.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()

    def record(self, caller: str, address: str, method: str, path: str, status: int, detail: str = "") -> None:
        """Write a line; what cannot be written is warned of, for the server is to go on."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "who": caller, "address": address,
                "method": method, "path": path[:500], "status": status, "what": detail[:500]}  # fmt: skip
        try:
            with self._lock:
                ensure_private_dir(self.path.parent)
                while not self._try_append(msgspec.json.encode(line) + b"\n"):
                    continue  # another server has begun a new file meanwhile
        except OSError as error:
            warn(f"cannot write {self.path}: {error.strerror}")

    def _try_append(self, line: bytes) -> bool:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            file = os.fstat(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(file, self.path.stat()):
                    if file.st_size and os.pread(descriptor, 1, file.st_size - 1) != b"\n":
                        line = b"\n" + line  # a server was killed, or the disk was full, amid a line
                    size = file.st_size + len(line)
                    while line:
                        line = line[os.write(descriptor, line) :]
                    if size > self._max_bytes:
                        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                    return True
            return False
        finally:
            os.close(descriptor)
