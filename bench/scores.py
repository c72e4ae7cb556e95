"""scores: new scores of ROWS documents of the embedded index (index -scores), compared with -reindex and no change.

``scores_solr`` and ``scores_opensearch`` do the same with these servers; CPU seconds in brackets are the servers'.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from bench.index import build
from bench.measuring import SETTINGS, Cost, Measurement, Nutch
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_pagerank import MEAN_RANK_ROW
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import TableQuery, open_store

ROWS = (10_000, 100_000)
PLUGINS = {"plugin.includes": SETTINGS["plugin.includes"].replace("anchor)", "anchor|pagerank)")}
_ROWS_AT_ONCE = 2000


def rank(conf: Configuration, seed: int) -> None:
    """Set new ranks of all pages, as pagerank does: most near the mean, few far above it."""
    chance = random.Random(seed)
    store, lists = open_store(conf, WebPage), open_store(conf, DerivedRow)
    lists.create()
    mean = DerivedRow()
    mean.data = b"1.0"
    with lists.batch() as batch:
        batch.put(MEAN_RANK_ROW, mean)
    written = 0
    with store.batch() as batch:
        for key, page in store.scan(TableQuery(frozenset({WebPage.page_rank, WebPage.status}))):
            page.page_rank = chance.lognormvariate(-0.5, 1.0)
            written += batch.put(key, page)
    store.close()
    lists.close()
    assert written, "no page has another rank: nothing would be measured"


def measured(
    rows: int, nutch: Nutch, where: str, cost_of: Callable[[Callable[[], Cost]], tuple[Cost, float]]
) -> list[Measurement]:
    """Index pages, then change their scores in each way; ``cost_of`` adds the CPU time of a server."""
    conf = Configuration.load(overrides=nutch.settings)
    build(conf, rows)
    found = []
    for seed, words, label in (
        (1, "-all", f"index {rows:,} pages in {where}"),
        (2, "-reindex", f"{where}: -reindex, other scores"),
        (3, "-scores", f"{where}: -scores, all others"),
        (0, "-scores", f"{where}: -scores, none others"),
    ):
        if seed:
            rank(conf, seed)
        cost, servers = cost_of(lambda words=words: nutch("index", words))  # type: ignore[misc]
        found.append(Measurement(label, rows, cost, "documents", servers=servers))
    return found


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure in the embedded index."""
    return measured(rows, Nutch(folder, runner, **PLUGINS), "the embedded index", lambda call: (call(), 0.0))
