"""Folders for temporary use: each goes with what it was made for; one whose process was killed goes with the next one.

Whoever works in a folder holds the folder itself locked: the kernel lets go of it however the process ends. So one that
nobody holds is left over, whatever is in it, and at no moment is there one that nobody would ever delete.
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
    """A folder of a kind among the files for temporary use; :meth:`remove` deletes it.

    Made with it, the folders of this user that nobody holds are deleted. Raises :class:`OSError` when there is no place
    for one.
    """

    def __init__(self, kind: str) -> None:
        assert kind in _KINDS
        remove_stale_dirs(Path(tempfile.gettempdir()))
        self._owner_pid = os.getpid()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-"))
            held = _lock_dir(self.path)
            if held is not None:
                self._lock_descriptor = held
                return

    def remove(self) -> None:
        """Delete the folder; a forked child of its process leaves it."""
        if os.getpid() == self._owner_pid:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock_descriptor)


@contextmanager
def temp_dir(kind: str) -> Iterator[Path]:
    """Give a folder for as long as the block takes; see :class:`TempDir`."""
    scratch = TempDir(kind)
    try:
        yield scratch.path
    finally:
        scratch.remove()


def _lock_dir(path: Path) -> int | None:
    """Return a descriptor that holds a new folder; None when somebody swept it, which was nobody's until then."""
    with suppress(FileNotFoundError):
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # a file system without locks of folders: nobody will sweep there
                fcntl.flock(held, fcntl.LOCK_EX)
            path.lstat()
        except BaseException:
            os.close(held)
            raise
        return held
    return None


def remove_stale_dirs(where: Path) -> None:
    """Delete this user's folders of processes that were killed; they can hold the sorted output of a whole table.

    Where a task that is just ending still writes, the next sweep finds the rest. Root sweeps those of all users: its
    browsers run as another one.
    """
    ours = tuple(f"{_PREFIX}{kind}-" for kind in _KINDS)
    for path in [path for path in where.iterdir() if path.name.startswith(ours)]:
        with suppress(OSError):  # not ours to read, gone meanwhile, or its process lives
            tried = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.geteuid() in (0, os.fstat(tried).st_uid):
                    fcntl.flock(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(tried)
