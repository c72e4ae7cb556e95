"""hosts: ROWS pages of a thousand hosts, with a crawl delay, and from slow servers; pages per second of wall time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.fetch import BATCH, fetched
from bench.measuring import CommandError, Cost, Measurement, Nutch, run
from nutch2py.conf.configuration import Configuration

ROWS = (10_000,)
THREADS = 500
_HOSTS = 1_000
_SLOW_PAGES = 3  # of each host, when a server responds after a second
_PAGE = 10_240
_SERVER = """
import asyncio, json, sys
delay, size, report = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
head = "HTTP/1.1 {} \\r\\nContent-Type: text/html\\r\\nContent-Length: {}\\r\\n\\r\\n"
page = (head.format(200, size)).encode() + b"x" * size
none = (head.format(404, 0)).encode()
requested, responded = [], []

async def serve(reader, writer):
    now = asyncio.get_running_loop().time
    try:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                pass
            robots = line.startswith(b"GET /robots.txt")
            (requested if not robots else []).append(now())
            if delay:
                await asyncio.sleep(delay)
            writer.write(none if robots else page)
            await writer.drain()
            if not robots:
                responded.append(now())
    except ConnectionError:
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    first, last = min(requested), max(responded)
    json.dump({"pages": len(responded), "seconds": last - first, "ended": last}, open(report, "w"))
    server.close()

asyncio.run(main())
"""
"""A server of every host: pages of SIZE bytes after DELAY seconds, no robots.txt; it reports the request times."""
_FLOOR = """
import aiohttp, asyncio, itertools, sys
from aiohttp.abc import AbstractResolver

class Here(AbstractResolver):
    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]
    async def close(self):
        pass

async def main():
    by_host = itertools.groupby(open(sys.argv[1]).read().split(), lambda url: url.split("/")[2])
    waiting = iter([(host, [*urls]) for host, urls in by_host])
    connector = aiohttp.TCPConnector(limit=0, resolver=Here())
    async with aiohttp.ClientSession(connector=connector) as session:
        async def work():
            for host, urls in waiting:
                for url in [f"http://{host}/robots.txt", *urls]:
                    async with session.get(url) as response:
                        await response.read()
        await asyncio.gather(*(work() for _ in range(int(sys.argv[2]))))

asyncio.run(main())
"""
"""aiohttp alone: as many concurrent hosts as threads, with the robots.txt of each before its pages."""


@contextmanager
def _server(delay: float, report: Path) -> Iterator[int]:
    """Run the server and yield its port. It writes statistics to ``report`` at the end."""
    command = [sys.executable, "-c", _SERVER, str(delay), str(_PAGE), str(report)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
            server.wait(60)


def _fetch(folder: Path, runner: str, delay: float, pages: int, seconds: float) -> tuple[Cost, float]:
    """Fetch ``pages`` pages with a crawl delay from a server that takes ``seconds``; return cost and pages/s."""
    folder.mkdir()
    report, seeds, hosts = folder / "report.json", folder / "seeds.txt", folder / "hosts.txt"
    names = [f"h{number:04d}.bench.example" for number in range(_HOSTS)]
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names), encoding="utf-8")
    nutch = Nutch(
        folder,
        runner,
        **{
            "http.hosts.file": str(hosts),
            "http.filter.ipaddress.exclude": "",
            "fetcher.server.delay": str(delay),
            "fetcher.server.min.delay": "0",
        },
    )
    with _server(seconds, report) as port:
        each = range(pages // _HOSTS)
        seeds.write_text("".join(f"http://{n}:{port}/p{page}\n" for n in names for page in each), encoding="utf-8")
        nutch("inject", str(seeds))
        nutch("generate", "-batchId", BATCH)
        cost = nutch("fetch", BATCH, "-threads", str(THREADS))
    if (count := fetched(Configuration.load(overrides=nutch.settings))) != pages:
        raise CommandError(f"{count:,} of {pages:,} pages were fetched")
    return cost, _rate(report)


def _alone(folder: Path, pages: int, seconds: float) -> tuple[Cost, float]:
    folder.mkdir()
    report, seeds = folder / "report.json", folder / "seeds.txt"
    with _server(seconds, report) as port:
        each = range(pages // _HOSTS)
        urls = (f"http://h{number:04d}.bench.example:{port}/p{page}\n" for number in range(_HOSTS) for page in each)
        seeds.write_text("".join(urls), encoding="utf-8")
        cost = run([sys.executable, "-c", _FLOOR, str(seeds), str(THREADS)], folder=folder)
    return cost, _rate(report)


def _rate(report: Path) -> float:
    """Return pages per second between the first request of a page and the last response, without the start."""
    seen = json.loads(report.read_text(encoding="utf-8"))
    return float(seen["pages"] / seen["seconds"])


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure the wall time of ``nutch2py fetch``, and aiohttp alone."""
    slow = _HOSTS * _SLOW_PAGES
    found = []
    for work, pages, (cost, rate) in (
        (f"{_HOSTS:,} hosts, delay 1 s", rows, _fetch(folder / "polite", runner, 1.0, rows, 0.0)),
        ("responses after 1 s", slow, _fetch(folder / "slow", runner, 0.0, slow, 1.0)),
        ("responses after 1 s, aiohttp alone", slow, _alone(folder / "alone", slow, 1.0)),
    ):
        found.append(Measurement(f"{work}: {rate:,.0f} pages/s", pages, cost, "pages"))
    return found
