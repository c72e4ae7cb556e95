"""Runs a command as a child process and measures it, all processes that it starts included.

CPU time comes from the kernel (``wait4``), which adds up whatever the command's own children used once they were waited
for. Memory is sampled: the peak of the largest process, and what the processes hold together, their anonymous memory,
that is without files mapped into them, which the kernel can drop at any time (the embedded table is such a file).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_SAMPLE = 0.05  # seconds between two looks at the memory
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024


@dataclass(frozen=True)
class Cost:
    """What a command used: seconds of CPU (user and system) and of the clock, bytes of memory."""

    cpu: float
    wall: float
    memory: int
    """Anonymous memory of all processes at once, the highest of the samples."""
    largest: int
    """Resident memory of the largest process, mapped files included."""


@dataclass(frozen=True)
class Measurement:
    """A row of the report. ``records`` is what the rate and the cost of a record refer to."""

    work: str
    records: int
    cost: Cost
    unit: str = "records"
    aim: float | None = None
    """CPU seconds that this work may take, where an aim was set."""

    @property
    def per_record(self) -> float:
        """CPU seconds of a record."""
        return self.cost.cpu / max(self.records, 1)


class CommandError(Exception):
    """A measured command failed."""


class _MemoryWatch:
    """Samples the anonymous memory of the processes of a session."""

    def __init__(self, session: int) -> None:
        self.highest = 0
        self.largest = 0
        self._session = session
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE):
            processes = _processes(self._session)
            self.highest = max(self.highest, sum(map(_anonymous, processes)))
            self.largest = max(self.largest, *map(_peak, processes), 0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _processes(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has just ended
                continue
            if int(stat.rpartition(")")[2].split()[3]) == session:
                found.append(int(folder.name))
    return found


def _anonymous(pid: int) -> int:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


def _peak(pid: int) -> int:
    """Return the most that a process has held, since its program began: ``wait4`` would count its parent's, too."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) * _KIB for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def run(command: Sequence[str], *, allowed: tuple[int, ...] = (0,), folder: Path | None = None) -> Cost:
    """Run a command to its end and return its cost; raise :class:`CommandError` with what it said when it fails."""
    started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, cwd=folder
    ) as process:
        assert process.stdout is not None
        with _MemoryWatch(process.pid) as watch:
            said = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        text = said.decode("utf-8", "replace")[-2000:]
        raise CommandError(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, time.monotonic() - started, watch.highest, watch.largest)


SETTINGS = {
    "http.agent.name": "nutch2py-bench",
    "plugin.includes": "protocol-http|urlfilter-(regex|validator)|parse-html|index-(basic|anchor)|scoring-opic"
    "|urlnormalizer-(pass|regex|basic)",
}
"""The plug-ins with which the original was measured."""


class Nutch:
    """The command line over a table in a folder of its own."""

    def __init__(self, folder: Path, runner: str = "inline", **settings: str) -> None:
        self.folder = folder
        store = {"storage.data.store": f"embedded:{folder / 'crawldata'}", "mapreduce.runner": runner}
        self.settings = {**SETTINGS, **store, **settings}

    def __call__(self, *words: str, allowed: tuple[int, ...] = (0,)) -> Cost:
        """Run ``nutch2py WORDS`` and return its cost."""
        options = [part for name, value in self.settings.items() for part in ("-D", f"{name}={value}")]
        return run([sys.executable, "-P", "-m", "nutch2py.cli", *words, *options], allowed=allowed, folder=self.folder)
