"""The commands of a crawl, as processes by the real command line, and the undisturbed crawl of a site."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.kill import points
from tests.kill.invariants import after_a_round
from tests.kill.site import ROUNDS, Plan, Site
from tests.kill.workspace import EmbeddedGround, Ground, MakeGround, Seen

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0
"""A command that takes longer hangs."""


class Command(NamedTuple):
    """A command of the crawl. ``words`` name the seed file as ``SEEDS``."""

    round: int
    job: str
    batch: str
    words: tuple[str, ...]


def commands(plan: Plan, rounds: int = ROUNDS) -> list[Command]:
    """Return the commands of a crawl in their order."""
    found: list[Command] = []
    for number in range(1, rounds + 1):
        batch = f"b-{number}"
        top = ("-topN", str(plan.top)) if plan.top else ()
        generate = ("generate", *top, "-adddays", str(31 * (number - 1)), "-batchId", batch)
        of_batch = ((job, batch) for job in ("fetch", "parse", "updatedb", "index"))
        found += [
            Command(number, words[0], batch, words) for words in (("inject", f"SEEDS-{number}"), generate, *of_batch)
        ]
    return found


class Shop:
    """Common environment of a harness's processes: folder of the hook, package that runs, fsync library.

    ``package``: a folder with another nutch2py that is to run, None for this one.
    """

    def __init__(self, folder: Path, library: Path | None = None, package: Path | None = None) -> None:
        self.folder, self.library = folder, library
        hook = folder / "hook"
        hook.mkdir()
        shutil.copy(points.__file__, hook / "sitecustomize.py")
        self.path = os.pathsep.join([str(hook), str(package or ROOT)])


class Process:
    """A command that was started. ``struck``: the point at which it was, "" for none."""

    def __init__(self, shop: Shop, folder: Path, words: list[str], plan: dict[str, Any], number: int) -> None:
        self.strikes = folder / "strikes" / str(number)
        self.strikes.mkdir(parents=True)
        (self.strikes / "plan.json").write_text(json.dumps(plan))
        self._log = self.strikes / "said"
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": shop.path,
            "TMPDIR": str(temporary),
            points.FOLDER: str(self.strikes),
            "NUTCH2PY_FSYNC_FAILS": str(self.strikes / "fsync"),
        }
        environment.pop(points.DRIVER, None)
        if plan.get("do") == "fsync":
            environment["LD_PRELOAD"] = str(shop.library)
        self.words = words
        with self._log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "nutch2py.cli", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=folder,
                env=environment,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def struck(self) -> str:
        path = self.strikes / "struck"
        return path.read_text() or "?" if path.exists() else ""

    def points(self) -> list[str]:
        path = self.strikes / "points"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def go(self) -> None:
        """End a hold."""
        (self.strikes / "go").touch()

    def wait_struck(self) -> bool:
        """Wait until a point was struck or the command has ended; return whether it was."""
        while not self.struck and self.popen.poll() is None:
            time.sleep(0.01)
        return bool(self.struck)

    def wait(self) -> int:
        return self.popen.wait(SECONDS)


class Crawl:
    """A crawl in a folder: ``ground`` is its table and index. Runs its commands."""

    def __init__(self, shop: Shop, site: Site, folder: Path, ground: Ground) -> None:
        self.shop, self.site, self.folder, self.ground = shop, site, folder, ground
        self.commands = commands(site.plan)
        self._number = 0
        for number in range(1, ROUNDS + 1):
            lines = "".join(f"{url}\n" for url in site.plan.seeds(number))
            (folder / f"seeds-{number}.txt").write_text(lines)

    def start(
        self, words: tuple[str, ...], plan: dict[str, Any] | None = None, settings: dict[str, str] | None = None
    ) -> Process:
        """Start a command, to be struck by a plan."""
        self._number += 1
        real = [str(self.folder / f"{w.lower()}.txt") if w.startswith("SEEDS") else w for w in words]
        options = [w for n, v in {**self.ground.settings, **(settings or {})}.items() for w in ("-D", f"{n}={v}")]
        return Process(self.shop, self.folder, [*real, *options], plan or {}, self._number)

    def run(self, words: tuple[str, ...], settings: dict[str, str] | None = None) -> Process:
        """Run a command to its end."""
        process = self.start(words, settings=settings)
        process.wait()
        return process


@dataclass
class Undisturbed:
    """An undisturbed crawl: for each command the state before and after, its points for faults, and its duration.

    ``states[n]``: before command n; ``points[n]``: the points of command n in their order; ``asked``: batch -> URL ->
    how often it was fetched; ``copies``: folders with the crawl before each command, if it is in a folder.
    """

    site: Site
    states: list[Seen] = field(default_factory=list)
    points: list[list[str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    asked: dict[str, Counter[str]] = field(default_factory=dict)
    copies: list[Path] = field(default_factory=list)

    ends: dict[int, int] = field(default_factory=dict)
    """Round -> the place after its last command."""

    def round_of(self, place: int) -> int:
        """Return the round of the command at a place."""
        return min(number for number, end in self.ends.items() if place < end)


def undisturbed(
    shop: Shop, site: Site, folder: Path, make_ground: MakeGround, *, copies: bool, rounds: int = ROUNDS
) -> Undisturbed:
    """Crawl a site; ``copies``: keep the crawl as it is before each command, so that schedules can start there."""
    folder.mkdir()
    ground = make_ground(site.plan, folder / "crawldata")
    crawl = Crawl(shop, site, folder, ground)
    made = Undisturbed(site)
    for number, command in enumerate(commands(site.plan, rounds)):
        site.round = command.round
        made.states.append(ground.seen())
        if copies:
            assert isinstance(ground, EmbeddedGround)
            made.copies.append(folder / f"before-{number}")
            ground.copy(made.copies[-1])
        site.asked.clear()
        began = time.monotonic()
        process = crawl.run(command.words)
        made.seconds.append(time.monotonic() - began)
        assert process.popen.returncode == 0, f"{' '.join(command.words)}: {process.said}"
        made.points.append(process.points())
        if command.job == "fetch":
            made.asked[command.batch] = Counter(site.asked)
        if command.job == "index":
            made.ends[command.round] = number + 1
            wrong = [*after_a_round(ground, ground.seen())]
            assert not wrong, f"of the undisturbed crawl: {wrong}"
    made.states.append(ground.seen())
    ground.remove()
    return made


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all that it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
