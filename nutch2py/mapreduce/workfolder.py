"""The folder of a running job, which goes with the job; a driver that was killed leaves it to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nutch2py.disk import no_temporary_folder, temporary_trouble
from nutch2py.scratch import Scratch


@contextmanager
def work_folder() -> Iterator[Path]:
    """Make the folder of a job among the files for temporary use, and delete those of drivers that are gone."""
    try:
        scratch = Scratch("job")
    except OSError as error:
        raise no_temporary_folder(error) from error
    try:
        yield scratch.path
    except OSError as error:  # of files in the folder: tables, indexes and what is written for users name their own
        if (trouble := temporary_trouble(error)) is not None:
            raise trouble from error
        raise
    finally:
        scratch.remove()


def jvm_options(given: str, folder: str) -> str:
    """Add to the options of a JVM that it unpacks its files into ``folder``, to go with the job if the JVM is killed.

    Not where the folder's name has a blank: the scripts of Hadoop and Spark would cut the option there.
    """
    return given if " " in folder else f"{given} -Djava.io.tmpdir={folder}".strip()
