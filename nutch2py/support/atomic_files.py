"""Atomic writes of output files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nutch2py.errors import StoreError
from nutch2py.support.disk_errors import disk_error_message


@contextmanager
def replace_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of ``path`` when the block ends; an exception of the block leaves ``path``.

    Args:
        path: the file; a symbolic link is replaced itself.
        mode: permissions of a new file, before the umask.

    Raises:
        OSError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.part-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:  # noqa: PTH123
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces ``path`` atomically when the block succeeds.

    A symbolic link stays, and its target is replaced. Raises :class:`StoreError` when the file cannot be written, and
    for devices and pipes, which a file must not replace. If the block raises, the old file stays.
    """
    if os.path.isdir(path):  # noqa: PTH112  # never raises
        raise StoreError(f"cannot write {path}: it is a folder: name a file that you can write")
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        raise StoreError(f"cannot write {path}: it is a device or a pipe: name a file that you can write")
    path = Path(os.path.realpath(path))
    try:
        with replace_file(path) as out:
            yield out
    except OSError as error:
        trouble = disk_error_message(error, path, "name another file")
        raise StoreError(
            trouble or f"cannot write {path}: {error.strerror or error}: name a file that you can write"
        ) from error
