"""Files that commands make, and what a disk that takes nothing more means to a user: which it is, what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nutch2py.errors import NutchError, StoreError, iter_causes

_DISK_ERRORS = {
    errno.ENOSPC: ("no space is left", "free some space"),
    errno.EDQUOT: ("this user's quota is used up", "free some of this user's space, or raise the quota"),
    errno.EFBIG: ("no file may grow any further", "raise this user's limit (ulimit -f)"),
    errno.EROFS: ("the file system is read-only", "see why (dmesg), and mount it for writing"),
    errno.EIO: ("the disk fails", "see how (dmesg), and mend or replace it"),
}
_PROBE_BYTES = 1 << 16  # bytes


def disk_error_message(error: BaseException, location: str | Path, alternative: str = "") -> str | None:
    """Return what an error says of a disk, with the place and what to do; None when it says nothing of one.

    ``location`` is the place, if the error names none; ``alternative``: how another place is named.
    """
    for cause in iter_causes(error):
        if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
            what, repair = _DISK_ERRORS[cause.errno]
            other = f", or {alternative}" if alternative else ""
            return f"{what} for {cause.filename or location}: {repair}{other}; then run it again"
    return None


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to that takes its name, and the place of one of that name, when the block is done.

    A link stays, and what it leads to is replaced. Raises :class:`StoreError` when it cannot be written, and for a
    device or a pipe, whose place no file may take; an exception of the block leaves what was there before.
    """
    if os.path.isdir(path):  # noqa: PTH112  # never raises
        raise StoreError(f"cannot write {path}: it is a folder: name a file that you can write")
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        raise StoreError(f"cannot write {path}: it is a device or a pipe: name a file that you can write")
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    except OSError as error:
        trouble = disk_error_message(error, path, "name another file")
        raise StoreError(
            trouble or f"cannot write {path}: {error.strerror or error}: name a file that you can write"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def temp_disk_error(error: BaseException) -> NutchError | None:
    """Return what an error says of the disk with the files for temporary use; None when it says nothing of a disk."""
    trouble = disk_error_message(
        error, f"files for temporary use in {_temp_dir_label()}", "name another folder in TMPDIR"
    )
    return StoreError(trouble) if trouble else None


def temp_dir_unavailable_error(error: OSError) -> StoreError:
    """Return what it means that no file for temporary use can be made at all."""
    found = temp_disk_error(error)
    if isinstance(found, StoreError):
        return found
    return StoreError(
        f"no file for temporary use can be made ({error.strerror or error}): free some space, or name a folder in "
        "TMPDIR that can be written; then run it again"
    )


def probe_disk(directory: Path) -> NutchError | None:
    """Return what is wrong with the disk of a folder when a few bytes cannot be written there.

    That is for the end of tasks that could not say where, or anything: what they say goes to a disk, too.
    """
    tried = directory / f".tried-{os.getpid()}"
    try:
        try:
            tried.write_bytes(bytes(_PROBE_BYTES))
        finally:
            tried.unlink(missing_ok=True)
    except OSError as error:
        trouble = disk_error_message(error, directory)
        return StoreError(trouble) if trouble else None
    return None


def _temp_dir_label() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "TMPDIR"
