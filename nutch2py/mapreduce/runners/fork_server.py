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
    from nutch2py.conf.configuration import Configuration

_SERVER_CODE = "import json,sys; sys.path[:] = json.loads(sys.argv[1]); from nutch2py.mapreduce.runners.fork_server import run_fork_server; run_fork_server()"
_INT32 = struct.Struct(">i")
_TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ForkRequest(msgspec.Struct, array_like=True):
    """What a task is to be: words for its job, working folder, environment. Four descriptors come with it."""

    args: list[str]
    work_dir: str
    environment: dict[str, str]


class KillRequest(msgspec.Struct, array_like=True):
    """Sends a signal to a task that has not ended."""

    pid: int
    signal_number: int


class ForkedTask:
    """A task that was ordered."""

    def __init__(self, nursery: ForkServer, link: socket.socket) -> None:
        self._server, self._socket = nursery, link
        self.exit_code: int | None = None
        self.pid = self._read_int(0)

    def wait(self) -> int:
        """Return the exit code, negative for a signal; 1 when the nursery is gone."""
        if self.exit_code is None:
            self.exit_code = self._read_int(1)
            self._socket.close()
        return self.exit_code

    def _read_int(self, otherwise: int) -> int:
        with contextlib.suppress(OSError):
            told = self._socket.recv(_INT32.size, socket.MSG_WAITALL)
            if len(told) == _INT32.size:
                return int(_INT32.unpack(told)[0])
        return otherwise

    def poll(self) -> int | None:
        """Return the exit code if the task has been waited for."""
        return self.exit_code

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.exit_code is None and self.pid:
            self._server.send(KillRequest(self.pid, number))


class ForkServer:
    """The driver's side. Threads may share it. ``job`` is ``module:class``; ``configuration``: the job's file."""

    def __init__(self, job: str, configuration: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, "-P", "-c", _SERVER_CODE, json.dumps(sys.path), job, configuration]
            environment = {**os.environ, "PYTHONUTF8": "1"}
            # what is meant for the driver waits until the nursery can let it pass, and is no traceback of its beginning
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINATION_SIGNALS)
            try:
                self._process = subprocess.Popen(words, stdin=theirs.fileno(), env=environment)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._socket, self._lock = ours, threading.Lock()

    def fork_task(self, request: ForkRequest, streams: list[int]) -> ForkedTask:
        """Have a task forked; ``streams``: descriptors of its input, its output and what it says."""
        link, theirs = socket.socketpair()
        with theirs:
            self.send(request, [*streams, theirs.fileno()])
        return ForkedTask(self, link)

    def send(self, message: ForkRequest | KillRequest, descriptors: list[int] | None = None) -> None:
        """Send a message, unless the nursery is gone."""
        packed = msgspec.msgpack.encode(message)
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [_INT32.pack(len(packed))], descriptors or [])
            self._socket.sendall(packed)

    def close(self) -> None:
        """End it; tasks that are left end with their driver."""
        self._socket.close()
        self._process.wait()


def run_fork_server() -> None:
    """Be the nursery: fork a task for each order until the driver is gone."""
    name, configuration = sys.argv[2:]
    for number in _TERMINATION_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # they are the driver's, which tells the tasks
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINATION_SIGNALS)
    module, _, cls = name.partition(":")
    from nutch2py.support.process_memory import reduce_gc_frequency

    reduce_gc_frequency()  # before all that is to be loaded
    job = getattr(importlib.import_module(module), cls)
    from nutch2py.mapreduce.job_file import read_job_file

    _, conf = read_job_file(os.path.abspath(configuration))  # noqa: PTH100 - as tasks name it
    with contextlib.suppress(Exception):  # a task meets it again, and can tell the driver
        _preload(job, conf)
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
                _reap_tasks(running)
                continue
            head, descriptors, _, _ = socket.recv_fds(orders, _INT32.size, 4)
            if not head:
                os._exit(0)
            packed = orders.recv(_INT32.unpack(head)[0], socket.MSG_WAITALL)
            if len(descriptors) < 4:
                kill = msgspec.msgpack.decode(packed, type=KillRequest)
                if kill.pid in running:
                    os.kill(kill.pid, kill.signal_number)
                continue
            link = socket.socket(fileno=descriptors[3])
            pid = os.fork()
            if not pid:
                for each in (orders, woken, wake, link, *running.values()):
                    each.close()
                _run_as_task(job, msgspec.msgpack.decode(packed, type=ForkRequest), descriptors[:3])
            for stream in descriptors[:3]:
                os.close(stream)
            running[pid] = link
            link.send(_INT32.pack(pid))


def _preload(job: Any, conf: Configuration) -> None:
    """Import what every task would: the store, the plug-ins. Nothing is opened, and no thread is started.

    Plug-ins of other packages are left to the tasks: nobody knows what they begin when they are loaded.
    """
    from nutch2py.plugins.loading import import_builtin_plugins
    from nutch2py.table.store_factory import import_store_module

    import_store_module(conf)
    for point in job.plugin_points:
        import_builtin_plugins(conf, point)


def _reap_tasks(running: dict[int, socket.socket]) -> None:
    """Tell how the tasks have ended that have."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        link = running.pop(pid)
        with contextlib.suppress(OSError):  # nobody asks
            link.send(_INT32.pack(os.waitstatus_to_exitcode(status)))
        link.close()


def _run_as_task(job: Any, order: ForkRequest, streams: list[int]) -> NoReturn:
    """Be a task, to its end: as if a program of its own had been started."""
    signal.set_wakeup_fd(-1)
    for number in (*_TERMINATION_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.work_dir)
    job(order.args).execute()
    sys.exit()
