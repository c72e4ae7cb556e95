"""Temporary directories that are deleted after use, also by a later process if their process was killed.

A process holds a lock on its directory; the kernel releases it however the process ends. So an unlocked directory is
stale, whatever it contains, and every stale directory is found.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nutch2py-"
_KINDS = ("job", "browser", "input", "lines", "package", "index")


class TempDir:
    """A temporary directory of a kind; :meth:`remove` deletes it.

    Creating one also deletes this user's stale directories. Raises :class:`OSError` when it cannot be created.
    """

    def __init__(self, kind: str) -> None:
        if kind not in _KINDS:
            raise ValueError(f"unknown kind of temporary directory: {kind}")
        remove_stale_dirs(Path(tempfile.gettempdir()))
        self._owner_pid = os.getpid()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-"))
            held = lock_dir(self.path)
            if held is not None:
                self._lock_descriptor = held
                return

    def remove(self) -> None:
        """Delete the directory; has no effect in a forked child."""
        if os.getpid() == self._owner_pid:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock_descriptor)


@contextmanager
def temp_dir(kind: str) -> Iterator[Path]:
    """Yield a temporary directory for the duration of the block; see :class:`TempDir`."""
    scratch = TempDir(kind)
    try:
        yield scratch.path
    finally:
        scratch.remove()


def lock_dir(path: Path) -> int | None:
    """Return a descriptor that locks a new directory; None if another process deleted it before it was locked."""
    with suppress(FileNotFoundError):
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # a file system without directory locks: no process deletes directories there
                fcntl.flock(held, fcntl.LOCK_EX)
            path.lstat()
        except BaseException:
            os.close(held)
            raise
        return held
    return None


def remove_stale_dirs(where: Path) -> None:
    """Delete this user's directories of killed processes; they can hold the sorted output of a whole table.

    If an exiting task still writes to one, the next call deletes the rest. Root deletes those of all users: its
    browsers run as another user.
    """
    ours = tuple(f"{_PREFIX}{kind}-" for kind in _KINDS)
    for path in [path for path in where.iterdir() if path.name.startswith(ours)]:
        with suppress(OSError):  # not readable, deleted meanwhile, or its process is alive
            tried = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.geteuid() in (0, os.fstat(tried).st_uid):
                    fcntl.flock(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(tried)
