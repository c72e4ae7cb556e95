"""The folder of a running job, which goes with the job; a driver that was killed leaves it to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nutch2py.support.atomic_files import temp_dir_unavailable_error, temp_disk_error
from nutch2py.support.temp_dirs import TempDir


@contextmanager
def create_job_dir() -> Iterator[Path]:
    """Make the folder of a job among the files for temporary use, and delete those of drivers that are gone."""
    try:
        scratch = TempDir("job")
    except OSError as error:
        raise temp_dir_unavailable_error(error) from error
    try:
        yield scratch.path
    except OSError as error:  # of files in the folder: tables, indexes and what is written for users name their own
        if (trouble := temp_disk_error(error)) is not None:
            raise trouble from error
        raise
    finally:
        scratch.remove()


def add_java_tmpdir(options: str, directory: str) -> str:
    """Add to the options of a JVM that it unpacks its files into ``directory``, to go with the job if the JVM is killed.

    Not where the folder's name has a blank: the scripts of Hadoop and Spark would cut the option there.
    """
    return options if " " in directory else f"{options} -Djava.io.tmpdir={directory}".strip()
