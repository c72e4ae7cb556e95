"""The folder of a running job, which goes with the job; a driver that was killed leaves it to the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nutch2py-job-"
_LOCK = "driver"
"""A file that the driver holds locked: the kernel lets go of it however the driver ends."""


@contextmanager
def work_folder() -> Iterator[Path]:
    """Make the folder of a job among the files for temporary use, and delete those of drivers that are gone."""
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        unnamed = folder / f"{_LOCK}.new"
        with unnamed.open("wb") as held:
            with suppress(OSError):  # a file system without locks: nobody will sweep there
                fcntl.flock(held, fcntl.LOCK_EX)
                unnamed.rename(folder / _LOCK)  # only now do others look at it
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(where: Path) -> None:
    """Delete this user's folders of jobs whose driver was killed; they can hold the sorted output of a whole table."""
    for lock in where.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            if lock.parent.lstat().st_uid != os.getuid():
                continue
            tried = os.open(lock, os.O_WRONLY | os.O_NOFOLLOW)
        except OSError:  # not ours to read, or gone meanwhile
            continue
        try:
            fcntl.flock(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its driver lives
            continue
        else:
            shutil.rmtree(lock.parent, ignore_errors=True)
        finally:
            os.close(tried)
