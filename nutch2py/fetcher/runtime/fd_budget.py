"""How many connections this process may have open: without one left, every server would seem to be down."""

from __future__ import annotations

import errno
import os
import resource
import socket
from contextlib import suppress
from typing import NamedTuple

from nutch2py.support.reporting import warn

_RESERVED = 40  # for DNS, the table, robots.txt, a child that parses
_MIN_CONNECTIONS = 1
_REMEDIES = {
    errno.EMFILE: "raise the limit of open files of this process (ulimit -n), or lower fetcher.threads.fetch",
    errno.ENFILE: "raise the limit of open files of this machine (sysctl fs.file-max), or end what has so many open",
    errno.ENOBUFS: "free some memory of this machine, or lower fetcher.threads.fetch",
    errno.ENOMEM: "free some memory of this machine, or lower fetcher.threads.fetch",
}
"""What the system refuses a socket for that no server can help, and the repair."""


class FdBudget(NamedTuple):
    """What a fetch has room for: requests at a time, those of them beyond its threads, and open connections."""

    threads: int
    slow_threads: int
    connections: int


def compute_fd_budget(threads: int, slow_threads: int, connections: int) -> FdBudget:
    """Return what is asked for, or less where the system lets this process open fewer; raises its own limit."""
    wanted = max(threads + slow_threads, connections)
    free = _reserve_descriptors(wanted + _RESERVED) - _RESERVED
    if free >= wanted:
        return FdBudget(threads, slow_threads, connections)
    most = max(_MIN_CONNECTIONS, min(threads, free))
    found = FdBudget(most, max(0, min(slow_threads, free - most)), max(_MIN_CONNECTIONS, min(connections, free)))
    if most < threads:
        warn(
            f"this process may open no more than {max(0, free)} connections: {most} requests at a time, "
            f"not {threads}: raise the limit (ulimit -n {wanted + _RESERVED + 64})"
        )
    return found


def describe_socket_error(error_number: int) -> str:
    """Return what lacks when the system refuses a socket with an errno, and the repair; "" when that is something else.

    >>> lacking(errno.ECONNREFUSED)
    ''
    """
    repair = _REMEDIES.get(error_number)
    return f"no socket can be made ({os.strerror(error_number)}): {repair}" if repair else ""


def probe_socket_error() -> str:
    """Return what lacks for a socket at this moment, as :func:`describe_socket_error` puts it."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        return describe_socket_error(error.errno or 0)
    return ""


def _reserve_descriptors(wanted: int) -> int:
    """Return how many files may be opened beside those that are open, after asking for so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    opened = _count_open_files()
    if soft - opened < wanted:
        most = wanted + opened if hard == resource.RLIM_INFINITY else min(hard, wanted + opened)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - opened


def _count_open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))  # noqa: PTH208 - names alone
    return _RESERVED
