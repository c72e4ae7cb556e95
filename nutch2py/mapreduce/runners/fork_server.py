"""Forks the tasks of the runner ``local`` from a process that has already loaded their modules.

A new process per task takes 0.2 s of imports before the first row, longer than many a task. The *fork server* is
started once per job. It imports the job's modules, reads its configuration, opens no table, starts no thread, and forks
on request. A request carries the task's three streams; the exit code is returned through a socket per task. The fork
server exits with the driver: while it loads modules by :mod:`nutch2py.support.parent_exit`, then also because the
driver's end of the socket is closed.
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

from nutch2py.support.log_file import log_job_environment

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration

_SERVER_CODE = (
    "import json,sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from nutch2py.support.parent_exit import exit_with_parent; exit_with_parent(int(sys.argv[2]));"
    " from nutch2py.mapreduce.runners.fork_server import run_fork_server; run_fork_server()"
)
_INT32 = struct.Struct(">i")
_TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ForkRequest(msgspec.Struct, array_like=True):
    """Starts a task: arguments of the job, working directory, environment. Four file descriptors are sent with it."""

    args: list[str]
    work_dir: str
    environment: dict[str, str]


class KillRequest(msgspec.Struct, array_like=True):
    """Sends a signal to a running task."""

    pid: int
    signal_number: int


class ForkedTask:
    """A task that was requested from the fork server."""

    def __init__(self, server: ForkServer, link: socket.socket) -> None:
        self._server, self._socket = server, link
        self.exit_code: int | None = None
        self.pid = self._read_int(0)

    def wait(self) -> int:
        """Wait for the exit code, negative for a signal; 1 when the fork server has exited."""
        if self.exit_code is None:
            self.exit_code = self._read_int(1)
            self._socket.close()
        return self.exit_code

    def _read_int(self, default: int) -> int:
        with contextlib.suppress(OSError):
            received = self._socket.recv(_INT32.size, socket.MSG_WAITALL)
            if len(received) == _INT32.size:
                return int(_INT32.unpack(received)[0])
        return default

    def poll(self) -> int | None:
        """Return the exit code if :meth:`wait` has returned it, else None."""
        return self.exit_code

    def send_signal(self, number: int) -> None:
        """Send a signal to the task."""
        if self.exit_code is None and self.pid:
            self._server.send(KillRequest(self.pid, number))


class ForkServer:
    """Client of the fork server; thread-safe. ``job`` is ``module:class``; ``configuration``: the job file."""

    def __init__(self, job: str, configuration: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            words = [
                sys.executable,
                "-P",
                "-c",
                _SERVER_CODE,
                json.dumps(sys.path),
                str(os.getpid()),
                job,
                configuration,
            ]
            environment = {**os.environ, "PYTHONUTF8": "1", **log_job_environment()}
            # signals for the driver stay blocked until the fork server ignores them, so that it prints no traceback
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINATION_SIGNALS)
            try:
                self._process = subprocess.Popen(words, stdin=theirs.fileno(), env=environment)  # noqa: S603 - no shell; this Python
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._socket, self._lock = ours, threading.Lock()

    def fork_task(self, request: ForkRequest, streams: list[int]) -> ForkedTask:
        """Fork a task; ``streams``: descriptors of its standard input, output and error."""
        link, theirs = socket.socketpair()
        with theirs:
            self.send(request, [*streams, theirs.fileno()])
        return ForkedTask(self, link)

    def send(self, message: ForkRequest | KillRequest, descriptors: list[int] | None = None) -> None:
        """Send a message, unless the fork server has exited."""
        packed = msgspec.msgpack.encode(message)
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [_INT32.pack(len(packed))], descriptors or [])
            self._socket.sendall(packed)

    def close(self) -> None:
        """Stop the fork server; remaining tasks end with their driver."""
        self._socket.close()
        self._process.wait()


def run_fork_server() -> None:
    """Run the fork server: fork a task for each request until the driver exits."""
    name, configuration = sys.argv[3:]
    for number in _TERMINATION_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the driver handles these signals and stops the tasks
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINATION_SIGNALS)
    module, _, cls = name.partition(":")
    from nutch2py.support.process_memory import reduce_gc_frequency

    reduce_gc_frequency()  # before the imports
    job = getattr(importlib.import_module(module), cls)
    from nutch2py.mapreduce.job_file import read_job_file

    _, conf = read_job_file(os.path.abspath(configuration))  # noqa: PTH100 - as tasks name it
    with contextlib.suppress(Exception):  # the task meets the same error and can report it
        _preload(job, conf)
    gc.collect()
    gc.freeze()  # collecting shared objects would copy their pages
    requests = socket.socket(fileno=os.dup(0))
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    poll = select.poll()
    for each in (requests, woken):
        poll.register(each, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == woken.fileno():
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _reap_tasks(running)
                continue
            head, descriptors, _, _ = socket.recv_fds(requests, _INT32.size, 4)
            if not head:
                os._exit(0)
            packed = requests.recv(_INT32.unpack(head)[0], socket.MSG_WAITALL)
            if len(descriptors) < 4:
                kill = msgspec.msgpack.decode(packed, type=KillRequest)
                if kill.pid in running:
                    os.kill(kill.pid, kill.signal_number)
                continue
            link = socket.socket(fileno=descriptors[3])
            pid = os.fork()
            if not pid:
                for each in (requests, woken, wake, link, *running.values()):
                    each.close()
                _run_as_task(job, msgspec.msgpack.decode(packed, type=ForkRequest), descriptors[:3])
            for stream in descriptors[:3]:
                os.close(stream)
            running[pid] = link
            link.send(_INT32.pack(pid))


def _preload(job: Any, conf: Configuration) -> None:
    """Import the modules that every task needs: store and plug-ins. Opens nothing and starts no thread.

    Third-party plug-ins are imported by the tasks, because their imports may start threads or open files.
    """
    from nutch2py.plugins.loading import import_builtin_plugins
    from nutch2py.table.store_factory import import_store_module

    import_store_module(conf)
    for point in job.plugin_points:
        import_builtin_plugins(conf, point)


def _reap_tasks(running: dict[int, socket.socket]) -> None:
    """Report the exit codes of finished tasks."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        link = running.pop(pid)
        with contextlib.suppress(OSError):  # the driver no longer waits
            link.send(_INT32.pack(os.waitstatus_to_exitcode(status)))
        link.close()


def _run_as_task(job: Any, request: ForkRequest, streams: list[int]) -> NoReturn:
    """Run a task in the forked process like a separate program."""
    signal.set_wakeup_fd(-1)
    for number in (*_TERMINATION_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.work_dir)
    job(request.args).execute()
    sys.exit()
