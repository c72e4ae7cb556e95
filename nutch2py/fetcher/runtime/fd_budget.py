"""Budget of file descriptors: running out of them would make every server look unreachable."""

from __future__ import annotations

import errno
import os
import resource
import socket
from contextlib import suppress
from typing import NamedTuple

from nutch2py.support.reporting import warn

_RESERVED = 40  # descriptors for DNS, the table, robots.txt and the parse worker
_MIN_CONNECTIONS = 1
_REMEDIES = {
    errno.EMFILE: "raise the limit of open files of this process (ulimit -n), or lower fetcher.threads.fetch",
    errno.ENFILE: "raise the limit of open files of this machine (sysctl fs.file-max), or stop the process using them",
    errno.ENOBUFS: "free some memory of this machine, or lower fetcher.threads.fetch",
    errno.ENOMEM: "free some memory of this machine, or lower fetcher.threads.fetch",
}
"""Errors of socket creation that are local to this machine, and their remedies."""


class FdBudget(NamedTuple):
    """Numbers that the process can serve: threads, additional slow requests and open connections."""

    threads: int
    slow_threads: int
    connections: int


def compute_fd_budget(threads: int, slow_threads: int, connections: int) -> FdBudget:
    """Return the requested numbers, reduced to the file descriptor limit, which is raised if possible."""
    wanted = max(threads + slow_threads, connections)
    free = _reserve_descriptors(wanted + _RESERVED) - _RESERVED
    if free >= wanted:
        return FdBudget(threads, slow_threads, connections)
    max_threads = max(_MIN_CONNECTIONS, min(threads, free))
    budget = FdBudget(
        max_threads, max(0, min(slow_threads, free - max_threads)), max(_MIN_CONNECTIONS, min(connections, free))
    )
    if max_threads < threads:
        warn(
            f"this process may open no more than {max(0, free)} connections: {max_threads} concurrent requests, "
            f"not {threads}: raise the limit (ulimit -n {wanted + _RESERVED + 64})"
        )
    return budget


def describe_socket_error(error_number: int) -> str:
    """Return cause and remedy of a failed socket creation, or "" if the errno has another cause.

    >>> describe_socket_error(errno.ECONNREFUSED)
    ''
    """
    remedy = _REMEDIES.get(error_number)
    return f"cannot create a socket ({os.strerror(error_number)}): {remedy}" if remedy else ""


def probe_socket_error() -> str:
    """Return why a socket cannot be created now, in the form of :func:`describe_socket_error`."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        return describe_socket_error(error.errno or 0)
    return ""


def _reserve_descriptors(wanted: int) -> int:
    """Raise the limit if needed; return the number of files that may still be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    opened = count_open_files()
    if soft - opened < wanted:
        new_limit = wanted + opened if hard == resource.RLIM_INFINITY else min(hard, wanted + opened)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, new_limit), hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - opened


def count_open_files() -> int:
    """Return the number of open file descriptors of this process."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))  # noqa: PTH208 - only the names are needed
    return _RESERVED
