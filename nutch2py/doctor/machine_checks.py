"""Checks of the machine: versions, disk space, memory and open files."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, error_result, ok_result, warning_result
from nutch2py.support.disk_errors import probe_disk, temp_dir_unavailable_error
from nutch2py.support.formatting import format_bytes
from nutch2py.table.store_factory import store_location
from nutch2py.version import __version__

LOW_DISK_BYTES = 1 << 30
"""Bytes: less free space on a disk is a warning."""
_LOW_MEMORY_BYTES = 1 << 30
_FULL_DISK_BYTES = 64 << 20
_RESERVED_FILES = 200


def check_version(_: Configuration) -> Iterator[CheckResult]:
    """Report the versions of nutch2py, Python and the platform."""
    yield ok_result("version", f"nutch2py {__version__}, Python {platform.python_version()}, {platform.platform()}")


def check_disks(conf: Configuration) -> Iterator[CheckResult]:
    """Check that the disks of tables, indexes and temporary files are writable and have space."""
    scheme, _, folder = store_location(conf).partition(":")
    locations: dict[str, Path] = {}
    try:
        locations["temporary files"] = Path(tempfile.gettempdir())
    except OSError as error:  # no candidate is writable
        yield error_result("disk", str(temp_dir_unavailable_error(error)))
    if scheme == "embedded":
        locations["the table"] = _nearest_existing_dir(Path(folder))
    if index := conf.get_trimmed("index.embedded.path"):
        locations["the index"] = _nearest_existing_dir(conf.absolute(index))
    for use, path in locations.items():
        free = shutil.disk_usage(path).free
        message = f"{format_bytes(free)} free at {path} for {use}"
        if not os.access(path, os.W_OK):
            yield error_result("disk", f"{path} for {use} is not writable by this user: change its permissions")
        elif free < _FULL_DISK_BYTES:
            yield error_result("disk", f"{message}: too little for jobs. Free some space, then run them again")
        elif disk_error := probe_disk(path):
            yield error_result("disk", str(disk_error))
        elif free < LOW_DISK_BYTES:
            yield warning_result("disk", f"{message}: free some space")
        else:
            yield ok_result("disk", message)


def _nearest_existing_dir(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def check_memory(conf: Configuration) -> Iterator[CheckResult]:
    """Check the available memory against the limit of a parser."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return  # not Linux
    free = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)
    if free is None:
        return
    limit = conf.get_int("parser.child.memory.mb", 1024)
    message = f"{format_bytes(free)} free; parsing a page may use {limit} MB (parser.child.memory.mb)"
    yield (
        ok_result("memory", message)
        if free > _LOW_MEMORY_BYTES
        else warning_result("memory", f"{message}: stop other programs")
    )


def check_open_files(conf: Configuration) -> Iterator[CheckResult]:
    """Check the limit of open files and connections against the number of fetcher threads."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    threads = conf.get_int("fetcher.threads.fetch", 10)
    required = threads + _RESERVED_FILES
    if limit != resource.RLIM_INFINITY and limit < required:
        message = f"a process may open {limit} files, but fetcher.threads.fetch is {threads}"
        yield error_result("open files", f"{message}: raise the limit (ulimit -n {required}), or lower the threads")
    else:
        yield ok_result("open files", f"limit: {'none' if limit == resource.RLIM_INFINITY else limit} per process")
