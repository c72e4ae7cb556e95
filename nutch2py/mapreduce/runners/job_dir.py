"""The directory of a running job: deleted with the job; after a kill, the next job deletes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nutch2py.support.disk_errors import temp_dir_unavailable_error, temp_disk_error
from nutch2py.support.temp_dirs import TempDir


@contextmanager
def create_job_dir() -> Iterator[Path]:
    """Create the directory of a job in the temporary directory, and delete stale ones of killed drivers."""
    try:
        scratch = TempDir("job")
    except OSError as error:
        raise temp_dir_unavailable_error(error) from error
    try:
        yield scratch.path
    except (
        OSError
    ) as error:  # for files in the job directory; errors of tables, indexes and output files name their own paths
        if (trouble := temp_disk_error(error)) is not None:
            raise trouble from error
        raise
    finally:
        scratch.remove()


def add_java_tmpdir(options: str, directory: str) -> str:
    """Add the option for a JVM's temporary directory, so that its files are deleted with the job after a kill.

    Not if the path contains a space: the scripts of Hadoop and Spark would split the option there.
    """
    return options if " " in directory else f"{options} -Djava.io.tmpdir={directory}".strip()
