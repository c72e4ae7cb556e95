"""The machine: Python, room on disks, memory, files that may be open, and whether names can be asked for."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.disk import no_temporary_folder, try_disk
from nutch2py.doctor.finding import Finding, bad, doubtful, good
from nutch2py.fetcher.names import Names
from nutch2py.pictures.words import size
from nutch2py.table.opening import store_location
from nutch2py.version import __version__

_LEAST_DISK, _LEAST_MEMORY = 1 << 30, 1 << 30
_NO_DISK = 64 << 20
_FILES_BESIDE_REQUESTS = 200
_ROOT_NAME = "www.iana.org"  # whose operators answer for names as such


def python(_: Configuration) -> Iterator[Finding]:
    """Which versions run."""
    yield good("version", f"nutch2py {__version__}, Python {platform.python_version()}, {platform.platform()}")


def disks(conf: Configuration) -> Iterator[Finding]:
    """Room where tables and files for temporary use are."""
    scheme, _, folder = store_location(conf).partition(":")
    places: dict[str, Path] = {}
    try:
        places["files for temporary use"] = Path(tempfile.gettempdir())
    except OSError as error:  # it has tried to write in all that could be one
        yield bad("disk", str(no_temporary_folder(error)))
    if scheme == "embedded":
        places["the table"] = _above(Path(folder))
    if index := conf.get_trimmed("index.embedded.path"):
        places["the index"] = _above(conf.absolute(index))
    for what, place in places.items():
        free = shutil.disk_usage(place).free
        told = f"{size(free)} are free at {place}, for {what}"
        if not os.access(place, os.W_OK):
            yield bad("disk", f"{place}, for {what}, may not be written by this user: change its permissions")
        elif free < _NO_DISK:
            yield bad("disk", f"{told}, and jobs fail for want of more: free some space, then run them again")
        elif trouble := try_disk(place):
            yield bad("disk", str(trouble))
        elif free < _LEAST_DISK:
            yield doubtful("disk", f"{told}: free some space")
        else:
            yield good("disk", told)


def _above(folder: Path) -> Path:
    """Return the nearest folder that is there."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def memory(conf: Configuration) -> Iterator[Finding]:
    """Memory that is free, beside what a parser may take."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return  # no Linux
    free = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)
    if free is None:
        return
    limit = conf.get_int("parser.child.memory.mb", 1024)
    told = f"{size(free)} are free; a page may take {limit} MB to parse (parser.child.memory.mb)"
    yield good("memory", told) if free > _LEAST_MEMORY else doubtful("memory", f"{told}: end other programs")


def files(conf: Configuration) -> Iterator[Finding]:
    """How many files and connections a process may have open, beside what a fetch asks for."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    threads = conf.get_int("fetcher.threads.fetch", 10)
    enough = threads + _FILES_BESIDE_REQUESTS
    if most != resource.RLIM_INFINITY and most < enough:
        told = f"a process may open {most} files, and fetcher.threads.fetch is {threads}"
        yield bad("open files", f"{told}: raise the limit (ulimit -n {enough}), or lower the threads")
    else:
        yield good("open files", f"{'any number' if most == resource.RLIM_INFINITY else most} for a process")


def names(conf: Configuration) -> Iterator[Finding]:
    """Whether names of hosts are answered."""
    if conf.get_trimmed("http.proxy.host"):
        yield good("DNS", "asked by the proxy (http.proxy.host)")
        return
    asked = Names.from_conf(conf)
    servers = conf.get_trimmed("http.dns.servers") or "those of the system"
    if not asked.own:
        yield good("DNS", "asked by the system (http.dns.resolver)")
        return
    try:
        found = asyncio.run(_lookup(asked))
    except OSError as error:
        yield doubtful(
            "DNS", f"{_ROOT_NAME} is not found by {servers} ({error.strerror}): check the network, and http.dns.servers"
        )
    else:
        yield good("DNS", f"{_ROOT_NAME} is at {found[0]}, say {servers}")


async def _lookup(asked: Names) -> tuple[str, ...]:
    try:
        return await asked.lookup(_ROOT_NAME)
    finally:
        await asked.close()
