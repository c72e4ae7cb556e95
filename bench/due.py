"""due: generate and readdb -stats with 10,000 rows due in a table of ROWS, with index and statistics, and without."""

from __future__ import annotations

import random
from pathlib import Path

from bench.measuring import Measurement, Nutch
from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import encode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

ROWS = (100_000, 1_000_000)
DUE = 10_000
_DAY = 86_400_000
_HOST_PAGES = 200


def build(conf: Configuration, rows: int) -> None:
    """Create a table of pages fetched in the last month with different scores, of which :data:`DUE` are due."""
    store, chance, now = open_store(conf, WebPage), random.Random(rows), now_ms()
    store.create()
    due = frozenset(chance.sample(range(rows), min(DUE, rows)))
    with store.batch() as batch:
        for number in range(rows):
            page = WebPage({}, frozenset())
            page.status, page.fetch_interval, page.score = CrawlStatus.FETCHED, 2_592_000, chance.expovariate(1.0)
            page.fetch_time = now - chance.randrange(_DAY) if number in due else now + chance.randrange(1, 30 * _DAY)
            page.metadata = {MetadataKey.CASH: encode_float(1.0)}
            page.markers = {Mark.DISTANCE: "1"}
            batch.put(
                reverse_url(f"http://h{number // _HOST_PAGES:05d}.bench.example/p{number % _HOST_PAGES:04d}.html"), page
            )


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py generate`` and ``readdb -stats``, each by the index and by a scan."""
    nutch = Nutch(folder, runner)
    build(Configuration.load(overrides=nutch.settings), rows)
    found = []
    for name, words in (("statistics", ()), ("scan", ("-exact",))):
        cost = nutch("readdb", "-stats", *words)
        found.append(Measurement(f"readdb -stats of {rows:,}, {name}", rows, cost, "rows"))
    for name, share in (("index", "1"), ("scan", "0")):
        # Another clock, so that the rows marked by the first run are available again.
        days = "0" if name == "index" else "0.001"
        cost = nutch("generate", "-adddays", days, "-D", f"generate.due.share={share}", "-D", "crawl.gen.delay=0")
        found.append(Measurement(f"generate {DUE:,} due of {rows:,}, {name}", rows, cost, "rows"))
    return found
