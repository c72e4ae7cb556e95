"""Processes: those that tests start by ``subprocess`` and forget, and of all others whether one is alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NEVER = 300.0  # seconds
_EXIT_SECONDS = 10.0  # for a process that was stopped, and whose end its owner does not wait for
_STACK_FRAMES = 12
HEEDING = """
import signal, sys
from nutch2py.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""
"""The command, heeding SIGINT: shells let their children in the background ignore it, and so the tests' own."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, that a program of the tests takes as it takes Ctrl-C: what it has started ends with it."""


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT, which shells let their children in the background ignore, and at SIGTERM."""

    def terminated(number: int, frame: object) -> None:
        raise Terminated

    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that a busy machine does in minutes; fail where it will never be."""
    until = time.monotonic() + _NEVER
    while not condition():
        assert time.monotonic() < until, "the condition has not become true"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Return whether a process exists and has not ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a running process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the id and the words of the command line of each process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(path.parent.name), path.read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue


class SessionProcess(subprocess.Popen[bytes]):
    """A process that may live as long as the test run."""


class StartedProcesses:
    """Every process that this one starts by ``subprocess``, with the place in the code."""

    def __init__(self) -> None:
        self._started: list[tuple[subprocess.Popen[Any], traceback.StackSummary]] = []
        start = subprocess.Popen.__init__

        def start_and_record(process: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
            start(process, *args, **options)
            if not isinstance(process, SessionProcess):
                frames = traceback.walk_stack(sys._getframe(1))
                stack = traceback.StackSummary.extract(frames, limit=_STACK_FRAMES, lookup_lines=False)
                self._started.append((process, stack))

        subprocess.Popen.__init__ = start_and_record  # type: ignore[method-assign]

    def kill_running(self) -> list[str]:
        """Kill the processes that still run, with their groups; return what they are and who started them."""
        started, self._started = self._started, []
        running = []
        deadline = time.monotonic() + _EXIT_SECONDS
        for process, stack in started:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                if _leads_group(process.pid):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                process.wait()
                running.append(f"{process.args!s:.200}\n{''.join(stack.format())}")
        return running


def _leads_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False
