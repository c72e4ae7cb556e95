"""Advisory file locks between processes and threads (``flock``)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, PermissionError)


@contextmanager
def file_lock(path: Path, flags: int = 0) -> Iterator[int]:
    """Hold an exclusive lock on a file, which is created if it does not exist.

    Args:
        path: the lock file; only its owner can read it.
        flags: more flags of ``os.open``, such as ``os.O_APPEND``.

    Yields:
        The descriptor. The lock stays held as long as a child process keeps it open.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def try_file_lock(path: Path) -> int | None:
    """Return the descriptor of an exclusive lock, None when another process holds it. The caller closes it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_file_locked(path: Path) -> bool:
    """Return whether a process holds an exclusive lock; False for a missing file.

    Raises:
        OSError: the state is unknown, for instance because no descriptor is free.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except _MISSING_FILE_ERRORS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
