"""updatedb: a batch of ROWS parsed pages with 20 links each; one in ten leads to a new URL."""

from __future__ import annotations

import random
from pathlib import Path

from bench.measuring import Measurement, Nutch
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry
from nutch2py.records.cells import ParseStatus, ProtocolStatus, encode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ParseStatusCode, ProtocolStatusCode, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

ROWS = (1_000, 10_000, 100_000)
AIMS = {10_000: 12.0}
LINKS = 20
BATCH = "1600000000-1"
_HOST_PAGES = 200
_NOW = 1_600_000_000_000


def _url(number: int) -> str:
    return f"http://h{number // _HOST_PAGES:05d}.bench.example/p{number % _HOST_PAGES:04d}.html"


def _links(number: int, pages: int, chance: random.Random) -> dict[str, str]:
    """Return links: four in five stay on the host; one leads to the next page, so that all are reachable."""
    first = number - number % _HOST_PAGES
    links = {_url((number + 1) % pages): "the next page"}
    while len(links) < LINKS:
        kind = chance.random()
        if kind < 0.1:
            url = _url(number).replace("/p", f"/new{chance.randrange(10)}/p")
        elif kind < 0.8:
            url = _url(first + chance.randrange(min(_HOST_PAGES, pages - first)))
        else:
            url = _url(chance.randrange(pages))
        links[url] = f"{chance.choice(('about', 'more on', 'see'))} page {len(links)} of this place"
    return links


def build(conf: Configuration, pages: int) -> None:
    """Create the table and the batch list as of after the ParserJob, without content and text."""
    store, lists = open_store(conf, WebPage), BatchListStore(conf)
    store.create()
    lists.set_state(BATCH, BatchState.GENERATING)
    chance = random.Random(pages)
    with store.batch() as batch, lists.store.batch() as entries:
        for number in range(pages):
            page = WebPage()
            page.base_url = _url(number)
            page.status, page.fetch_interval, page.score = CrawlStatus.FETCHED, 2_592_000, 1.0
            page.fetch_time = page.prev_fetch_time = _NOW
            page.protocol_status = ProtocolStatus(ProtocolStatusCode.SUCCESS)
            page.parse_status = ParseStatus(ParseStatusCode.SUCCESS, ParseStatusCode.OK)
            page.signature, page.title, page.batch_id = chance.randbytes(16), f"Page {number}", BATCH
            page.content_type = "text/html"
            page.metadata = {MetadataKey.CASH: encode_float(1.0)}
            page.outlinks = _links(number, pages, chance)
            page.markers = {
                Mark.DISTANCE: "0",
                Mark.GENERATE: BATCH,
                Mark.FETCH: BATCH,
                Mark.PARSE: BATCH,
            }
            key = reverse_url(_url(number))
            batch.put(key, page)
            put_list_entry(entries, BATCH, "00000", number, key)
    lists.set_state(BATCH, BatchState.GENERATED, pages)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py updatedb``; a record is a page or a link."""
    nutch = Nutch(folder, runner)
    build(Configuration.load(overrides=nutch.settings), rows)
    cost = nutch("updatedb", BATCH)
    work = f"updatedb {rows:,} pages, {rows * LINKS:,} links"
    return [Measurement(work, rows * (LINKS + 1), cost, "pages and links", AIMS.get(rows))]
