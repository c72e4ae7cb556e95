"""Audit log: one line of JSON for each change and each rejected request."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import msgspec

from nutch2py.rest.state_dir import ensure_private_dir
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.file_locks import file_lock
from nutch2py.support.reporting import warn

MAX_WAITING_LINES = 10_000
"""Lines that wait for a disk on which they can be written; of more, the oldest are dropped."""


class AuditLog:
    """The file ``<rest.folder>/audit.log``. Above ``max_bytes`` it is renamed to ``audit.log.1``.

    Several servers may share it: a writer locks the file and checks that it still has its name. While it cannot be
    written, because its disk is full or fails, lines wait for the next one or for :meth:`close`.

    Attributes:
        dropped: Number of lines that were never written.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._waiting = deque[bytes]()
        self._has_warned = False
        self.dropped = self._reported = 0

    def record(self, caller: str, address: str, method: str, path: str, status: int, detail: str = "") -> None:
        """Write a line; a failure is only logged, once until a line is written, so that the server continues."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "caller": caller, "address": address,
                "method": method, "path": path[:500], "status": status, "detail": detail[:500]}  # fmt: skip
        with self._lock:
            self._waiting.append(msgspec.json.encode(line) + b"\n")
            if len(self._waiting) > MAX_WAITING_LINES:
                self._waiting.popleft()
                self.dropped += 1
            self._write_waiting()

    def close(self) -> None:
        """Write the lines that wait; log how many cannot be written even now."""
        with self._lock:
            if self._waiting:
                self._write_waiting()
            self.dropped += len(self._waiting)
            self._waiting.clear()
            if lost := self._count_unreported():
                warn(f"{self.path}: {lost:,} lines of the audit log were lost")

    def _count_unreported(self) -> int:
        number, self._reported = self.dropped - self._reported, self.dropped
        return number

    def _write_waiting(self) -> None:
        try:
            ensure_private_dir(self.path.parent)
            while self._waiting:
                if self._try_append(self._waiting[0]):  # else another server has rotated the file
                    self._waiting.popleft()
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                reason = disk_error_message(error, self.path) or f"cannot write {self.path}: {error.strerror}"
                warn(f"audit log: {reason}; up to {MAX_WAITING_LINES:,} lines wait until it is possible")
            return
        if self._has_warned:
            self._has_warned = False
            warn(f"{self.path} is written again; {self._count_unreported():,} lines were dropped")

    def _try_append(self, line: bytes) -> bool:
        with file_lock(self.path, os.O_APPEND) as descriptor:
            file = os.fstat(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(file, self.path.stat()):
                    if file.st_size and os.pread(descriptor, 1, file.st_size - 1) != b"\n":
                        line = b"\n" + line  # the last line is incomplete: a server was killed
                    _append(descriptor, line, file.st_size)
                    if file.st_size + len(line) > self._max_bytes:
                        with suppress(OSError):  # the line is written; the next one tries again
                            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                    return True
            return False


def _append(descriptor: int, line: bytes, size: int) -> None:
    """Write all of a line, or nothing of it when the disk fails: it is written again later."""
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
