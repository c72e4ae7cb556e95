"""index: ROWS parsed pages of about 2.5 KB to a real Solr, compared with pysolr alone with the same documents.

CPU seconds are those of the sender and of Solr; Solr's share is in brackets.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from bench.measuring import Measurement, Nutch, run
from bench.services import service
from nutch2py.conf.configuration import Configuration
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Mark, ParseStatusCode, ProtocolStatusCode, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

ROWS = (10_000,)
BATCH = "1600000000-1"
_NOW = 1_600_000_000_000
_WORDS = 350
_ENGLISH = [
    f"{stem}{end}" for stem in ("search", "crawl", "index", "page", "batch", "link") for end in ("", "s", "ing")
]
_CHINESE = (
    "北京",
    "奥运会",
    "开幕",
    "总统",
    "美国",
    "经济",
    "网络",
    "搜索",
    "引擎",
    "中国",
    "世界",
    "新闻",
    "地震",
    "电影",
)
# The minimum of any sender: prepared documents, in batches of the same size.
_FLOOR = """
import json, pysolr, sys
solr = pysolr.Solr(sys.argv[2], timeout=300)
batch = []
for line in open(sys.argv[1], encoding="utf-8"):
    batch.append(json.loads(line))
    if len(batch) == 250:
        solr.add(batch)
        batch = []
if batch:
    solr.add(batch)
solr.commit()
"""


def build(conf: Configuration, pages: int) -> None:
    """Create the table as of after updatedb; three in ten pages are Chinese."""
    store = open_store(conf, WebPage)
    store.create()
    chance = random.Random(pages)
    with store.batch() as batch:
        for number in range(pages):
            url = f"http://h{number // 200:05d}.bench.example/p{number % 200:04d}.html"
            page = WebPage()
            page.base_url = url
            page.status, page.fetch_interval, page.score = CrawlStatus.FETCHED, 2_592_000, chance.random() * 2
            page.fetch_time, page.prev_fetch_time = _NOW + 2_592_000_000, _NOW
            page.protocol_status = ProtocolStatus(ProtocolStatusCode.SUCCESS)
            page.parse_status = ParseStatus(ParseStatusCode.SUCCESS, ParseStatusCode.OK)
            words, space = (_CHINESE, "") if number % 10 < 3 else (_ENGLISH, " ")
            page.title = space.join(chance.choices(words, k=6))
            page.text = f"{number} " + space.join(chance.choices(words, k=_WORDS))
            page.signature, page.content_type = chance.randbytes(16), "text/html"
            page.inlinks = {f"http://h{n}.bench.example/": f"anchor {n}" for n in chance.sample(range(1000), 3)}
            page.markers = {Mark.UPDATEDB: BATCH, Mark.DISTANCE: "0"}
            batch.put(reverse_url(url), page)


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py index -all``, and pysolr alone."""
    lines = folder / "index.jsonl"
    first = Nutch(folder, runner)
    build(Configuration.load(overrides=first.settings), rows)
    with service("solr") as solr:
        nutch = Nutch(folder, runner, **{"solr.server.url": solr.address})
        ours, of_ours = solr.cost_of(lambda: nutch("index", "-all"))
        options = {
            "plugin.includes": f"{first.settings['plugin.includes']}|indexer-jsonl",
            "indexer-jsonl.path": str(lines),
        }
        Nutch(folder, runner, **options)("index", "-all")
        floor, of_floor = solr.cost_of(lambda: run([sys.executable, "-c", _FLOOR, str(lines), solr.address]))
    return [
        Measurement(f"index {rows:,} pages in Solr", rows, ours, "documents", servers=of_ours),
        Measurement("pysolr alone", rows, floor, "documents", servers=of_floor),
    ]
