"""Whatever servers send ends as a status in its row, costs bounded memory, and keeps no honest page from its index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.jobs.hostile import Commands, Ending
from tests.site.hostile.server import TRICKS, HostileServer
from tests.site.hosts import HOSTS, Web, web

MEMORY = 1500  # MB, all processes together
HASTY = {
    "http.timeout": "3000",
    "http.time.limit": "6",
    "parser.timeout": "4",
    "sitemap.parser.timeout": "4",
    "fetcher.server.delay": "0.1",
    "fetcher.exceptions.per.queue.delay": "0.1",
    "http.robots.503.defer.visits.delay": "500",
    "http.robots.503.defer.visits.retries": "1",
}
"""Limits that are met sooner than the defaults: what happens at them is the same."""


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        running.prepare()
        yield running


def honest_seeds(served: Web) -> list[str]:
    """Return pages of the honest hosts that are neither redirects nor gone, and documents."""
    numbers = [number for number in range(60) if not (number % 17 == 13 or number % 19 == 14 or number % 23 == 12)]
    numbers = [number for number in numbers if number % 29 != 11 and number % 31 != 10][:8]
    urls = [served.url(host, f"/p/{number}.html") for host in HOSTS for number in numbers]
    return urls + [served.url(host, "/doc/paper") for host in HOSTS]


def wrong(server: HostileServer, endings: dict[str, Ending], *, sitemaps: bool = False) -> dict[str, object]:
    """Return the tricks with an unexpected final state of their row."""
    found: dict[str, object] = {}
    for trick in server.tricks:
        if trick.sitemap != sitemaps:
            continue
        ending = endings.get(server.url(trick))
        if (
            ending is None
            or ending.fetched not in trick.fetched.split("|")
            or (ending.fetched == "SUCCESS" and ending.parsed not in trick.parsed.split("|"))
        ):
            found[trick.name] = ending
    return found


def warc_targets(folder: Path) -> set[str]:
    """Return the URLs of the answers in a folder of WARC files, read as others read them."""
    found = set()
    for path in folder.iterdir():
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                record.content_stream().read()
                if record.rec_type == "response":
                    found.add(record.rec_headers.get_header("WARC-Target-URI"))
    return found


def test_hostile_tricks_have_unique_names() -> None:
    assert len({trick.name for trick in TRICKS}) == len(TRICKS) > 300
    assert all(trick.what for trick in TRICKS)


def test_every_trick_ends_with_status_and_honest_pages_are_indexed(server: HostileServer, tmp_path: Path) -> None:
    commands = Commands(tmp_path / "pages", HASTY)
    pages = [server.url(trick) for trick in server.tricks if not trick.sitemap]
    with web() as served:
        honest = honest_seeds(served)
        commands.round([*pages, *honest], options=("-threads", "50", "-warc", str(commands.folder / "warc")))
        endings = commands.endings([*pages, *honest])
    assert wrong(server, endings) == {}
    assert {url: endings[url] for url in honest} == dict.fromkeys(honest, Ending("SUCCESS", "success", True))
    assert len(warc_targets(commands.folder / "warc") & set(pages)) > 150
    print(f"{commands.megabytes:.0f} MB at most")
    assert commands.megabytes < MEMORY


def test_every_hostile_sitemap_ends_with_status(server: HostileServer, tmp_path: Path) -> None:
    commands = Commands(tmp_path / "sitemaps", HASTY)
    seeds = [line for line in server.seeds() if line.endswith("-sitemap")]
    commands.round(seeds, sitemaps=True)
    endings = commands.endings([line.partition("\t")[0] for line in seeds])
    assert wrong(server, endings, sitemaps=True) == {}
    assert commands.megabytes < MEMORY


def test_hostile_hosts_do_not_slow_honest_ones(server: HostileServer, tmp_path: Path) -> None:
    """Defaults with ten threads, except that waits are limited to a minute.

    A fetch takes the time that politeness requires; all other jobs are measured in CPU time, to exclude other load.
    """
    limits = {"http.time.limit": "60", "http.robots.503.defer.visits.delay": "15000"}
    hostile = [server.url(trick) for trick in server.tricks if not trick.sitemap]
    ratios: list[float] = []
    for number in range(3):
        with web() as served:
            honest = [served.url(host, f"/p/{page}.html") for host in HOSTS for page in range(40)]
            alone, concurrent = (Commands(tmp_path / f"{name}{number}", limits) for name in ("alone", "concurrent"))
            times = alone.round(honest)
            with_others = concurrent.round([*hostile, *honest])
            costs = [
                took["fetch"] + sum(each.processor.values())
                for took, each in ((times, alone), (with_others, concurrent))
            ]
            print(
                times,
                alone.processor,
                with_others,
                concurrent.processor,
                f"{alone.megabytes:.0f} MB and {concurrent.megabytes:.0f} MB",
                sep="\n",
            )
            assert concurrent.endings(honest) == alone.endings(honest)
            assert wrong(server, concurrent.endings(hostile)) == {}
            assert concurrent.megabytes < MEMORY
        ratios.append(costs[1] / costs[0])
        if ratios[-1] <= 1.2:
            return
    raise AssertionError(f"times of a round with hostile hosts, by that without: {ratios}")
