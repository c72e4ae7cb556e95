"""inject: ROWS seeds, 100 per host, into an empty table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Measurement, Nutch

ROWS = (10_000, 100_000, 1_000_000)
AIMS = {100_000: 12.0}
_SECTIONS = ("news", "docs", "blog", "wiki", "about", "products/list", "archive/2019", "en/library")


def seed_lines(count: int) -> Iterator[str]:
    """Yield reproducible seeds: 100 URLs per host, shuffled, with realistic lengths."""
    chance = random.Random(count)
    hosts = max(count // 100, 1)
    numbers = list(range(count))
    chance.shuffle(numbers)
    for number in numbers:
        host, page = number % hosts, number // hosts
        section = _SECTIONS[(host * 7 + page) % len(_SECTIONS)]
        name = f"p{page:03d}.html" if page % 5 else f"title-of-page-{page}-of-this-section/"
        end = "com" if host % 2 else "org"
        yield f"http://www{host % 3}.site-{host:05d}.example.{end}/{section}/{name}\n"


def write_seeds(count: int, folder: Path) -> Path:
    """Write the seeds into a file."""
    path = folder / "seeds.txt"
    with path.open("w", encoding="ascii") as file:
        file.writelines(seed_lines(count))
    return path


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py inject``."""
    cost = Nutch(folder, runner)("inject", str(write_seeds(rows, folder)))
    return [Measurement(f"inject {rows:,} new seeds", rows, cost, "seeds", AIMS.get(rows))]
