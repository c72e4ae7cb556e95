"""One schedule: a crawl that is struck at the points of its faults, and the violations found."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.records.webpage import Mark
from nutch2py.url.keys import unreverse_url
from tests.kill import invariants
from tests.kill.crawl import Command, Crawl, Process, Shop, Undisturbed
from tests.kill.faults import Fault
from tests.kill.invariants import Violation
from tests.kill.kill_moments import Outcome, Servers, Striker
from tests.kill.workspace import EmbeddedGround, MakeGround, Seen, differences

_GONE_WITHIN = {"yarn driver": 120.0}
"""Seconds that what a driver has started may take to notice that it is gone; on YARN a JVM ends the application."""
_GONE = 10.0
_SHOWN = 8


@dataclass
class Report:
    """Result of a schedule. ``faults``: (kind, hit) of each that was tried; ``wrong``: violations."""

    faults: list[tuple[str, bool]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    wrong: list[Violation] = field(default_factory=list)
    seconds: float = 0.0


class Schedule:
    """A crawl with faults, from its first fault to the end of the round of the last one.

    What comes before and after is the same as in the undisturbed crawl, to which each repeat is compared.
    ``to_the_end``: it continues to the end of the crawl nevertheless. ``settings``: those of struck commands.
    """

    def __init__(
        self,
        shop: Shop,
        whole: Undisturbed,
        folder: Path,
        make_ground: MakeGround,
        faults: list[Fault],
        settings: dict[str, str],
        servers: Servers | None = None,
        *,
        to_the_end: bool = True,
    ) -> None:
        self.whole, self.faults, self.folder = whole, faults, folder
        folder.mkdir()
        self.first = faults[0].command if whole.copies else 0
        if whole.copies:
            shutil.copytree(whole.copies[self.first], folder / "crawldata")
        self.ground = make_ground(whole.site.plan, folder / "crawldata")
        last = whole.round_of(faults[-1].command)
        self.stop = len(whole.points) if to_the_end else whole.ends[last]
        self.crawl = Crawl(shop, whole.site, folder, self.ground)
        self.striker = Striker(self.crawl, settings, servers, self._held)
        self.report = Report()
        self.allowed: Counter[str] = Counter()
        self.struck_last = -1
        self._commits: dict[str, int] = {}

    def run(self) -> Report:
        """Run it; return what was found. The folder is deleted when nothing was wrong."""
        place, began = self.first, time.monotonic()
        while place < self.stop and not self.report.wrong:
            place = self._step(place)
        if not self.report.wrong:
            self._end(place)
        if not self.report.wrong:
            self.ground.remove()
            shutil.rmtree(self.folder)
        self.report.seconds = time.monotonic() - began
        return self.report

    # one command

    def _step(self, place: int) -> int:
        """Run a command with its faults; return the place of the next one that has not run."""
        command = self.crawl.commands[place]
        site = self.whole.site
        site.round = command.round
        faults = [fault for fault in self.faults if fault.command == place]
        if command.job == "fetch":
            site.asked.clear()
            self.allowed.clear()
        words, done, skip = command.words, False, 0
        for fault in faults:
            done, words, skip = self._struck(place, command, fault, words)
            if done or self.report.wrong:
                break
        if self.report.wrong:
            return place
        if skip:
            return self._next_first(place, command)
        if not done:
            self._whole(command, words, repeated=bool(faults))
        if command.job == "fetch":
            self._check("after fetch", lambda: invariants.fetched_too_often(site.asked, self.allowed))
        if faults:
            self._compare(place + 1)
        return place + 1

    def _struck(
        self, place: int, command: Command, fault: Fault, words: tuple[str, ...]
    ) -> tuple[bool, tuple[str, ...], int]:
        """Strike; return whether the command is done, the words to repeat it with, and 1 if the next may come first."""
        if command.job == "fetch":
            self._allow(command, words)
        if self.struck_last == place:  # a repeat has less to do
            fault = replace(fault, share=fault.share / 2)
        self.struck_last = place
        outcome = self.striker.strike(command, fault, self.whole.points[place], self.whole.seconds[place], words)
        self._note(command, fault, outcome, words)
        self._wait_for_the_end(_GONE_WITHIN.get(fault.kind, _GONE))
        if command.job == "fetch":
            for _ in range(outcome.let_run):
                self._allow(command, command.words)
        if self.report.wrong:
            return False, words, 0
        seen = self.ground.seen()
        self._look(command, seen)
        state = seen.batches.get(command.batch, ("", 0, 0))[0]
        if outcome.code == 0:
            if (
                fault.kind == "parser" and outcome.hit
            ):  # the page is named in the log; this tries it again, as the docs say
                return False, ("parse", command.batch, "-resume"), 0
            if "the lock of this job cannot be released" in outcome.said:  # the next job takes it away, as that says
                seeds = ("inject", f"SEEDS-{command.round}")
                self._expect(self.crawl.run(seeds), seeds)
            return True, words, 0
        if fault.after == "other" and place > 0:  # after the first command there may be no table to read
            seeds = ("inject", f"SEEDS-{command.round}")
            other = seeds if fault.other == "inject" and command.job != "inject" else ("readdb", "-stats")
            self._expect(self.crawl.run(other), other)
        if fault.after == "resume" and command.job in ("fetch", "parse"):
            return False, (command.job, command.batch, "-resume"), 0
        committed = command.job == "updatedb" and state in (BatchState.APPLYING, BatchState.UPDATED)
        again = any(later.command == place for later in self.faults[len(self.report.faults) :])
        struck_next = any(later.command == place + 1 for later in self.faults)
        last = place + 1 == self.stop
        if (
            fault.after == "next"
            and not again
            and not struck_next
            and not last
            and (committed or command.job == "index")
        ):
            return False, words, 1
        return False, words, 0

    def _next_first(self, place: int, command: Command) -> int:
        """Run the next command before this one, or instead of it where that is promised."""
        following = self.crawl.commands[place + 1]
        self.whole.site.round = following.round
        self._whole(following, following.words)
        if command.job == "index":
            self._whole(command, command.words, repeated=True)
        self._compare(place + 2)
        return place + 2

    def _whole(self, command: Command, words: tuple[str, ...], repeated: bool = False) -> None:
        """Run a command undisturbed."""
        if command.job == "fetch":
            self._allow(command, words)
        settings = self.striker.settings if repeated else None
        process = self.crawl.run(words, settings)
        if not (repeated and command.job == "index" and process.popen.returncode == 1):  # it was done, and forgotten
            self._expect(process, words)

    def _expect(self, process: Process, words: tuple[str, ...]) -> None:
        if process.popen.returncode != 0:
            said = f"{' '.join(words)} ended with {process.popen.returncode}: {process.said[-2000:]}"
            self.report.wrong.append(Violation("exit", said))

    def _allow(self, command: Command, words: tuple[str, ...]) -> None:
        """Count that a fetch may ask for the pages of its batch once; with -resume for those that are not stored."""
        urls = self.whole.asked[command.batch]
        stored = set()
        if "-resume" in words:
            rows = self.ground.seen().rows
            stored = {
                unreverse_url(key) for key, cells in rows.items() if invariants.mark(cells, Mark.FETCH) == command.batch
            }
        self.allowed.update(url for url in urls if url not in stored)

    # checks of the crawl

    def _held(self, command: Command) -> list[Violation]:
        """Check the crawl while a command is held at a point."""
        seen = self.ground.seen()
        marked = invariants.marked_is_indexed(seen, command.batch) if command.job == "index" else ()
        found = (*invariants.at_any_time(seen), *marked)
        return [Violation(each.invariant, f"while it is held: {each}") for each in found]

    def _look(self, command: Command, seen: Seen) -> None:
        """Check the state after a strike, before anything runs."""
        self._check("at once", lambda: invariants.at_any_time(seen))
        if command.job == "index":
            self._check("at once", lambda: invariants.marked_is_indexed(seen, command.batch))
        state, _, since = seen.batches.get(command.batch, ("", 0, 0))
        if command.job == "updatedb" and state == BatchState.APPLYING:
            self._commits[command.batch] = since

    def _compare(self, place: int) -> None:
        """Compare with the undisturbed crawl before the command at a place."""
        seen = self.ground.seen()
        self._check(f"before command {place}", lambda: _unequal(seen, self.whole.states[place]))
        for batch, committed in self._commits.items():
            keys = {key for key in seen.rows if invariants.mark(seen.rows[key], Mark.UPDATEDB) == batch}
            self._check("timestamps", lambda keys=keys, b=batch, c=committed: invariants.stamped(seen, keys, b, c))
        self._commits.clear()

    def _end(self, place: int) -> None:
        seen, whole = self.ground.seen(), self.whole.states[place]
        self._check("at the end", lambda: _unequal(seen, whole))
        self._check("at the end", lambda: invariants.after_a_round(self.ground, seen))
        self._check("files", lambda: invariants.left_over(self.folder / "tmp"))
        left = invariants.processes_of(self.folder)
        self._check("processes", lambda: (Violation("processes", f"process {pid}") for pid in left))
        if invariants.sums(seen) != invariants.sums(whole):
            said = f"sums of cash and scores: {invariants.sums(seen)}, not {invariants.sums(whole)}"
            self.report.wrong.append(Violation("sums", said))

    def _check(self, when: str, look: Callable[[], Iterable[Violation]]) -> None:
        found = [*look()]
        self.report.wrong += [Violation(each.invariant, f"{when}: {each}") for each in found[:_SHOWN]]
        if len(found) > _SHOWN:
            self.report.wrong.append(Violation(found[-1].invariant, f"{when}: {len(found) - _SHOWN} more"))

    def _wait_for_the_end(self, seconds: float) -> None:
        """Wait until what a killed driver has left running has noticed it."""
        until = time.monotonic() + seconds
        while left := invariants.processes_of(self.folder):
            if time.monotonic() > until:
                said = f"processes {left} run on {seconds:g} s after their driver has ended"
                self.report.wrong.append(Violation("processes", said))
                return
            time.sleep(0.05)

    def _note(self, command: Command, fault: Fault, outcome: Outcome, words: tuple[str, ...]) -> None:
        self.report.faults.append((fault.kind, outcome.hit))
        how = f"hit at {outcome.where or 'a time'}" if outcome.hit else "missed"
        after = fault.after if outcome.code else "nothing"
        self.report.messages.append(f"{fault.kind} on {' '.join(words)}: {how}, exit {outcome.code}, then {after}")
        self.report.wrong += outcome.wrong


def _unequal(found: Seen, expected: Seen) -> list[Violation]:
    return [Violation("equal", line) for line in differences(found, expected)]


def is_copyable(ground: object) -> bool:
    """Return whether a crawl on this backend can start in its middle."""
    return isinstance(ground, EmbeddedGround)
