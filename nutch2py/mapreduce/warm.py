"""Tasks of the runner ``local``, forked from a process that has loaded what they need.

A process of its own for each task costs 0.2 s of loading before its first row, more than many a task takes. One, the
*nursery*, is started for a job: it loads the job's modules and its configuration, opens no table and starts no thread,
and forks when it is told to. A task's three streams come with the order; how it ended goes back through a socket of its
own. The nursery ends with the driver, whose end of the socket closes with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

if TYPE_CHECKING:
    from nutch2py.conf import Configuration

_START = "import json,sys; sys.path[:] = json.loads(sys.argv[1]); from nutch2py.mapreduce.warm import serve; serve()"
_NUMBER = struct.Struct(">i")
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Order(msgspec.Struct, array_like=True):
    """What a task is to be: words for its job, working folder, environment. Four descriptors come with it."""

    words: list[str]
    folder: str
    environment: dict[str, str]


class Kill(msgspec.Struct, array_like=True):
    """Sends a signal to a task that has not ended."""

    pid: int
    number: int


class Task:
    """A task that was ordered."""

    def __init__(self, nursery: Nursery, link: socket.socket) -> None:
        self._nursery, self._link = nursery, link
        self.code: int | None = None
        self.pid = self._told(0)

    def wait(self) -> int:
        """Return the exit code, negative for a signal; 1 when the nursery is gone."""
        if self.code is None:
            self.code = self._told(1)
            self._link.close()
        return self.code

    def _told(self, otherwise: int) -> int:
        with contextlib.suppress(OSError):
            told = self._link.recv(_NUMBER.size, socket.MSG_WAITALL)
            if len(told) == _NUMBER.size:
                return int(_NUMBER.unpack(told)[0])
        return otherwise

    def poll(self) -> int | None:
        """Return the exit code if the task has been waited for."""
        return self.code

    def send(self, number: int) -> None:
        """Send it a signal."""
        if self.code is None and self.pid:
            self._nursery.send(Kill(self.pid, number))


class Nursery:
    """The driver's side. Threads may share it. ``job`` is ``module:class``; ``configuration``: the job's file."""

    def __init__(self, job: str, configuration: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), job, configuration]
            environment = {**os.environ, "PYTHONUTF8": "1"}
            # what is meant for the driver waits until the nursery can let it pass, and is no traceback of its beginning
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
            try:
                self._process = subprocess.Popen(words, stdin=theirs.fileno(), env=environment)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._socket, self._lock = ours, threading.Lock()

    def order(self, order: Order, streams: list[int]) -> Task:
        """Have a task forked; ``streams``: descriptors of its input, its output and what it says."""
        link, theirs = socket.socketpair()
        with theirs:
            self.send(order, [*streams, theirs.fileno()])
        return Task(self, link)

    def send(self, message: Order | Kill, descriptors: list[int] | None = None) -> None:
        """Send a message, unless the nursery is gone."""
        packed = msgspec.msgpack.encode(message)
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [_NUMBER.pack(len(packed))], descriptors or [])
            self._socket.sendall(packed)

    def close(self) -> None:
        """End it; tasks that are left end with their driver."""
        self._socket.close()
        self._process.wait()


def serve() -> None:
    """Be the nursery: fork a task for each order until the driver is gone."""
    name, configuration = sys.argv[2:]
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)  # they are the driver's, which tells the tasks
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    module, _, cls = name.partition(":")
    from nutch2py.mapreduce.memory import collect_rarely

    collect_rarely()  # before all that is to be loaded
    job = getattr(importlib.import_module(module), cls)
    from nutch2py.mapreduce.job_file import read_job_file

    _, conf = read_job_file(os.path.abspath(configuration))  # noqa: PTH100 - as tasks name it
    with contextlib.suppress(Exception):  # a task meets it again, and can tell the driver
        _load(job, conf)
    gc.collect()
    gc.freeze()  # what is shared with the tasks is not looked through, which would be a copy of it
    orders = socket.socket(fileno=os.dup(0))
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    poll = select.poll()
    for each in (orders, woken):
        poll.register(each, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == woken.fileno():
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _reap(running)
                continue
            head, descriptors, _, _ = socket.recv_fds(orders, _NUMBER.size, 4)
            if not head:
                os._exit(0)
            packed = orders.recv(_NUMBER.unpack(head)[0], socket.MSG_WAITALL)
            if len(descriptors) < 4:
                kill = msgspec.msgpack.decode(packed, type=Kill)
                if kill.pid in running:
                    os.kill(kill.pid, kill.number)
                continue
            link = socket.socket(fileno=descriptors[3])
            pid = os.fork()
            if not pid:
                for each in (orders, woken, wake, link, *running.values()):
                    each.close()
                _be(job, msgspec.msgpack.decode(packed, type=Order), descriptors[:3])
            for stream in descriptors[:3]:
                os.close(stream)
            running[pid] = link
            link.send(_NUMBER.pack(pid))


def _load(job: Any, conf: Configuration) -> None:
    """Import what every task would: the store, the plug-ins. Nothing is opened, and no thread is started.

    Plug-ins of other packages are left to the tasks: nobody knows what they begin when they are loaded.
    """
    from nutch2py.plugins import load_built_in
    from nutch2py.table.opening import load_store

    load_store(conf)
    for point in job.plugin_points:
        load_built_in(conf, point)


def _reap(running: dict[int, socket.socket]) -> None:
    """Tell how the tasks have ended that have."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        link = running.pop(pid)
        with contextlib.suppress(OSError):  # nobody asks
            link.send(_NUMBER.pack(os.waitstatus_to_exitcode(status)))
        link.close()


def _be(job: Any, order: Order, streams: list[int]) -> NoReturn:
    """Be a task, to its end: as if a program of its own had been started."""
    signal.set_wakeup_fd(-1)
    for number in (*_STOPPING, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.folder)
    job(order.words).execute()
    sys.exit()
