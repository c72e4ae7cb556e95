"""Stored crawls, ``VERSION.tar.xz`` next to ``VERSION.json``, and the results of every job on one of them."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import Any

from nutch2py import Crawl
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import unreverse_url

HERE = Path(__file__).parent
URL = "http://127.0.0.1:8472/"
WAITING = "kept-3"
"""A batch that was fetched, and not parsed."""
QUERIES = ("text", "title:page", "text 12", f"site:127.0.0.1 {URL}0")

SETTINGS: dict[str, str | float | bool] = {
    "http.agent.name": "nutch-test",
    "http.filter.ipaddress.exclude": "",
    "fetcher.server.delay": "0",
    "fetcher.threads.per.queue": "1",  # links and scores come in one order
    "storage.embedded.map.size": str(1 << 30),
    # nothing is due again, and no batch is forgotten, for 28 years
    "db.fetch.interval.default": 900_000_000,
    "db.fetch.interval.max": 1_000_000_000,
    "db.fetch.retry.max": 0,
    "crawl.gen.delay": 900_000_000_000,
}


def versions() -> list[str]:
    """Return the versions of which a crawl is kept."""
    return sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))


def unpack(version: str, folder: Path) -> Path:
    """Put the crawl that a version wrote into ``folder``; return the folder of its tables."""
    with tarfile.open(HERE / f"{version}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "crawldata"


def answers(tables: Path) -> dict[str, Any]:
    """Return what the reading jobs say of a crawl, and then what each job does to it, as JSON types."""
    with Crawl(f"embedded:{tables}", SETTINGS) as crawl:
        found: dict[str, Any] = {"before": _state(crawl), "searches": [_found(crawl, query) for query in QUERIES]}
        found["cells"] = _cells(crawl)
        jobs = (crawl.parse, crawl.updatedb, crawl.index)
        found["jobs"] = {job.__name__: job(WAITING).counters for job in jobs}
        made = crawl.generate(top_n=5, add_days=30, batch_id="after")  # what failed is due, too
        found["generated"] = [unreverse_url(row) for row in sorted(BatchListStore(crawl.conf).iter_row_keys("after"))]
        found["jobs"] |= {
            "generate": made.counters,
            "dedup": crawl.dedup().counters,
            "clean": crawl.clean().counters,
            "updatehostdb": crawl.updatehostdb(links=True).counters,
        }
        found["pagerank"] = crawl.pagerank().pages
        found["after"] = _state(crawl)
        found["found"] = [_found(crawl, query) for query in QUERIES]
        found["troubles"] = crawl.check()
    return found


def _state(crawl: Crawl) -> dict[str, Any]:
    stats = crawl.stats()
    return {
        "stats": {
            "total": stats.total,
            "status": {str(status): count for status, count in sorted(stats.status.items())},
            "protocol": dict(sorted(stats.protocol.items())),
            "parse": dict(sorted(stats.parse.items())),
            "scores": [stats.score_sum, stats.score_min, stats.score_max],
        },
        "batches": [[each.batch_id, each.state, each.count, each.done] for each in crawl.batches()],
        "hosts": {name: {key: value.decode() for key, value in host.metadata.items()} for name, host in crawl.hosts()},
        "pages": {
            url: [page.status, page.title, round(page.score, 6), len(page.content or b""), len(page.text or ""),
                  dict(page.inlinks), dict(page.outlinks), dict(page.markers)]
            for url, page in crawl.pages()
        },
    }  # fmt: skip


def _cells(crawl: Crawl) -> dict[str, str]:
    """Return a digest of every cell of every row with its timestamp, by row key."""
    rows = open_store(crawl.conf, WebPage).scan_cells()
    sorted_cells = ((key, {name: sorted(cells.items()) for name, cells in sorted(row.items())}) for key, row in rows)
    return {key: hashlib.sha256(str(cells).encode()).hexdigest()[:16] for key, cells in sorted_cells}


def _found(crawl: Crawl, query: str) -> list[Any]:
    result = crawl.search(query, rows=5)
    return [query, result.total, sorted(hit.url for hit in result.hits) if result.total <= 5 else len(result.hits)]
