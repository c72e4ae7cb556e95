"""Pictures of every kind from no, one, some and ten thousand values, and with names that mean harm."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from nutch2py.pictures.bars import bars
from nutch2py.pictures.gantt import Work, gantt
from nutch2py.pictures.graph import Edge, graph
from nutch2py.pictures.lines import lines
from nutch2py.pictures.picture import Picture
from nutch2py.pictures.stacks import Bar, Bucket, histogram, stacks
from nutch2py.pictures.words import size, span

BEGAN = 1_763_870_000_000
PARTS = ("fetched", "redirected", "gone", "failed")
HOSTILE = (
    "</text></svg><script>document.title='ran'</script>",
    "\"' onload=\"document.title='ran'",
    "\u202egro.elpmaxe\u2066\u0000\u0007\ufffe",
    "שלום.עולם.example",
    "北京奥林匹克运动会组织委员会.例子.测试" * 3,
    "a" * 8192,
    "&lt;b&gt;&#0;]]><!--",
    "",
)
COUNTS = (0, 1, 2, 7, 40, 10_000)


def pictures(count: int, names: tuple[str, ...] = ()) -> Iterator[Picture]:
    """Yield a picture of each kind, of so many values; ``names`` are used in turn where there are any."""
    chance = random.Random(count)

    def name(number: int, else_: str) -> str:
        return names[number % len(names)] + str(number // len(names) or "") if names else f"{else_}{number}"

    def parts() -> list[float]:
        return [chance.randint(500, 3000), chance.randint(0, 300), chance.randint(0, 200), chance.randint(0, 900)]

    grown = [BEGAN + 7_200_000 * number for number in range(count)]
    yield lines("Pages over time", ("known", "fetched"),
                [(at, (90 * number, 40 * number)) for number, at in enumerate(grown)], "none yet")  # fmt: skip
    yield stacks("Rounds", PARTS, [Bar(name(number, ""), parts()) for number in range(count)], "none yet")
    yield bars("Hosts", PARTS, [Bar(name(number, "www.example.org/"), parts()) for number in range(count)], "none yet")
    works = [
        Work(
            name(number % 5, "fetch"),
            at,
            at + chance.randint(0, 7_000_000),
            1 + 3 * (number % 9 == 8),
            name(number, ""),
        )
        for number, at in enumerate(grown)
    ]
    yield gantt("Jobs", works, "none yet", [(1, "finished"), (4, "failed")])
    edges = [
        Edge(name(number, "host"), name(chance.randrange(count), "host"), chance.randint(1, 500))
        for number in range(count)
    ]
    edges += [Edge(name(0, "host"), name(1, "host"), 7)] if count else []
    yield graph("Links", edges, {name(number, "host"): number for number in range(count)}, "none yet")
    buckets = min(count, 60)
    for title, shown in (("Times", span), ("Sizes", size)):
        spans = [Bucket(2.0**number, 2.0 ** (number + 1), chance.randint(1, 9**number)) for number in range(buckets)]
        yield histogram(title, [*spans, Bucket(2.0**buckets, math.inf, buckets)], "none yet", shown)
