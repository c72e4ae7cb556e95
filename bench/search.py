"""search: 50 HTTP queries a second, at a fixed rate, to `serve` over an embedded index of ROWS pages of about 2.5 KB.

The pages are made of the real words of six languages with their frequencies. They are kept in ``.cache`` for the next
run. The queries are a mix of keywords, questions, words with typing errors, hits while typing and suggestions.

Response times count from the time when a query is due, so that slow responses are not hidden by later requests. Runs
without and with slow queries next to the mix alternate, so that other work on the machine changes both alike. CPU
seconds are the server's. ``nice -n -20 scripts/bench search`` gives server and clients priority on a shared machine.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from bench.measuring import Cost, Measurement
from bench.search_pages import LANGUAGES, Vocabulary, index_pages, read_vocabulary, write_typo
from nutch2py.backends.analysis.analyzer import ANALYSIS_VERSION
from nutch2py.conf.configuration import Configuration

ROWS = (100_000,)
RATE = 50
"""Queries per second."""
ROUNDS, SECONDS = 3, 20
"""Runs without and with slow queries; seconds of each."""
SLOW_CLIENTS = 4
_CACHE = Path(__file__).resolve().parents[1] / ".cache"
_PAGES_VERSION = 1  # of the generated pages; increase it when they change
_CONNECTIONS = 64
_SEQUENTIAL = 150  # queries of a kind whose CPU time is measured
_TICKS = os.sysconf("SC_CLK_TCK")
_SHARES = {"keywords": 35, "question": 15, "typo": 15, "while typing": 15, "suggestions": 20}
"""Percent of the queries of each kind."""


class _Query(NamedTuple):
    kind: str
    path: str


def index_dir(rows: int) -> Path:
    """Return the folder of the kept index of a number of pages; make it when it is missing."""
    folder = _CACHE / f"search-{rows}-{_PAGES_VERSION}-{ANALYSIS_VERSION}"
    done = folder / "complete"
    if not done.exists():
        print(f"making an index of {rows:,} pages in {folder}", file=sys.stderr, flush=True)
        index_pages(Configuration.load(overrides={"storage.data.store": f"embedded:{folder}"}), rows)
        done.touch()
    return folder


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


class _Clients:
    """Connections to the server, reused by one request after another."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(self, path: str) -> None:
        """Request a path and read the response."""
        head = b""
        while not head:
            is_reused = bool(self._idle)
            reader, writer = self._idle.pop() if is_reused else await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):  # the server has closed an idle connection
                writer.close()
                if not is_reused:
                    raise
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path}: {head[:100]!r}")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        self._idle.append((reader, writer))

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


class LoadResult(NamedTuple):
    """``waited``: seconds from when each query was due until its response, by kind; ``slow``: of slow queries."""

    waited: dict[str, list[float]]
    slow: list[float]

    def all_waited(self) -> list[float]:
        """Return the response times of all kinds."""
        return [each for some in self.waited.values() for each in some]


async def run_load(port: int, queries: Sequence[_Query], slow_paths: Sequence[str] = ()) -> LoadResult:
    """Send queries at the fixed rate; next to them, ``SLOW_CLIENTS`` clients send one slow query after another."""
    clock = asyncio.get_running_loop().time
    clients, places = _Clients(port), asyncio.Semaphore(_CONNECTIONS)
    result = LoadResult({}, [])
    began, is_done = clock() + 0.1, False

    async def send(due: float, query: _Query) -> None:
        await asyncio.sleep(max(0.0, due - clock()))
        async with places:
            await clients.get(query.path)
        result.waited.setdefault(query.kind, []).append(clock() - due)

    async def send_slow(first: int) -> None:
        for path in itertools.cycle([*slow_paths[first:], *slow_paths[:first]]):
            if is_done:
                return
            started = clock()
            await clients.get(path)
            result.slow.append(clock() - started)

    slow = [asyncio.create_task(send_slow(number)) for number in range(SLOW_CLIENTS if slow_paths else 0)]
    await asyncio.gather(*(send(began + number / RATE, query) for number, query in enumerate(queries)))
    is_done = True
    await asyncio.gather(*slow)
    clients.close()
    return result


async def run_sequence(port: int, paths: Sequence[str]) -> None:
    """Send queries one after another."""
    clients = _Clients(port)
    for path in paths:
        await clients.get(path)
    clients.close()


def make_queries(vocabularies: dict[str, Vocabulary], chance: random.Random, number: int) -> list[_Query]:
    """Return a mix of queries in the languages of the pages."""
    kinds = chance.choices([*_SHARES], [*_SHARES.values()], k=number)
    languages = chance.choices([*LANGUAGES], [*LANGUAGES.values()], k=number)
    return [_make_query(kind, vocabularies[lang], chance) for kind, lang in zip(kinds, languages, strict=True)]


