"""search: an embedded index of ROWS pages of about 2.5 KB with 50 HTTP queries per second, at a fixed rate.

Response times count from the time when a query is due, so that slow responses are not hidden by later requests. Three
kinds: the first page of results with facets, hits while typing, and suggestions. CPU seconds are the server's.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from bench.measuring import Cost, Measurement
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.records.document import NutchDocument
from nutch2py.url.keys import reverse_url

ROWS = (100_000,)
RATE = 50
"""Queries per second."""
SECONDS = 20
_VOCABULARY = 60_000
_WORDS = 400
_CONNECTIONS = 16
_TICKS = os.sysconf("SC_CLK_TCK")
_SYLLABLES = [f"{first}{vowel}" for first in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


def vocabulary(chance: random.Random) -> list[str]:
    """Return words; the frequent ones are short and come first."""
    found = dict.fromkeys(
        "".join(chance.choices(_SYLLABLES, k=2 + number * 3 // _VOCABULARY)) for number in range(3 * _VOCABULARY)
    )
    return [*found][:_VOCABULARY]


def build(conf: Configuration, pages: int, words: list[str]) -> None:
    """Create the index: words in sentences, with natural frequencies (Zipf)."""
    chance = random.Random(pages)
    shares = [*itertools.accumulate(1 / (rank + 3) for rank in range(len(words)))]
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for number in range(pages):
        said = chance.choices(words, cum_weights=shares, k=_WORDS)
        sentences = (" ".join(said[at : at + 14]).capitalize() for at in range(0, _WORDS, 14))
        url = f"http://h{number // 500:04d}.bench.example/d{number % 7}/p{number % 500:04d}.html"
        document = NutchDocument()
        for name, value in {
            "id": reverse_url(url), "url": url, "host": urlsplit(url).netloc, "lang": chance.choice(("en", "de", "fr")),
            "title": " ".join(chance.choices(words, cum_weights=shares, k=5)).title(), "content": ". ".join(sentences),
            "type": chance.choice(("text/html", "text/html", "application/pdf")), "boost": "1.0",
            "date": f"20{chance.randrange(10, 27)}-0{chance.randrange(1, 10)}-11T00:00:00Z",
        }.items():  # fmt: skip
            document.add(name, value)
        writer.write(document)
    writer.close()


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """Serve the index of a folder; yield the port and the process."""
    command = [
        sys.executable,
        "-m",
        "nutch2py.cli",
        "serve",
        "--port",
        "0",
        "-D",
        f"storage.data.store=embedded:{folder}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield int(line.strip().rstrip("/").rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait()


class _Load:
    """Sends queries at a fixed rate; ``waited``: response times in seconds from when each query was due."""

    def __init__(self, port: int, paths: list[str]) -> None:
        self.port, self.paths = port, paths
        self.waited: list[float] = []
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self) -> None:
        """Send all queries."""
        began = asyncio.get_running_loop().time()
        places = asyncio.Semaphore(_CONNECTIONS)
        await asyncio.gather(
            *(self._ask(began + number / RATE, path, places) for number, path in enumerate(self.paths))
        )
        for _, writer in self._idle:
            writer.close()

    async def _ask(self, due: float, path: str, places: asyncio.Semaphore) -> None:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, due - clock()))
        async with places:
            reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"{path}: {head[:100]!r}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            self._idle.append((reader, writer))
            self.waited.append(clock() - due)


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def questions(words: list[str], chance: random.Random, number: int) -> list[str]:
    """Return queries of one to three words, frequent ones more often."""
    shares = [*itertools.accumulate(1 / (rank + 30) for rank in range(len(words)))]
    return [" ".join(chance.choices(words, cum_weights=shares, k=chance.choice((1, 2, 2, 3)))) for _ in range(number)]


def measure(rows: int, folder: Path, _runner: str) -> list[Measurement]:
    """Measure the three kinds; print response times to stderr."""
    chance = random.Random(7)
    words = vocabulary(chance)
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{folder}"})
    build(conf, rows, words)
    asked = questions(words, chance, RATE * SECONDS)
    prefixes = [query[: max(2, len(query) - chance.randrange(3))] for query in asked]
    kinds = {
        "first page": [f"/?{urlencode({'q': query})}" for query in asked],
        "while typing": [f"/?{urlencode({'q': query, 'part': 1})}" for query in prefixes],
        "suggestions": [f"/suggest?{urlencode({'q': query})}" for query in prefixes],
    }
    measured = []
    with serving(folder) as (port, process):
        for name, paths in kinds.items():
            asyncio.run(_Load(port, paths[:RATE]).run())  # warm-up
            load, before, began = _Load(port, paths), _cpu(process), time.monotonic()
            asyncio.run(load.run())
            memory = _resident(process)
            cost = Cost(_cpu(process) - before, time.monotonic() - began, memory, memory)
            measured.append(Measurement(f"search, {name}", len(paths), cost, "answers"))
            cuts = statistics.quantiles(load.waited, n=100)
            print(
                f"{name}: p50 {cuts[49] * 1000:.1f} ms, p95 {cuts[94] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms, "
                f"{cost.cpu / len(paths) * 1000:.1f} ms of CPU an answer",
                file=sys.stderr,
            )
    return measured
