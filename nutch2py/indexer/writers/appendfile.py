"""Files that several processes append whole records to, and that a kill never leaves with half a record."""

from __future__ import annotations

import os
from pathlib import Path

from nutch2py.backends.index_lock import exclusive
from nutch2py.disk import disk_trouble
from nutch2py.errors import IndexingError


class AppendFile:
    """One output file of an index writer.

    Beside ``name`` lie ``.name.lock`` and ``.name.length``, the length up to which it is whole: bytes after it are of a
    process that was killed while it wrote, and the next one to append cuts them off. ``timeout``: seconds to wait for
    the other writers.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path, self.timeout = path, timeout
        self._length_file = path.with_name(f".{path.name}.length")
        self._lock_file = path.with_name(f".{path.name}.lock")

    def append(self, data: bytes, header: bytes = b"") -> None:
        """Append ``data``, after ``header`` when the file is new. IndexingError when it cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with (
                exclusive(self._lock_file, self.timeout, f"the file {self.path}"),
                self.path.open("ab") as out,
            ):
                size = out.seek(0, os.SEEK_END)
                whole = min(self._whole(size), size)
                if whole < size:
                    out.truncate(whole)
                    out.seek(whole)
                out.write(data if whole else header + data)
                out.flush()
                os.fsync(out.fileno())
                self._set_whole(out.tell())
        except OSError as error:
            trouble = disk_trouble(error, self.path)
            raise IndexingError(
                trouble or f"cannot write {self.path}: {error.strerror}: check the folder and the disk"
            ) from error

    def clear(self) -> None:
        """Empty the file; what an earlier run wrote is gone."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(self._lock_file, self.timeout, f"the file {self.path}"):
                self._set_whole(0)
                self.path.write_bytes(b"")
        except OSError as error:
            trouble = disk_trouble(error, self.path)
            raise IndexingError(trouble or f"cannot empty {self.path}: {error.strerror}: check the folder") from error

    def _whole(self, size: int) -> int:
        try:
            return int(self._length_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            self._set_whole(size)  # made by something else: kept as it is
            return size

    def _set_whole(self, length: int) -> None:
        temporary = self._length_file.with_name(self._length_file.name + ".new")
        temporary.write_text(str(length), encoding="ascii")
        temporary.replace(self._length_file)
