"""File lock between processes, with a timeout."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nutch2py.errors import IndexingError, LockedError
from nutch2py.support.disk_errors import disk_error_message

_POLL_SECONDS = 0.02


@contextmanager
def exclusive_lock(path: Path, timeout: float, resource: str) -> Iterator[None]:
    """Hold the lock file ``path``, created when missing, within the block.

    The operating system releases it when the holder dies, even by kill -9.

    Args:
        path: The lock file.
        timeout: Seconds to wait.
        resource: Name of the index in messages.

    Raises:
        LockedError: The lock is still held after ``timeout``.
        IndexingError: The file cannot be created.

    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        problem = disk_error_message(error, path) or f"{path}: {error.strerror}: check the folder's permissions"
        raise IndexingError(f"cannot lock {resource}: {problem}") from error
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LockedError(
                        f"{resource} has been locked by another process for {timeout:g} s: wait for it to end, "
                        "or raise index.lock.timeout"
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)
