"""AppendFile: a file to which several processes append whole records, even when they are killed."""

from __future__ import annotations

import os
from pathlib import Path

from nutch2py.backends.index_lock import exclusive_lock
from nutch2py.errors import IndexingError
from nutch2py.support.disk_errors import disk_error_message


class AppendFile:
    """One output file of an index writer.

    ``.name.lock`` is its lock file. ``.name.length`` holds its valid length: later bytes are from a process killed
    during a write, and the next append truncates them. ``lock_timeout``: seconds to wait for other writers.
    """

    def __init__(self, path: Path, lock_timeout: float) -> None:
        self.path, self.lock_timeout = path, lock_timeout
        self._length_file = path.with_name(f".{path.name}.length")
        self._lock_file = path.with_name(f".{path.name}.lock")

    def append(self, data: bytes, header: bytes = b"") -> None:
        """Append ``data``, after ``header`` when the file is new; raise IndexingError when it cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with (
                exclusive_lock(self._lock_file, self.lock_timeout, f"the file {self.path}"),
                self.path.open("ab") as out,
            ):
                size = out.seek(0, os.SEEK_END)
                whole = min(self._committed_length(size), size)
                if whole < size:
                    out.truncate(whole)
                    out.seek(whole)
                out.write(data if whole else header + data)
                out.flush()
                os.fsync(out.fileno())
                self._write_committed_length(out.tell())
        except OSError as error:
            problem = disk_error_message(error, self.path)
            raise IndexingError(
                problem or f"cannot write {self.path}: {error.strerror}: check the folder and the disk"
            ) from error

    def clear(self) -> None:
        """Empty the file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(self._lock_file, self.lock_timeout, f"the file {self.path}"):
                self._write_committed_length(0)
                self.path.write_bytes(b"")
        except OSError as error:
            problem = disk_error_message(error, self.path)
            raise IndexingError(problem or f"cannot empty {self.path}: {error.strerror}: check the folder") from error

    def _committed_length(self, size: int) -> int:
        try:
            return int(self._length_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            self._write_committed_length(size)  # created by another program: keep its content
            return size

    def _write_committed_length(self, length: int) -> None:
        temporary = self._length_file.with_name(self._length_file.name + ".new")
        temporary.write_text(str(length), encoding="ascii")
        temporary.replace(self._length_file)
