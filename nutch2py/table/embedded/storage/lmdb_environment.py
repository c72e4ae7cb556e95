"""Opens the LMDB environments of a table, and locks its folder while it is created."""

from __future__ import annotations

import contextlib
import errno
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
_LOCK_FILE = "lock.mdb"
_LOCK_FILE_BYTES = 64 * MAX_READERS + 128
"""Size of LMDB's lock file: a slot of 64 bytes for each reader, and the header."""
_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOSYS})
_NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


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


def find_write_obstacle(path: Path) -> OSError | None:
    """Return why this process cannot write in the environment in ``path``, None if it can.

    A read-only disk and missing rights are told apart. Reading needs none of both: see :func:`open_environment`.
    """
    lock = path / _LOCK_FILE
    for each in (path / "data.mdb", lock if lock.exists() else path):
        if each.exists() and not os.access(each, os.W_OK):
            is_read_only = os.statvfs(each).f_flag & os.ST_RDONLY
            number = errno.EROFS if is_read_only else errno.EACCES
            return OSError(number, os.strerror(number), str(each))
    return None


def open_environment(path: Path, map_size: int, *, is_read_only: bool = False) -> lmdb.Environment:
    """Open an LMDB environment with synchronous commits, and free the slots of dead readers.

    With ``is_read_only`` it is opened without the lock file, which readers write, too. Then nothing keeps a writer from
    reusing the pages that are read; the caller must check for that.

    A truncated file is rejected: LMDB would map it, and the process would die of SIGBUS at its end. So it would at a
    page of the lock file for which a full disk has no space.
    """
    if (path.parent / READY_FILE).exists():
        data = path / "data.mdb"
        try:
            check_complete(data)
        except FileNotFoundError:
            raise DamagedFileError(f"{data} is missing") from None
        except DamagedFileError as error:
            raise DamagedFileError(f"{data}: {error}") from error
    if is_read_only:
        return lmdb.open(
            str(path), map_size=map_size, max_dbs=_MAX_DATABASES, readonly=True, lock=False, readahead=False,
            max_spare_txns=0,
        )  # fmt: skip
    _allocate_lock_file(path / _LOCK_FILE)
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


def _allocate_lock_file(path: Path) -> None:
    """Allocate the blocks of LMDB's lock file, which LMDB creates sparse and writes through a memory map.

    Raises OSError if the disk is full. Called before the environment is opened: closing a descriptor of the file
    releases the locks that this process holds on it. If the file cannot be opened, LMDB reports the reason.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno in _NO_ACCESS:
            return
        raise
    try:
        found = os.fstat(file)
        if found.st_size < _LOCK_FILE_BYTES or found.st_blocks * 512 < found.st_size:
            os.posix_fallocate(file, 0, max(_LOCK_FILE_BYTES, found.st_size))
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(file)
