"""A worker process of this program: its start, its messages, and the ends that it may come to.

Work that may hang, crash or take all of a processor runs in a worker, since only a process can be stopped from outside.
A message is a frame: an eight-byte length and a msgpack object. Unlike pickle, msgpack cannot execute the other side's
code.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections import deque
from pathlib import Path
from typing import IO, Self

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.support.invariants import not_none

_LENGTH_PREFIX = struct.Struct("<Q")
_PIPE_BYTES = 1 << 20  # capacity of a pipe, where the system allows to set it
_CPU_CLOCK_OF_PROCESS = 2  # clock_getcpuclockid(3): the id of a process's clock is (~pid << 3) | 2
_READ_BYTES = 1 << 17  # a larger buffer would be allocated and freed with each read
_BOOTSTRAP_CODE = (
    "import importlib,json,sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from nutch2py.support.parent_exit import exit_with_parent; exit_with_parent(int(sys.argv[2])); "
    "getattr(importlib.import_module(sys.argv[3]), sys.argv[4])()"
)


class WorkerSettings(msgspec.Struct, array_like=True):
    """The first message to a worker: the whole configuration."""

    properties: dict[str, str]
    conf_dirs: list[str]
    base_dir: str

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Return the message for a configuration."""
        return cls(conf.raw_properties(), [str(folder) for folder in conf.conf_dirs], str(conf.base_dir))

    @classmethod
    def decode(cls, message: bytes) -> Self:
        """Return a received message."""
        return msgspec.msgpack.decode(message, type=cls)

    def to_conf(self) -> Configuration:
        """Return the configuration."""
        return Configuration(self.properties, [Path(folder) for folder in self.conf_dirs], Path(self.base_dir))


class WorkerExitedError(Exception):
    """The worker has exited. ``exit_code``: negative for a signal; ``reason``: its name."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self.reason = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
        super().__init__(self.reason)


class WorkerProcess:
    """A running worker. It ends with the thread that creates this object, and when the object is collected.

    ``pid``: id of the process; ``terminate()`` kills it and waits for its end.
    """

    def __init__(self, module: str, function: str, max_frame_bytes: int) -> None:
        """Start a process that runs ``function`` of ``module``; its frames have at most ``max_frame_bytes``."""
        self._max_frame_bytes = max_frame_bytes
        path = json.dumps([os.path.abspath(folder) for folder in sys.path])  # noqa: PTH100
        self._process = subprocess.Popen(  # noqa: S603 - no shell; this Python
            [sys.executable, "-c", _BOOTSTRAP_CODE, path, str(os.getpid()), module, function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=_PIPE_BYTES,
        )
        self.pid = self._process.pid
        self._used_seconds = 0.0
        self.terminate = weakref.finalize(self, _terminate, self._process)
        self._sink = not_none(self._process.stdin, "stdin").fileno()
        self._source = not_none(self._process.stdout, "stdout").fileno()
        os.set_blocking(self._sink, False)
        self._to_send: deque[memoryview] = deque()
        self._received = bytearray()
        self._poll = select.poll()  # select() supports descriptors up to 1023 only, and a fetcher has many
        self._poll.register(self._source, select.POLLIN)

    def used_seconds(self) -> float:
        """Return the CPU time of the process in seconds; without a CPU clock per process, the time by the wall clock.

        The process itself is not asked: hostile input may control it.
        """
        if sys.platform != "linux":
            return time.monotonic()
        with contextlib.suppress(OSError):  # it has ended
            self._used_seconds = time.clock_gettime(~self.pid << 3 | _CPU_CLOCK_OF_PROCESS)
        return self._used_seconds

    def _wait(self) -> int:
        """Wait for the end of the process; return its exit code, and remember its CPU time, which ends with its id."""
        if sys.platform == "linux":
            with contextlib.suppress(ChildProcessError):  # its exit code has been read
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self.used_seconds()
        return self._process.wait()

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def send(self, frame: bytes) -> None:
        """Write as much of a frame as the pipe takes; :meth:`receive` writes the rest while it waits."""
        if not self._to_send:
            self._poll.register(self._sink, select.POLLOUT)
        self._to_send.append(memoryview(frame))
        self._send_pending()

    def receive(self, seconds: float | None) -> bytes:
        """Return the message of the next frame.

        Raises:
            TimeoutError: No frame after ``seconds``.
            WorkerExitedError: The worker exited before it sent one.
            msgspec.DecodeError: The frame is larger than allowed.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            message = _take_message(self._received, self._max_frame_bytes)
            if message is not None:
                return message
            wait = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            ready = self._poll.poll(wait)
            if not ready:
                raise TimeoutError
            for descriptor, _ in ready:
                if descriptor == self._sink:
                    self._send_pending()
                elif not self._receive_available():
                    raise WorkerExitedError(self._wait())

    def _receive_available(self) -> bool:
        part = os.read(self._source, _READ_BYTES)
        self._received += part
        return bool(part)

    def _send_pending(self) -> None:
        try:
            while self._to_send:
                view = self._to_send[0]
                written = os.write(self._sink, view[: 1 << 16])
                if written < len(view):
                    self._to_send[0] = view[written:]
                else:
                    self._to_send.popleft()
        except BlockingIOError:
            return
        except BrokenPipeError:  # the worker exited; its earlier messages are still readable
            self._to_send.clear()
        self._poll.unregister(self._sink)


def _take_message(received: bytearray, max_bytes: int) -> bytes | None:
    """Remove the first message from the bytes received, None if it is incomplete."""
    if len(received) < _LENGTH_PREFIX.size:
        return None
    (length,) = _LENGTH_PREFIX.unpack_from(received)
    if length > max_bytes:
        raise msgspec.DecodeError(f"a response of {length} bytes, more than {max_bytes}")
    end = _LENGTH_PREFIX.size + length
    if len(received) < end:
        return None
    with memoryview(received) as view:
        message = bytes(view[_LENGTH_PREFIX.size : end])
    del received[:end]
    return message


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()


# in the worker


def open_worker_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes from and to the client; prepare the signals of this process. Call it first.

    The pipes have their own descriptors, so that output of a library cannot mix with the messages. A terminal signals
    the whole process group: the client handles that and stops this process.
    """
    source, sink = os.fdopen(os.dup(0), "rb", 1 << 18), os.fdopen(os.dup(1), "wb", 1 << 18)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    for limit in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(limit, signal.SIG_DFL)
    return source, sink


def set_time_limits(cpu_seconds: float, wall_seconds: float) -> None:
    """Let the kernel end this process after seconds of CPU time (SIGPROF) or by the clock (SIGALRM); 0: no limit.

    CPU time of all threads counts, in user and in system mode.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)


def encode_frame(message: object) -> bytes:
    """Return a message with its length prefix."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH_PREFIX.pack(len(body)) + body


def read_frame(source: IO[bytes]) -> bytes:
    """Return the message of the next frame; empty at the end of the input."""
    head = source.read(_LENGTH_PREFIX.size)
    return source.read(_LENGTH_PREFIX.unpack(head)[0]) if len(head) == _LENGTH_PREFIX.size else b""
