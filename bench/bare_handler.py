"""The fetcher's download handler without robots, queues and table: ``bare_handler THREADS HOSTS_FILE URLS_FILE``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.fetcher import transport
from nutch2py.fetcher.carrier import Carrier
from nutch2py.fetcher.http_settings import HttpSettings


def main(threads: int, hosts: str, urls: Path) -> None:
    """Ask for every URL; raise RuntimeError when an answer is not 200."""
    overrides = {"http.agent.name": "bench", "http.hosts.file": hosts, "http.filter.ipaddress.exclude": ""}
    http = HttpSettings.from_conf(Configuration.load(overrides=overrides), threads)
    waiting = iter(urls.read_text(encoding="utf-8").split())

    async def work(carrier: transport.Transport) -> None:
        for url in waiting:
            answer = await carrier.get(url)
            if answer.status != 200:
                raise RuntimeError(f"{url}: {answer.status} {answer.failure}")

    async def all_of_it(carrier: transport.Transport) -> None:
        await asyncio.gather(*(work(carrier) for _ in range(threads)))

    transport.run(http, Carrier(), all_of_it)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
