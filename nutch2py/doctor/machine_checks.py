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

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, error_result, ok_result, warning_result
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.support.atomic_files import probe_disk, temp_dir_unavailable_error
from nutch2py.support.formatting import format_bytes
from nutch2py.table.store_factory import store_location
from nutch2py.version import __version__

_LOW_DISK_BYTES, _LOW_MEMORY_BYTES = 1 << 30, 1 << 30
_FULL_DISK_BYTES = 64 << 20
_RESERVED_FILES = 200
_TEST_HOST = "www.iana.org"  # whose operators answer for names as such


def check_version(_: Configuration) -> Iterator[CheckResult]:
    """Which versions run."""
    yield ok_result("version", f"nutch2py {__version__}, Python {platform.python_version()}, {platform.platform()}")


def check_disks(conf: Configuration) -> Iterator[CheckResult]:
    """Room where tables and files for temporary use are."""
    scheme, _, folder = store_location(conf).partition(":")
    places: dict[str, Path] = {}
    try:
        places["files for temporary use"] = Path(tempfile.gettempdir())
    except OSError as error:  # it has tried to write in all that could be one
        yield error_result("disk", str(temp_dir_unavailable_error(error)))
    if scheme == "embedded":
        places["the table"] = _nearest_existing_dir(Path(folder))
    if index := conf.get_trimmed("index.embedded.path"):
        places["the index"] = _nearest_existing_dir(conf.absolute(index))
    for what, place in places.items():
        free = shutil.disk_usage(place).free
        told = f"{format_bytes(free)} are free at {place}, for {what}"
        if not os.access(place, os.W_OK):
            yield error_result("disk", f"{place}, for {what}, may not be written by this user: change its permissions")
        elif free < _FULL_DISK_BYTES:
            yield error_result("disk", f"{told}, and jobs fail for want of more: free some space, then run them again")
        elif trouble := probe_disk(place):
            yield error_result("disk", str(trouble))
        elif free < _LOW_DISK_BYTES:
            yield warning_result("disk", f"{told}: free some space")
        else:
            yield ok_result("disk", told)


def _nearest_existing_dir(folder: Path) -> Path:
    """Return the nearest folder that is there."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def check_memory(conf: Configuration) -> Iterator[CheckResult]:
    """Memory that is free, beside what a parser may take."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return  # no Linux
    free = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)
    if free is None:
        return
    limit = conf.get_int("parser.child.memory.mb", 1024)
    told = f"{format_bytes(free)} are free; a page may take {limit} MB to parse (parser.child.memory.mb)"
    yield (
        ok_result("memory", told)
        if free > _LOW_MEMORY_BYTES
        else warning_result("memory", f"{told}: end other programs")
    )


def check_open_files(conf: Configuration) -> Iterator[CheckResult]:
    """How many files and connections a process may have open, beside what a fetch asks for."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    threads = conf.get_int("fetcher.threads.fetch", 10)
    enough = threads + _RESERVED_FILES
    if most != resource.RLIM_INFINITY and most < enough:
        told = f"a process may open {most} files, and fetcher.threads.fetch is {threads}"
        yield error_result("open files", f"{told}: raise the limit (ulimit -n {enough}), or lower the threads")
    else:
        yield ok_result("open files", f"{'any number' if most == resource.RLIM_INFINITY else most} for a process")


def check_dns(conf: Configuration) -> Iterator[CheckResult]:
    """Whether names of hosts are answered."""
    if conf.get_trimmed("http.proxy.host"):
        yield ok_result("DNS", "asked by the proxy (http.proxy.host)")
        return
    asked = DnsCache.from_conf(conf)
    servers = conf.get_trimmed("http.dns.servers") or "those of the system"
    if not asked.uses_cares:
        yield ok_result("DNS", "asked by the system (http.dns.resolver)")
        return
    try:
        found = asyncio.run(_lookup(asked))
    except OSError as error:
        yield warning_result(
            "DNS", f"{_TEST_HOST} is not found by {servers} ({error.strerror}): check the network, and http.dns.servers"
        )
    else:
        yield ok_result("DNS", f"{_TEST_HOST} is at {found[0]}, say {servers}")


async def _lookup(asked: DnsCache) -> tuple[str, ...]:
    try:
        return await asked.resolve(_TEST_HOST)
    finally:
        await asked.close()
