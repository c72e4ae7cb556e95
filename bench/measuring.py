"""Runs a command as a child process and measures it with all its descendants.

CPU time is that of the kernel (``wait4``), which adds the time of children that the command has waited for, or the sum
of samples when that is larger, as with Spark, which does not wait for its workers. Memory is sampled: the peak of the
largest process, and the anonymous memory of all processes together. That excludes mapped files, such as the embedded
table, which the kernel can drop at any time.
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
from typing import NamedTuple, Self

_SAMPLE = 0.05  # seconds between samples
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Resources of a command: seconds of CPU (user and system) and wall time, bytes of memory."""

    cpu: float
    wall: float
    memory: int
    """Peak anonymous memory of all processes together, by samples."""
    largest: int
    """Peak resident memory of the largest process, with mapped files."""

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of two commands run in sequence."""
        memory, largest = max(self.memory, other.memory), max(self.largest, other.largest)
        return Cost(self.cpu + other.cpu, self.wall + other.wall, memory, largest)


@dataclass(frozen=True)
class Measurement:
    """A row of the report. ``records``: number of records, for the rate and the cost per record."""

    work: str
    records: int
    cost: Cost
    unit: str = "records"
    aim: float | None = None
    """Target in CPU seconds, if any."""
    servers: float = 0.0
    """CPU seconds of servers included in ``cost``."""
    calibration: float | None = None
    """CPU seconds of a fixed job just before: twice as many mean a machine half as fast."""
    disk: int | None = None
    """Bytes on disk of the store afterwards."""

    @property
    def per_record(self) -> float:
        """CPU seconds per record."""
        return self.cost.cpu / max(self.records, 1)


class CommandError(Exception):
    """A measured command failed."""


class _Watch:
    """Samples memory and CPU time of the processes of a session, and of the sessions that they start.

    ``servers``: processes of sessions that count only for memory; their CPU time is not the command's.
    """

    def __init__(self, session: int, servers: Sequence[int] = ()) -> None:
        self.highest = 0
        self.largest = 0
        self._own, self._servers = {session}, set(map(os.getsid, servers))
        self._seconds: dict[tuple[int, int], float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def cpu(self) -> float:
        """CPU seconds of the command's processes, by samples."""
        return sum(self._seconds.values())

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE):
            everything = _processes()
            own = _members(everything, self._own)
            for process in own:
                self._seconds[process.pid, process.began] = process.cpu
            processes = [each.pid for each in (*own, *_members(everything, self._servers))]
            self.highest = max(self.highest, sum(map(_anonymous, processes)))
            self.largest = max(self.largest, *map(_peak, processes), 0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class _Process(NamedTuple):
    pid: int
    parent: int
    session: int
    cpu: float
    began: int


def _processes() -> list[_Process]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has just exited
                continue
            fields = [int(each) for each in stat.rpartition(")")[2].split()[1:20]]
            cpu = (fields[10] + fields[11]) / _TICKS
            found.append(_Process(int(folder.name), fields[0], fields[2], cpu, fields[18]))
    return found


def _members(processes: list[_Process], sessions: set[int]) -> list[_Process]:
    """Return the processes of the sessions; add the sessions that they have started."""
    while True:
        found = [each for each in processes if each.session in sessions]
        pids = {each.pid for each in found}
        started = {each.session for each in processes if each.parent in pids} - sessions
        if not started:
            return found
        sessions |= started


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


def run(
    command: Sequence[str],
    *,
    allowed: tuple[int, ...] = (0,),
    folder: Path | None = None,
    servers: Sequence[int] = (),
) -> Cost:
    """Run a command to its end and return its cost; raise :class:`CommandError` with its output when it fails.

    ``servers``: process ids of what works for the command elsewhere; their memory, and that of their children, counts.
    """
    started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, cwd=folder
    ) as process:
        assert process.stdout is not None
        with _Watch(process.pid, servers) as watch:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        text = output.decode("utf-8", "replace")[-2000:]
        raise CommandError(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    cpu = max(usage.ru_utime + usage.ru_stime, watch.cpu)
    return Cost(cpu, time.monotonic() - started, watch.highest, watch.largest)


def cpu_seconds(processes: Sequence[int]) -> float:
    """Return the CPU seconds that processes have used so far; what they started counts once they waited for it."""
    found = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        found += sum(map(int, fields[11:15]))
    return found / _TICKS


SETTINGS = {
    "http.agent.name": "nutch2py-bench",
    "plugin.includes": "protocol-http|urlfilter-(regex|validator)|parse-html|index-(basic|anchor)|scoring-opic"
    "|urlnormalizer-(pass|regex|basic)",
}
"""The plug-ins with which the original was measured."""


def cycle_settings(folder: Path, hosts: Path) -> dict[str, str]:
    """Return the settings of a whole cycle over a site on loopback; documents go to ``index.jsonl`` in ``folder``."""
    return {
        "http.hosts.file": str(hosts),
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
        "plugin.includes": f"{SETTINGS['plugin.includes']}|indexer-jsonl",
        "indexer-jsonl.path": str(folder / "index.jsonl"),
    }


class Nutch:
    """The command line over a table in a folder of its own."""

    def __init__(self, folder: Path, runner: str = "inline", **settings: str) -> None:
        self.folder = folder
        store = {"storage.data.store": f"embedded:{folder / 'crawldata'}", "mapreduce.runner": runner}
        self.settings = {**SETTINGS, **store, **settings}

    def __call__(self, *words: str, allowed: tuple[int, ...] = (0,), servers: Sequence[int] = ()) -> Cost:
        """Run ``nutch2py WORDS`` and return its cost."""
        options = [part for name, value in self.settings.items() for part in ("-D", f"{name}={value}")]
        command = [sys.executable, "-P", "-m", "nutch2py", *words, *options]
        return run(command, allowed=allowed, folder=self.folder, servers=servers)
