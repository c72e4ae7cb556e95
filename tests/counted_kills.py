"""Counted kills: one hits when it meets a working process of an unfinished job; a test requires hits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from tests.processes import alive

Victim = subprocess.Popen[bytes] | subprocess.Popen[str] | BaseProcess | int
"""A child of ours, or the id of a process that another has started."""


def _never() -> bool:
    return False


def strike(process: Victim, number: signal.Signals = signal.SIGKILL, *, group: bool = False) -> bool:
    """Kill a process, or its whole group, and wait for its end if it is our child; return whether it was running."""
    pid = process if isinstance(process, int) else process.pid
    assert pid is not None
    running = alive(pid)
    if running:
        (os.killpg if group else os.kill)(pid, number)
    if isinstance(process, subprocess.Popen):
        ended = process.wait(120)
        running = running and (number != signal.SIGKILL or ended == -number)
    elif isinstance(process, BaseProcess):
        process.join(120)
        running = running and process.exitcode == -number
    return running


class Kills:
    """The kills of one test: how many hit, how many came too late.

    A context manager; at its end, which says how many hit, fewer hits than ``wanted`` fail the test. :meth:`moments`
    gives times to kill at until they are reached, and gives up when of all kills less than the share ``least`` hit.
    """

    def __init__(self, what: str, wanted: int = 1, least: float = 0.5) -> None:
        self.what, self.wanted = what, wanted
        self.hits = self.misses = 0
        self._most = round(wanted / least)

    def moments(self) -> Iterator[float]:
        """Yield moments as shares of an undisturbed run, spread over all of it; after a miss, the same one earlier."""
        chance = random.Random(self.what)
        for number in range(self.wanted):
            moment = (number + chance.random()) / self.wanted
            while self.hits <= number:
                if self.hits + self.misses == self._most:
                    return
                yield moment
                moment *= 0.7

    def kill(
        self,
        process: Victim,
        number: signal.Signals = signal.SIGKILL,
        *,
        group: bool = False,
        finished: Callable[[], bool] = _never,
    ) -> bool:
        """Strike a process; return whether that hit. ``finished`` is called afterwards: had its job ended before?"""
        return self.count(strike(process, number, group=group) and not finished())

    def count(self, hit: bool) -> bool:
        """Count a kill, or whatever else was to strike a job at work."""
        self.hits += hit
        self.misses += not hit
        return hit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        print(f"{self.what}: {self.hits} of {self.hits + self.misses} kills hit")
        if kind is None:
            assert self.hits >= self.wanted, f"{self.what}: {self.hits} kills hit, {self.misses} did not"
