"""The folder of a running job, which goes with the job; a driver that was killed leaves it to the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nutch2py.disk import no_temporary_folder, temporary_trouble

_PREFIX = "nutch2py-job-"
_LOCK = "driver"
"""A file that the driver holds locked: the kernel lets go of it however the driver ends."""


@contextmanager
def work_folder() -> Iterator[Path]:
    """Make the folder of a job among the files for temporary use, and delete those of drivers that are gone."""
    try:
        sweep(Path(tempfile.gettempdir()))
        folder, owner = Path(tempfile.mkdtemp(prefix=_PREFIX)), os.getpid()
    except OSError as error:
        raise no_temporary_folder(error) from error
    try:
        unnamed = folder / f"{_LOCK}.new"
        with unnamed.open("wb") as held:
            with suppress(OSError):  # a file system without locks: nobody will sweep there
                fcntl.flock(held, fcntl.LOCK_EX)
                unnamed.rename(folder / _LOCK)  # only now do others look at it
            yield folder
    except OSError as error:  # of files in the folder: tables, indexes and what is written for users name their own
        if (trouble := temporary_trouble(error)) is not None:
            raise trouble from error
        raise
    finally:
        if os.getpid() == owner:  # a forked child that ends by an exception leaves this block, too
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
            _delete(lock.parent, lock)
        finally:
            os.close(tried)


def _delete(folder: Path, lock: Path) -> None:
    """Delete a folder, its lock last: where a task that is just ending still writes, the next sweep finds it again."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path != lock:
                path.unlink()
        if list(folder.iterdir()) == [lock]:
            shutil.rmtree(folder, ignore_errors=True)


def jvm_options(given: str, folder: str) -> str:
    """Add to the options of a JVM that it unpacks its files into ``folder``, to go with the job if the JVM is killed.

    Not where the folder's name has a blank: the scripts of Hadoop and Spark would cut the option there.
    """
    return given if " " in folder else f"{given} -Djava.io.tmpdir={folder}".strip()
