"""A small crawl in one call, for tests that compare tables: a site on loopback, and the jobs of a few rounds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.small_http import Answering, QuietServer

CLOCK = {b"f": {b"ts", b"pts"}, b"mtdt": {b"_rs_"}}
"""Cells that hold a clock or a duration."""
PAGES = 60


class _Site(Answering):
    """Pages /0 … /59 that link to one another, some of which redirect, are gone, or fail.

    When they have changed, some redirect that did not, and all others have lost every second of their links.
    """

    server: _Server

    def serve(self) -> None:
        number = int(self.path[1:]) if self.path[1:].isdigit() else -1
        if self.path == "/robots.txt":
            self.answer(200, b"User-agent: *\nDisallow: /59\n", "text/plain")
        elif not 0 <= number < PAGES:
            self.answer(404, b"none", "text/plain")
        elif number % 17 == 3 or (self.server.changed and number % 12 == 6):
            self.answer(301, b"", "text/html", f"/{(number + 5) % PAGES}")
        elif number % 19 == 4:
            self.answer(410, b"gone", "text/html")
        elif number % 23 == 5:
            self.answer(500, b"failed", "text/html")
        else:
            links = "".join(
                f'<a href="/{(number * step + 1) % PAGES}">to {step} from {number}</a> '
                for step in range(2, 2 + number % 9, 2 if self.server.changed else 1)
            )
            text = f"<html><head><title>Page {number}</title></head><body><p>Text {number}</p>{links}</body></html>"
            self.answer(200, text.encode(), "text/html; charset=utf-8")


class _Server(QuietServer):
    changed = False


class Site:
    """The site as it is served: its URL, and a change of its pages."""

    def __init__(self, server: _Server) -> None:
        self._server, self.url = server, f"http://127.0.0.1:{server.server_address[1]}"

    def change(self) -> None:
        """Let some pages redirect, and all others lose links."""
        self._server.changed = True


@contextmanager
def changing_site(port: int = 0) -> Iterator[Site]:
    """Serve the site on a loopback port, a free one if none is given."""
    server = _Server(("127.0.0.1", port), _Site)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield Site(server)
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def site() -> Iterator[str]:
    """Serve the site and leave it as it is; give its URL."""
    with changing_site() as served:
        yield served.url


SETTINGS = {
    "http.agent.name": "nutch-test",
    "http.filter.ipaddress.exclude": "",
    "fetcher.server.delay": "0",
    "fetcher.threads.per.queue": "4",
    "storage.embedded.map.size": str(1 << 30),
}


def properties(runner: str = "inline") -> dict[str, str | float | bool]:
    """Return the settings for a runner; not for more tasks at once than two."""
    tasks = {} if runner == "inline" else {"mapreduce.job.maps": 2, "mapreduce.job.reduces": 2}
    return {**SETTINGS, "mapreduce.runner": runner, **tasks}


def seeds(url: str) -> list[str]:
    """Return every third page of the site."""
    return [f"{url}/{number}" for number in range(0, PAGES, 3)]


def rounds(conf: Configuration, seed_file: str, count: int = 4) -> None:
    """Inject, and run ``count`` rounds of 20 pages at most, or until nothing is due."""
    inject(conf, seed_file)
    for number in range(1, count + 1):
        batch = f"test-{number}"
        if not generate(conf, top_n=20, batch_id=batch).urls:
            break
        fetch(conf, batch)
        parse(conf, batch)
        updatedb(conf, batch)


def table(conf: Configuration) -> dict[str, dict[str, bytes]]:
    """Return every cell of the crawl's table without its timestamp; of clocks only whether they exist."""
    rows: dict[str, dict[str, bytes]] = {}
    for key, families in open_store(conf, WebPage).scan_cells():
        cells = rows[key] = {}
        for family, columns in families.items():
            for qualifier, (value, _) in columns.items():
                clock = qualifier in CLOCK.get(family, ())
                cells[f"{family.decode()}:{qualifier.decode()}"] = b"clock" if clock else value
    return rows
