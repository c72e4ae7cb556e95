"""Opens the LMDB environments of a table, and locks its folder while it is created."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import lmdb

from nutch2py.table.embedded.storage.lmdb_pages import DamagedFileError, check_complete

READY_FILE = "ready"
"""A file in a table's folder that marks the table as completely created."""
DEFAULT_MAP_SIZE = 1 << 40
_MAX_DATABASES, MAX_READERS = 512, 512


@contextlib.contextmanager
def creation_lock(path: Path) -> Iterator[None]:
    """Hold the lock for the creation of a table; first delete incomplete files that a full disk has left.

    LMDB writes the first two pages of a file at once. A shorter file is empty, and LMDB could never open it.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not (path / READY_FILE).exists():
            for data in path.glob("*/data.mdb"):
                if data.stat().st_size < 2 * mmap.PAGESIZE:
                    data.unlink()
        yield
    finally:
        os.close(folder)


def open_environment(path: Path, map_size: int) -> lmdb.Environment:
    """Open an LMDB environment with synchronous commits, and free the slots of dead readers.

    A truncated file is rejected: LMDB would map it, and the process would die of SIGBUS at its end.
    """
    if (path.parent / READY_FILE).exists():
        data = path / "data.mdb"
        try:
            check_complete(data)
        except FileNotFoundError:
            raise DamagedFileError(f"{data} is missing") from None
        except DamagedFileError as error:
            raise DamagedFileError(f"{data}: {error}") from error
    environment = lmdb.open(
        str(path),
        map_size=map_size,
        max_dbs=_MAX_DATABASES,
        max_readers=MAX_READERS,
        readahead=False,
        max_spare_txns=0,  # a forked child would free a transaction that is kept for reuse
    )
    environment.reader_check()
    return environment
