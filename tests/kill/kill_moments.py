"""Injects each kind of fault: starts a command, strikes it, and reports the outcome."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.counted_kills import strike
from tests.kill.crawl import Command, Crawl, Process
from tests.kill.disk import SmallDisk
from tests.kill.faults import Fault
from tests.kill.invariants import Violation
from tests.kill.workspace import EmbeddedGround

ENDINGS = {
    "group": (-9,), "driver": (-9,), "timed": (-9,), "SIGINT": (130,), "SIGTERM": (143,), "size": (4, 5),
    "disk": (4, 5), "fsync": (4, 5), "task": (4, 5, 8), "yarn driver": (-9,),
}  # fmt: skip
"""Exit codes of a command after a fault of a kind; after the other kinds the process itself continues."""
_REFUSED = 6


class Servers(Protocol):
    """Kills and starts servers: ``crash`` one, and ``restore`` all."""

    def crash(self, what: str) -> None: ...

    def restore(self) -> None: ...

    def containers(self, job: str) -> list[int]: ...


@dataclass
class Outcome:
    """Outcome of a struck command: ``code``: its exit code; ``hit``: the fault met a running job.

    ``let_run``: how many further fetches of the batch ran. ``wrong``: violations that were found.
    """

    code: int
    hit: bool
    said: str
    where: str = ""
    let_run: int = 0
    wrong: list[Violation] = field(default_factory=list)


def point(points: list[str], fault: Fault, prefix: str = "", within: bool = False) -> int:
    """Return the number of the point that a fault strikes; ``within``: while the lock is held."""
    numbers = [number for number, name in enumerate(points) if name.startswith(prefix)]
    if within:
        locks = [number for number, name in enumerate(points) if name.startswith("lock")]
        numbers = [n for n in numbers if locks and locks[0] + 1 < n < locks[-1] - 1]
    return numbers[min(len(numbers) - 1, int(fault.share * len(numbers)))] if numbers else 0


@dataclass
class Striker:
    """Strikes the commands of one crawl. ``settings``: those of the runner of struck commands.

    ``look`` returns the violations while a command is held.
    """

    crawl: Crawl
    settings: dict[str, str]
    servers: Servers | None = None
    look: Callable[[Command], list[Violation]] = lambda command: []

    def strike(
        self, command: Command, fault: Fault, points: list[str], seconds: float, words: tuple[str, ...]
    ) -> Outcome:
        """Run a command, its words being perhaps those of a repeat, and strike it."""
        kind = fault.kind
        if kind in ("group", "driver", "SIGINT", "SIGTERM"):
            return self._at_point(fault, words, {"do": kind, "number": point(points, fault)})
        if kind == "task":
            return self._at_point(fault, words, {"do": "self", "number": point(points, fault), "task": True})
        if kind == "parser":
            return self._at_point(
                fault, words, {"do": "self", "number": point(points, fault, "parse before"), "at": "parse"}
            )
        if kind in ("size", "fsync"):
            limit = self._limit(command, fault)
            return self._at_point(fault, words, {"do": kind, "number": point(points, fault), "limit": limit})
        if kind == "timed":
            return self._timed(fault, words, seconds)
        if kind == "disk":
            return self._on_a_full_disk(fault, words)
        if kind == "concurrent":
            return self._run_concurrent(command, fault, words, point(points, fault, "write", within=True))
        if kind == "container":
            return self._container(command, fault, words)
        if kind == "yarn driver":
            return self._timed(fault, words, 20.0)
        return self._server(fault, words, point(points, fault, "send" if kind == "solr" else "write"))

    def _limit(self, command: Command, fault: Fault) -> int:
        """Return how long a file may be: less than the table's pages or the index's next segment."""
        ground = self.crawl.ground
        if command.job == "index" or not isinstance(ground, EmbeddedGround):
            return int(2048 + fault.share * 3000)  # what a command says has to fit
        return max(
            [8192, *(int(fault.share * file.stat().st_size) for file in ground.folder.glob("webpage/meta/data.mdb"))]
        )

    def _start(self, words: tuple[str, ...], plan: dict[str, Any]) -> Process:
        full = {"at": "", "task": False, "limit": 0, **plan} if plan else {}
        return self.crawl.start(words, full, self.settings)

    def _ended(self, fault: Fault, process: Process, hit: bool) -> Outcome:
        code = process.wait()
        endings = ENDINGS.get(fault.kind)
        outcome = Outcome(code, hit and (endings is None or code in endings), process.said, process.struck)
        if "Traceback" in process.said:
            said = f"{' '.join(process.words[:2])} ended with a traceback: {process.said[-2000:]}"
            outcome.wrong.append(Violation("ending", said))
        if hit and code != 0 and endings is not None and code not in endings:
            said = f"{' '.join(process.words[:2])} ended with {code} after {fault.kind}: {process.said[-500:]}"
            outcome.wrong.append(Violation("ending", said))
        return outcome

    def _at_point(self, fault: Fault, words: tuple[str, ...], plan: dict[str, Any]) -> Outcome:
        process = self._start(words, plan)
        process.wait()
        return self._ended(fault, process, bool(process.struck))

    def _timed(self, fault: Fault, words: tuple[str, ...], seconds: float) -> Outcome:
        process = self._start(words, {})
        with suppress(subprocess.TimeoutExpired):
            process.popen.wait(0.15 + fault.share * seconds)  # before that Python starts
        return self._ended(fault, process, strike(process.popen, group=True))

    def _on_a_full_disk(self, fault: Fault, words: tuple[str, ...]) -> Outcome:
        ground = self.crawl.ground
        assert isinstance(ground, EmbeddedGround)
        with SmallDisk(ground.folder, int(fault.share * 6)):
            process = self._start(words, {})
            process.wait()
        return self._ended(fault, process, process.popen.returncode != 0)

    @contextmanager
    def _held(self, words: tuple[str, ...], number: int, prefix: str = "write") -> Iterator[Process]:
        """Hold a command at a point within the block; not where it has the lock of the store: all would wait for it."""
        process = self._start(words, {"do": "hold", "number": number, "at": prefix})
        try:
            process.wait_struck()
            yield process
        finally:
            process.go()

    def _run_concurrent(self, command: Command, fault: Fault, words: tuple[str, ...], number: int) -> Outcome:
        """Run other commands while one is held: conflicting ones are rejected, compatible ones succeed."""
        wrong: list[Violation] = []
        let_run = 0
        with self._held(words, number) as process:
            hit = bool(process.struck)
            for other, allowed in _others(command) if hit else ():
                code = self.crawl.run(other).popen.returncode
                if code != (0 if allowed else _REFUSED):
                    said = f"{' '.join(other)} during {' '.join(words)} ended with {code}"
                    wrong.append(Violation("conflicts", said))
                let_run += other[0] == "fetch" and code != _REFUSED
            if hit:
                wrong += self.look(command)
        outcome = self._ended(fault, process, hit)
        outcome.wrong += wrong
        outcome.let_run = let_run
        if outcome.code:
            said = f"{' '.join(words)} ended with {outcome.code} though it was only held: {outcome.said[-500:]}"
            outcome.wrong.append(Violation("exit", said))
        return outcome

    def _server(self, fault: Fault, words: tuple[str, ...], number: int) -> Outcome:
        assert self.servers is not None
        with self._held(words, number, "send" if fault.kind == "solr" else "write") as process:
            hit = bool(process.struck)
            if hit:
                self.servers.crash(fault.kind)
        if hit:
            time.sleep(fault.share)
            self.servers.restore()
        return self._ended(fault, process, hit)

    def _container(self, command: Command, fault: Fault, words: tuple[str, ...]) -> Outcome:
        assert self.servers is not None
        process = self._start(words, {})
        hit = False
        while not hit and process.popen.poll() is None:
            found = self.servers.containers(command.job)
            if found:
                time.sleep(fault.share)
                hit = strike(found[0], signal.SIGKILL)
            else:
                time.sleep(0.05)
        return self._ended(fault, process, hit)


def _others(command: Command) -> list[tuple[tuple[str, ...], bool]]:
    """Return commands to run while one is held, and whether each may run; those that may run change nothing."""
    batch, reader, seeds = command.batch, (("readdb", "-stats"), True), ("inject", f"SEEDS-{command.round}")
    refused: dict[str, list[tuple[str, ...]]] = {
        "inject": [command.words],
        "generate": [command.words, ("generate", "-batchId", "x-1")],
        "fetch": [command.words, ("parse", batch), ("updatedb", batch)],
        "parse": [command.words, ("fetch", batch), ("index", batch)],
        "updatedb": [command.words, seeds, ("fetch", batch)],
        "index": [command.words, ("updatedb", batch)],
    }
    free = [(seeds, True)] if command.job in ("fetch", "parse", "generate") else []
    return [*((words, False) for words in refused[command.job]), *free, reader]
