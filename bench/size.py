"""size: a batch of 10,000 pages, inject to index, in a table of ROWS other rows; 10,000,000 by option (25 GB of disk).

The other rows are pages fetched in the last month and not due. They are written in bulk with the cells that jobs would
leave, since inject and fetch of so many would take hours. Only the seeds on a local nginx are due.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.fetch import BATCH, site
from bench.measuring import CommandError, Cost, Measurement, Nutch, cycle_settings, run
from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import encode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

ROWS = (100_000, 1_000_000)
PAGES = 10_000
"""Of the batch."""
_DAY = 86_400_000
_HOST_PAGES = 200
_JOBS: dict[str, tuple[str, ...]] = {
    "readdb -stats": ("readdb", "-stats"),
    "readdb -stats -exact": ("readdb", "-stats", "-exact"),
    "readdb -stats -by host": ("readdb", "-stats", "-by", "host"),
    "generate": ("generate", "-batchId", BATCH),
    "fetch": ("fetch", BATCH, "-threads", "100"),
    "parse": ("parse", BATCH),
    "updatedb": ("updatedb", BATCH),
    "index": ("index", BATCH),
    "readdb -stats, after the batch": ("readdb", "-stats"),
}


def build(conf: Configuration, rows: int) -> None:
    """Create a table of pages fetched in the last month with different scores, none of them due."""
    store, chance, now = open_store(conf, WebPage), random.Random(rows), now_ms()
    store.create()
    with store.batch() as batch:
        for number in range(rows):
            page = WebPage({}, frozenset())
            page.status, page.fetch_interval, page.score = CrawlStatus.FETCHED, 2_592_000, chance.expovariate(1.0)
            page.fetch_time = now + chance.randrange(_DAY, 30 * _DAY)
            page.metadata = {MetadataKey.CASH: encode_float(1.0)}
            page.markers = {Mark.DISTANCE: "1"}
            batch.put(
                reverse_url(f"http://h{number // _HOST_PAGES:05d}.bench.example/p{number % _HOST_PAGES:04d}.html"), page
            )
    store.due_index().record_full_scan(rows)  # HBase's index needs their number, as after a generate over all


def bytes_of(folder: Path) -> int:
    """Return the disk usage of a folder's files in bytes; less than their size if they are sparse."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def sizes(
    rows: int,
    folder: Path,
    runner: str,
    data: Path,
    settings: dict[str, str],
    servers: Callable[[], float] = lambda: 0.0,
) -> list[Measurement]:
    """Measure each step. ``data``: folder of the store; ``servers``: returns CPU seconds of servers so far."""
    found: list[Measurement] = []
    nutch = Nutch(folder, runner, **{**cycle_settings(folder, folder / "hosts.txt"), **settings})

    def note(work: str, records: int, unit: str, call: Callable[[], Cost]) -> None:
        before = servers()
        cost = call()
        of_servers = servers() - before
        cost = replace(cost, cpu=cost.cpu + of_servers)
        found.append(Measurement(work, records, cost, unit, servers=of_servers, disk=bytes_of(data)))
        print(
            f"  {work}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s, servers {of_servers:.1f}, {cost.memory / 1e6:.0f} MB, "
            f"largest {cost.largest / 1e6:.0f} MB, disk {bytes_of(data) / 1e6:,.0f} MB",
            file=sys.stderr,
            flush=True,
        )

    of = f" in {rows:,}"
    made = [f"{name}={value}" for name, value in nutch.settings.items()]
    note(f"{rows:,} rows in bulk", rows, "rows", lambda: run([sys.executable, "-m", "bench.size", str(rows), *made]))
    with site(PAGES, folder):
        note(f"inject{of}", PAGES, "pages", lambda: nutch("inject", str(folder / "all_urls.txt")))
        for name, words in _JOBS.items():
            records, unit = (rows, "rows") if words[0] == "readdb" else (PAGES, "pages")
            note(f"{name}{of}", records, unit, lambda words=words: nutch(*words))  # type: ignore[misc]
    lines = (folder / "index.jsonl").read_bytes().count(b"\n")
    if lines != PAGES:
        raise CommandError(f"{lines:,} of {PAGES:,} pages were indexed")
    return found


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure over an embedded table."""
    return sizes(rows, folder, runner, folder / "crawldata", {})


def main(rows: str, *settings: str) -> None:
    """Create the table in a separate process, so that its memory is measured."""
    build(Configuration.load(overrides=dict(each.split("=", 1) for each in settings)), int(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
