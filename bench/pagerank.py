"""pagerank: a table of ROWS pages with 10 links each, half of them within the host."""

from __future__ import annotations

import random
from pathlib import Path

from bench.measuring import Measurement, Nutch
from nutch2py.conf import Configuration
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from nutch2py.webpage import CrawlStatus, WebPage

ROWS = (10_000, 100_000, 1_000_000)
LINKS = 10
_HOST_PAGES = 200


def _url(number: int) -> str:
    return f"http://h{number // _HOST_PAGES:05d}.bench.example/p{number % _HOST_PAGES:04d}.html"


def build(conf: Configuration, pages: int) -> None:
    """Make a table of fetched pages, in the order of their keys; a few pages have most links, as on the web."""
    store = open_store(conf, WebPage)
    store.create()
    chance = random.Random(pages)
    with store.batch() as batch:
        for number in range(pages):
            first = number - number % _HOST_PAGES
            page = WebPage()
            page.status, page.fetch_interval = CrawlStatus.FETCHED, 2_592_000
            while len(page.outlinks) < LINKS:
                near = first + chance.randrange(min(_HOST_PAGES, pages - first))
                far = int(chance.paretovariate(1.1) * pages / 50) % pages
                page.outlinks[_url(near if chance.random() < 0.5 else far)] = "link"
            batch.put(reverse_url(_url(number)), page)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py pagerank`` in memory and, up to 100,000 pages, by MapReduce; a record is a link."""
    nutch = Nutch(folder, runner)
    build(Configuration.load(overrides=nutch.settings), rows)
    found = []
    for method in ("memory", "mapreduce"):
        if method == "memory" or rows <= 100_000:
            cost = nutch("pagerank", "-D", f"pagerank.method={method}")
            found.append(Measurement(f"pagerank {rows:,} pages, {method}", rows * LINKS, cost, "links"))
    return found
