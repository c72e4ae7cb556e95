"""A lock between processes that is waited for, and only so long."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nutch2py.errors import IndexingError, LockedError
from nutch2py.support.atomic_files import disk_error_message

_POLL_SECONDS = 0.02


@contextmanager
def exclusive_lock(path: Path, timeout: float, resource: str) -> Iterator[None]:
    """Hold the lock file ``path`` (created when missing), waiting at most ``timeout`` seconds for it.

    The operating system frees it when the holder dies, by kill -9 too. ``resource`` names the index in the error:
    :class:`LockedError` when the time is over, :class:`IndexingError` when the file cannot be made.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        trouble = disk_error_message(error, path) or f"{path}: {error.strerror}: check the folder's permissions"
        raise IndexingError(f"cannot lock {resource}: {trouble}") from error
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
