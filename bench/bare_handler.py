"""Fetches without robots, queues and table: ``bare_handler THREADS HOSTS_FILE URLS_FILE KIND``.

KIND: short or whole, the fetcher's transport in direct or full Scrapy mode; scrapy, a spider with Scrapy's defaults
except robots.txt and log; aiohttp, a client session.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader import transport
from nutch2py.fetcher.downloader.transport_settings import TransportSettings
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.url.host_resolver import HostsFile

Urls = list[str]


def by_transport(threads: int, hosts: str, urls: Urls, whole: bool) -> None:
    """Request every URL; raise RuntimeError when a response is not 200."""
    overrides = {"http.agent.name": "bench", "http.hosts.file": hosts, "http.filter.ipaddress.exclude": ""}
    http = HttpSettings.from_conf(Configuration.load(overrides=overrides), threads)
    waiting = iter(urls)

    async def work(client: transport.ScrapyTransport) -> None:
        for url in waiting:
            response = await client.get(url)
            if response.status != 200:
                raise RuntimeError(f"{url}: {response.status} {response.failure}")

    async def all_of_it(client: transport.ScrapyTransport) -> None:
        await asyncio.gather(*(work(client) for _ in range(threads)))

    transport.run_with_transport(http, TransportSettings(force_scrapy_mode=whole), all_of_it)


def _loop(hosts: str) -> Callable[[], asyncio.AbstractEventLoop]:
    def make() -> asyncio.AbstractEventLoop:
        loop = transport.FilteringEventLoop()
        loop.dns_cache = DnsCache(HostsFile.read(Path(hosts)))
        return loop

    return make


def by_scrapy(threads: int, hosts: str, urls: Urls) -> None:
    """Run a spider that ignores its pages."""
    import scrapy
    from scrapy.crawler import AsyncCrawlerRunner

    got: list[int] = []

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            for url in urls:
                yield scrapy.Request(url)

        def parse(self, response: Any, **kwargs: Any) -> None:
            got.append(response.status)

    settings = {
        "TWISTED_REACTOR_ENABLED": False,
        "CONCURRENT_REQUESTS": threads,
        "CONCURRENT_REQUESTS_PER_DOMAIN": threads,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
    }
    logging.disable(logging.WARNING)
    transport.disable_library_lookups()

    async def crawl() -> None:
        await AsyncCrawlerRunner(settings).crawl(Pages)

    with asyncio.Runner(loop_factory=_loop(hosts)) as runner:
        runner.run(crawl())
    if got.count(200) != len(urls):
        raise RuntimeError(f"{got.count(200)} of {len(urls)}")


def by_aiohttp(threads: int, hosts: str, urls: Urls) -> None:
    """Request every URL with one session."""
    import aiohttp

    async def work(session: aiohttp.ClientSession, waiting: Iterator[str]) -> None:
        for url in waiting:
            async with session.get(url) as response:
                await response.read()
                if response.status != 200:
                    raise RuntimeError(f"{url}: {response.status}")

    async def all_of_it() -> None:
        connector = aiohttp.TCPConnector(limit=threads, resolver=aiohttp.ThreadedResolver())
        waiting = iter(urls)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(work(session, waiting) for _ in range(threads)))

    with asyncio.Runner(loop_factory=_loop(hosts)) as runner:
        runner.run(all_of_it())


def main(threads: int, hosts: str, urls: Urls, kind: str) -> None:
    """Measure one kind."""
    if kind == "scrapy":
        by_scrapy(threads, hosts, urls)
    elif kind == "aiohttp":
        by_aiohttp(threads, hosts, urls)
    else:
        by_transport(threads, hosts, urls, kind == "whole")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]).read_text(encoding="utf-8").split(), sys.argv[4])
