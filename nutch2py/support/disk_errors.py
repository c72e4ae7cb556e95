"""Error messages for full, failing and read-only disks, with remedies."""

from __future__ import annotations

import errno
import os
from pathlib import Path

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
    """Return a message for a disk error, with location and remedy; None for any other error.

    ``location`` is used if the error names no file; ``alternative``: how to choose another location.
    """
    for cause in iter_causes(error):
        if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
            what, repair = _DISK_ERRORS[cause.errno]
            other = f", or {alternative}" if alternative else ""
            return f"{what} for {cause.filename or location}: {repair}{other}; then run it again"
    return None


def raise_disk_error(error: BaseException, location: str | Path, alternative: str = "") -> None:
    """Raise StoreError for a disk error, with the message of :func:`disk_error_message`; return for any other error."""
    if (message := disk_error_message(error, location, alternative)) is not None:
        raise StoreError(message) from error


def temp_disk_error(error: BaseException) -> NutchError | None:
    """Return the error for a failing disk of temporary files; None for any other error."""
    trouble = disk_error_message(
        error, f"files for temporary use in {_temp_dir_label()}", "name another folder in TMPDIR"
    )
    return StoreError(trouble) if trouble else None


def temp_dir_unavailable_error(error: OSError) -> StoreError:
    """Return the error for a temporary directory in which no file can be created."""
    found = temp_disk_error(error)
    if isinstance(found, StoreError):
        return found
    return StoreError(
        f"no file for temporary use can be made ({error.strerror or error}): free some space, or name a folder in "
        "TMPDIR that can be written; then run it again"
    )


def probe_disk(directory: Path) -> NutchError | None:
    """Return the error of a folder's disk if a few bytes cannot be written to it.

    Finds the cause after a task ended without a message: messages of tasks go to a disk, too.
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
        import tempfile  # costs start-up

        return tempfile.gettempdir()
    except OSError:
        return "TMPDIR"
