"""A run of the harness: schedules one after the other, sites shared among some, and what they came to."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.counted_kills import strike
from tests.kill import disk
from tests.kill.crawl import Shop, Undisturbed, commands, cpu_seconds, undisturbed
from tests.kill.faults import Options, draw, kinds
from tests.kill.invariants import Violation, processes_of
from tests.kill.schedule import Report, Schedule
from tests.kill.servers import RealServers
from tests.kill.site import ROUNDS, Plan, served
from tests.kill.workspace import EmbeddedGround, MakeGround
from tests.processes import Terminated, alive, wait_until
from tests.processes import commands as all_commands

SHARED = 10
"""Schedules of a site."""
WHOLE = 4
"""One of this number of schedules continues to the end of the crawl, whenever its last fault was."""
_PATIENCE = 90.0
"""Seconds that drivers of jobs on YARN may take to end."""
Say = Callable[[str], None]
Stops = Callable[[Report], bool]
"""Whether a run stops after a schedule."""
Other = tuple[Options, int]
"""A schedule with options of its own."""


def _never(_: Report) -> bool:
    return False


@dataclass
class Summary:
    """Result of a run. ``tried``, ``hit``: by kind; ``failed``: number of a schedule -> what was wrong.

    ``interrupted``: the exit code of Ctrl-C or SIGTERM, when one came before all had run; else 0.
    """

    schedules: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)
    failed: dict[int, list[Violation]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    cpu: float = 0.0
    seconds: float = 0.0
    interrupted: int = 0

    @property
    def code(self) -> int:
        """The exit code of a run that is to find nothing."""
        return self.interrupted or bool(self.failed)

    def add(self, number: int, report: Report) -> None:
        self.schedules += 1
        for kind, hit in report.faults:
            self.tried[kind] += 1
            self.hit[kind] += hit
            self.survived[kind] += hit and not report.wrong
        if report.wrong:
            self.failed[number] = report.wrong

    def lines(self) -> Iterator[str]:
        """Yield the table of the faults, and a closing line."""
        yield f"{'fault':<12} {'tried':>6} {'hit':>6} {'survived':>9}"
        for kind in self.tried:
            yield f"{kind:<12} {self.tried[kind]:>6} {self.hit[kind]:>6} {self.survived[kind]:>9}"
        total = [sum(each.values()) for each in (self.tried, self.hit, self.survived)]
        yield f"{'all':<12} {total[0]:>6} {total[1]:>6} {total[2]:>9}"
        for kind, why in self.skipped.items():
            yield f"{kind}: skipped, {why}"
        cut = "interrupted after " if self.interrupted else ""
        yield (f"{cut}{self.schedules} schedules, {len(self.failed)} failed; {self.cpu:.0f} CPU seconds")


@dataclass
class Harness:
    """Runs schedules. ``package``: a folder with another nutch2py to try, None for this one.

    ``shared``: how many schedules share a site. ``whole``: one of so many continues to the end of its crawl, 0: none.
    ``started``: servers by their kind, which are used instead of ones that are started for this.
    """

    seed: str
    options: Options
    folder: Path
    say: Say = print
    package: Path | None = None
    shared: int = SHARED
    whole: int = WHOLE
    started: Mapping[str, Any] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def run(self, numbers: list[int], stops: Stops = _never, others: Iterable[Other] = ()) -> Summary:
        """Run schedules by their numbers, until ``stops`` or Ctrl-C; then ``others`` over the site of the last one."""
        summary = Summary()
        began, spent = time.monotonic(), cpu_seconds()
        try:
            self._run(summary, numbers, stops, others)
        except KeyboardInterrupt as stop:
            summary.interrupted = 143 if isinstance(stop, Terminated) else 130
        summary.cpu, summary.seconds = cpu_seconds() - spent, time.monotonic() - began
        return summary

    def _run(self, summary: Summary, numbers: list[int], stops: Stops, others: Iterable[Other]) -> None:
        with self.stack:
            self.stack.callback(self._end_processes)
            library = disk.fsync_library(self.folder)
            if library is None and self.options.store == "embedded":
                summary.skipped["fsync"] = "there is no C compiler"
            if self.options.store == "embedded" and not disk.can_mount(self.folder):
                summary.skipped["disk"] = "this user may not mount a tmpfs"
            shop = Shop(self.folder, library, self.package)
            servers = RealServers(self.options, self.folder, self.stack, self.started)
            summary.skipped.update(servers.missing)
            self.stack.callback(self._tell_drivers)  # before the servers go
            site_of, whole, close = -1, None, ExitStack()
            for number in numbers:
                if number // self.shared != site_of:
                    close.close()
                    site_of, close = number // self.shared, self.stack.enter_context(ExitStack())
                    sharing = [n for n in numbers if n // self.shared == site_of]
                    rounds = self._rounds(sharing, frozenset(summary.skipped))
                    whole = close.enter_context(self._undisturbed(shop, servers, site_of, rounds))
                assert whole is not None
                report = self._schedule(shop, servers, whole, number, frozenset(summary.skipped))
                summary.add(number, report)
                self._tell(number, report)
                if stops(report):
                    break
            for self.options, number in others:
                assert whole is not None
                servers = RealServers(self.options, self.folder, self.stack)
                report = self._schedule(shop, servers, whole, number, frozenset(summary.skipped))
                summary.add(number, report)
                self._tell(number, report)

    def _rounds(self, numbers: list[int], without: frozenset[str]) -> int:
        """Return how many rounds some schedules need."""
        if any(self.whole and number % self.whole == 0 for number in numbers):
            return ROUNDS
        planned = commands(Plan("any"))
        jobs = [command.job for command in planned]
        struck = [fault.command for n in numbers for fault in draw(self.seed, n, self.options, jobs, without)]
        return max(planned[place].round for place in struck)

    def _tell_drivers(self) -> None:
        """Let drivers end their applications on YARN, by themselves."""
        if self.options.runner != "hadoop":
            return
        ours = set(processes_of(self.folder))
        drivers = [pid for pid, words in all_commands() if pid in ours and b"nutch2py.cli" in words]
        for pid in drivers:
            strike(pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        wait_until(lambda: not any(map(alive, drivers)) or time.monotonic() > deadline)

    def _end_processes(self) -> None:
        """End what a schedule that was interrupted has started: Ctrl-C reaches only this process."""
        for pid in processes_of(self.folder):
            strike(pid)

    @contextmanager
    def _undisturbed(self, shop: Shop, servers: RealServers, number: int, rounds: int) -> Iterator[Undisturbed]:
        folder = self.folder / f"site-{number}"
        with served(f"{self.seed} {number}") as site:
            self.say(f"site {number}: {site.plan.count} pages on {len(site.plan.hosts)} hosts")
            make = self._maker(servers, f"whole{number}")
            copies = self.options.store == "embedded" and self.options.index == "embedded"
            yield undisturbed(shop, site, folder, make, copies=copies, rounds=rounds)
        shutil.rmtree(folder)

    def _maker(self, servers: RealServers, name: str) -> MakeGround:
        if self.options.store == "embedded" and self.options.index == "embedded":
            return EmbeddedGround
        return servers.maker(name)

    def _schedule(
        self, shop: Shop, servers: RealServers, whole: Undisturbed, number: int, without: frozenset[str]
    ) -> Report:
        jobs = [command.job for command in commands(whole.site.plan)]
        faults = draw(self.seed, number, self.options, jobs, without)
        make = self._maker(servers, f"s{number}")
        folder = self.folder / f"schedule-{self.options.runner}-{number}"
        to_the_end = bool(self.whole) and number % self.whole == 0
        return Schedule(shop, whole, folder, make, faults, servers.settings, servers, to_the_end=to_the_end).run()

    def _tell(self, number: int, report: Report) -> None:
        verdict = "FAILED" if report.wrong else "as undisturbed"
        self.say(f"{number}: {'; '.join(report.messages)}: {verdict}, {report.seconds:.0f} s")
        for each in report.wrong:
            self.say(f"    [{each.invariant}] {each}")
        if report.wrong:
            options = self.options
            self.say(
                f"    replay: scripts/test kill --seed {self.seed} --store {options.store} --runner {options.runner} "
                f"--index {options.index} --only {number}"
            )


def run(
    seed: str,
    options: Options,
    numbers: list[int],
    *,
    package: Path | None = None,
    stops: Stops = _never,
    keep: bool = False,
    say: Say | None = None,
    shared: int = SHARED,
    whole: int = WHOLE,
    started: Mapping[str, Any] | None = None,
    others: Iterable[Other] = (),
) -> Summary:
    """Run schedules in a folder of their own, which goes with them unless one failed and ``keep`` is set.

    See :class:`Harness` for the rest.
    """
    names = [kind.name for kind in kinds(options)]
    report: Say = say or _flushed
    report(f"faults: {', '.join(names)}")
    folder = Path(tempfile.mkdtemp(prefix="nutch2py-kill-"))
    harness = Harness(seed, options, folder, report, package, shared, whole, started or {})
    try:
        summary = harness.run(numbers, stops, others)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if summary.failed and keep:
        report(f"what failed is in {folder}")
    else:
        shutil.rmtree(folder)
    return summary


def _flushed(line: Any) -> None:
    print(line, file=sys.stdout, flush=True)