def _make_query(kind: str, words: Vocabulary, chance: random.Random) -> _Query:
    if kind == "question":
        return _Query(kind, f"/?{urlencode({'q': words.question(chance)})}")
    content = words.content(chance, chance.choice((1, 2, 2, 3)))
    if kind == "typo":
        at = chance.randrange(len(content))
        content[at] = write_typo(content[at], chance)
    text = words.join(content)
    if kind in ("keywords", "typo"):
        return _Query(kind, f"/?{urlencode({'q': text})}")
    typed = text[: max(2, len(text) - chance.randrange(4))]
    if kind == "suggestions":
        return _Query(kind, f"/suggest?{urlencode({'q': typed})}")
    return _Query(kind, f"/?{urlencode({'q': typed, 'partial': 1})}")


def make_slow_queries(words: Vocabulary, chance: random.Random) -> list[str]:
    """Return paths of queries that cost the server much, with all the characters that a query may have."""
    frequent = words.frequent(120)
    rare = [write_typo(write_typo(word, chance), chance) for word in words.content(chance, 120)]
    texts = [
        " ".join(frequent),
        " ".join(f'"{one} {other}"' for one, other in itertools.pairwise(frequent)),
        " ".join(rare),
        " OR ".join(words.content(chance, 100)),
        " ".join(f"{word[:2]}*" for word in dict.fromkeys(frequent) if len(word) > 2),
        " ".join(f"({one} OR -{other})" for one, other in itertools.pairwise(frequent)),
    ]
    return [f"/?{urlencode({'q': text[:1000]})}" for text in texts]


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _describe(name: str, waited: list[float]) -> str:
    cuts = statistics.quantiles(waited, n=100)
    return (
        f"{name}: p50 {cuts[49] * 1000:.1f} ms, p95 {cuts[94] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms, "
        f"longest {max(waited) * 1000:.0f} ms of {len(waited)}"
    )


def measure(rows: int, _folder: Path, _runner: str) -> list[Measurement]:
    """Measure the mix alone and next to slow queries; print response times and the load of the machine to stderr."""
    folder = index_dir(rows)
    chance = random.Random(7)
    vocabularies = {lang: read_vocabulary(lang) for lang in LANGUAGES}
    measured: list[Measurement] = []
    with serving(folder) as (port, process):
        asyncio.run(run_load(port, make_queries(vocabularies, chance, RATE * 10)))  # warm-up
        slow_paths = make_slow_queries(vocabularies["en"], chance)
        for kind in _SHARES:
            queries = (_make_query(kind, vocabularies[lang], chance) for lang in itertools.cycle(LANGUAGES))
            paths = [query.path for query in itertools.islice(queries, _SEQUENTIAL)]
            measured.append(_measure_sequence(f"search, {kind}", port, process, paths))
        measured.append(_measure_sequence("search, slow queries", port, process, slow_paths))
        waited: dict[bool, dict[str, list[float]]] = {False: {}, True: {}}
        slow: list[float] = []
        cost = Cost(0.0, 0.0, 0, 0)
        for number, has_slow in enumerate((False, True) * ROUNDS):
            queries = make_queries(vocabularies, chance, RATE * SECONDS)
            before, began = _cpu(process), time.monotonic()
            result = asyncio.run(run_load(port, queries, slow_paths if has_slow else ()))
            if not has_slow:
                memory = _resident(process)
                cost += Cost(_cpu(process) - before, time.monotonic() - began, memory, memory)
            for kind, some in result.waited.items():
                waited[has_slow].setdefault(kind, []).extend(some)
            slow += result.slow
            name = f"round {number // 2 + 1}, {'with slow queries' if has_slow else 'alone'}"
            print(f"{_describe(name, result.all_waited())}; load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        alone, beside = ([each for some in waited[which].values() for each in some] for which in (False, True))
        measured.append(Measurement(f"search, mix at {RATE} a second", len(alone), cost, "responses"))
    for kind, some in waited[False].items():
        print(_describe(f"alone, {kind}", some), file=sys.stderr)
    print(_describe("alone, all", alone), file=sys.stderr)
    print(_describe("with slow queries, all", beside), file=sys.stderr)
    if slow:
        print(f"{len(slow)} slow queries, {statistics.mean(slow) * 1000:.0f} ms each", file=sys.stderr)
    ratio = statistics.quantiles(beside, n=20)[18] / statistics.quantiles(alone, n=20)[18]
    print(f"p95 with slow queries: {ratio:.2f} times that of the mix alone", file=sys.stderr)
    print(f"{cost.cpu / len(alone) * 1000:.1f} ms of CPU a query of the mix", file=sys.stderr)
    return measured


def _measure_sequence(name: str, port: int, process: int, paths: Sequence[str]) -> Measurement:
    before, began = _cpu(process), time.monotonic()
    asyncio.run(run_sequence(port, paths))
    memory = _resident(process)
    return Measurement(
        name, len(paths), Cost(_cpu(process) - before, time.monotonic() - began, memory, memory), "responses"
    )
