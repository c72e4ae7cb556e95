"""The kinds of faults, and what a schedule draws of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "index")


@dataclass(frozen=True)
class Options:
    """Where schedules run. ``runner``: of the commands that are struck; the others run inline."""

    store: str = "embedded"
    runner: str = "inline"
    index: str = "embedded"


class Kind(NamedTuple):
    """A kind of fault: what it does, how often it is drawn, the jobs that it can strike, and where it is possible."""

    name: str
    does: str
    weight: int
    jobs: tuple[str, ...] = JOBS
    stores: tuple[str, ...] = ("embedded", "hbase")
    runners: tuple[str, ...] = ("inline", "local")
    indexes: tuple[str, ...] = ("embedded", "solr")

    def possible(self, options: Options) -> bool:
        return options.store in self.stores and options.runner in self.runners and options.index in self.indexes


_EMBEDDED, _HERE = ("embedded",), ("inline", "local")
KINDS = {
    kind.name: kind
    for kind in (
        Kind("group", "SIGKILL to the driver and all that it started, at a counted point", 5),
        Kind("driver", "SIGKILL to the driver alone, at a counted point", 4),
        Kind("task", "SIGKILL to a task, at a counted point", 4, runners=("local",)),
        Kind("timed", "SIGKILL to the driver and all that it started, at a given time", 3),
        Kind("parser", "SIGKILL to the child that parses, within a page", 2, jobs=("parse",)),
        Kind("SIGINT", "SIGINT to the driver", 1),
        Kind("SIGTERM", "SIGTERM to the driver", 1),
        Kind("size", "no file may grow any more (RLIMIT_FSIZE)", 2, stores=_EMBEDDED),
        Kind("disk", "the file system is full (a small tmpfs)", 2, stores=_EMBEDDED),
        Kind("fsync", "fsync and fdatasync fail with EIO (a library in between)", 2, stores=_EMBEDDED),
        Kind("concurrent", "other commands run while the job is held at a point", 3),
        Kind("gateway", "SIGKILL to the Thrift gateway", 5, stores=("hbase",)),
        Kind("hbase", "SIGKILL to HBase", 4, stores=("hbase",)),
        Kind("solr", "SIGKILL to Solr", 4, jobs=("index",), indexes=("solr",)),
        Kind("container", "SIGKILL to the task in a YARN container", 4, runners=("hadoop",)),
        Kind("yarn driver", "SIGKILL to the driver of a job on YARN", 2, runners=("hadoop",)),
    )
}


@dataclass(frozen=True)
class Fault:
    """A fault that is planned.

    ``command``: the command that it strikes, by its place in the crawl; ``share``: where in its course, 0 to 1.
    ``after``: what runs then: ``same`` command, ``resume`` (the same with -resume), ``other`` (a reader or
    inject, then the same), ``next`` (the next command first, where the crawl can do without the same).
    """

    kind: str
    command: int
    share: float
    after: str
    other: str


def kinds(options: Options) -> list[Kind]:
    """Return the kinds that are possible."""
    return [kind for kind in KINDS.values() if kind.possible(options)]


def draw(seed: str, number: int, options: Options, jobs: list[str], without: frozenset[str]) -> list[Fault]:
    """Draw the faults of a schedule over a crawl of these jobs: one to three, ordered by the command they strike.

    The kind of the first goes round all kinds, so that a few dozen schedules meet each; a command may be struck twice:
    then it is the repeat that is struck, too. ``without``: kinds that this machine cannot do.
    """
    chance = random.Random(f"faults {seed} {number}")
    there = [kind for kind in kinds(options) if kind.name not in without]
    deck = [kind.name for kind in there for _ in range(kind.weight)]
    random.Random(f"deck {seed}").shuffle(deck)
    dear = options.store == "hbase" or options.runner == "hadoop"
    names = [deck[number % len(deck)]] + [
        chance.choice(deck) for _ in range(0 if dear else chance.choice([0, 0, 1, 1, 2]))
    ]
    faults: list[Fault] = []
    for name in names:
        struck = chance.choice([job for job in KINDS[name].jobs if job in jobs])  # each as often, however often it runs
        places = [place for place, job in enumerate(jobs) if job == struck]
        again = [fault.command for fault in faults if fault.command in places]
        place = chance.choice(again) if again and chance.random() < 0.4 else chance.choice(places)
        after = chance.choice(["same", "same", "resume", "other", "next"])
        faults.append(Fault(name, place, chance.random(), after, chance.choice(["reader", "inject"])))
    return sorted(faults, key=lambda fault: fault.command)
