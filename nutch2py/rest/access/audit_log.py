"""Audit log: one line of JSON for each change and each rejected request."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from nutch2py.rest.state_dir import ensure_private_dir
from nutch2py.support.file_locks import file_lock
from nutch2py.support.reporting import warn


class AuditLog:
    """The file ``<rest.folder>/audit.log``. Above ``max_bytes`` it is renamed to ``audit.log.1``.

    Several servers may share it: a writer locks the file and checks that it still has its name.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()

    def record(self, caller: str, address: str, method: str, path: str, status: int, detail: str = "") -> None:
        """Write a line; a failure is only logged, so that the server continues."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "caller": caller, "address": address,
                "method": method, "path": path[:500], "status": status, "detail": detail[:500]}  # fmt: skip
        try:
            with self._lock:
                ensure_private_dir(self.path.parent)
                while not self._try_append(msgspec.json.encode(line) + b"\n"):
                    continue  # another server has rotated the file
        except OSError as error:
            warn(f"cannot write {self.path}: {error.strerror}")

    def _try_append(self, line: bytes) -> bool:
        with file_lock(self.path, os.O_APPEND) as descriptor:
            file = os.fstat(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(file, self.path.stat()):
                    if file.st_size and os.pread(descriptor, 1, file.st_size - 1) != b"\n":
                        line = b"\n" + line  # the last line is incomplete: a server was killed, or the disk was full
                    size = file.st_size + len(line)
                    while line:
                        line = line[os.write(descriptor, line) :]
                    if size > self._max_bytes:
                        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                    return True
            return False
