"""PageRank on one machine: the table is read once, the graph lies in memory as numbers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nutch2py.conf import Configuration
from nutch2py.jobs.pagerank_links import FIELDS, LinkRules, PageLinks
from nutch2py.jobs.pagerank_sites import SiteRuns, without_navigation
from nutch2py.scoring.rank_model import LinkGraph, Links
from nutch2py.table import DataStore, Query
from nutch2py.table.unreadable import RowCheck
from nutch2py.webpage import WebPage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

EXTERNAL = 1  # the kind of links between sites, those within are 0
_CHUNK = 1 << 20  # links looked up at once
_ROWS = 2_000  # rows written at once
BYTES_PER_LINK, BYTES_PER_PAGE = 24, 120
"""What a run takes at its peak: measured, and rounded up."""


class TooLargeError(Exception):
    """The graph does not fit into the memory it may take, or cannot be held as numbers."""


class MemoryGraph:
    """The graph of a table. Pages are known by the 64-bit hash of their row keys, so that no key is kept.

    Two pages with one hash raise :class:`TooLargeError` (among 100 million pages that comes once in 3,700 tables); a
    link to a row that is not there may meet the hash of a page that is, as seldom. ``limit``: the bytes it may take;
    ``share``: of the pages of a site; links to what more of them link to are navigation.
    """

    def __init__(self, limit: int, share: float = 1.0) -> None:
        self.limit, self._share = limit, share
        self._sites = SiteRuns()
        self.hashes = array("q")
        self.counts = [array("q"), array("q")]
        self.targets = [array("q"), array("q")]

    def add(self, key: str, links: PageLinks) -> None:
        """Add a page and its links; pages come in the order of their keys."""
        self._sites.add(len(self.hashes), key, links)
        self.hashes.append(hash(key))
        for kind, targets in enumerate(links):
            self.counts[kind].append(len(targets))
            self.targets[kind].extend(map(hash, targets))

    def check(self) -> None:
        """Raise :class:`TooLargeError` when the run would take more memory than it may."""
        needed = len(self.hashes) * BYTES_PER_PAGE + sum(map(len, self.targets)) * BYTES_PER_LINK
        if needed > self.limit:
            raise TooLargeError

    def build(self) -> LinkGraph:
        """Return the graph, links to other rows and navigation left out; the links that were added are gone then."""
        import numpy as np

        hashes = np.frombuffer(self.hashes, dtype=np.int64)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        if len(hashes) > 1 and bool((self._sorted[1:] == self._sorted[:-1]).any()):
            raise TooLargeError
        kinds = []
        for kind in (0, 1):
            counts = np.frombuffer(self.counts[kind], dtype=np.int64)
            targets = np.frombuffer(self.targets[kind], dtype=np.int64).copy()
            self.targets[kind] = array("q")
            links = self._resolve(counts, targets)
            if self._share < 1:
                links = without_navigation(links, self._sites, len(hashes), self._share, kind == EXTERNAL, _CHUNK)
            kinds.append(links)
        return LinkGraph(len(hashes), *kinds)

    def _resolve(self, counts: Numbers, targets: Numbers) -> Links:
        """Turn hashes of targets into numbers of pages, in place."""
        import numpy as np

        kept = np.empty(len(targets), dtype=bool)
        for start in range(0, len(targets), _CHUNK):
            piece = slice(start, start + _CHUNK)
            targets[piece], kept[piece] = self.numbers(targets[piece])
        if kept.all():
            return Links(counts.copy(), targets)
        running = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
        ends = np.cumsum(counts)
        return Links(running[ends] - running[ends - counts], targets[kept])

    def numbers(self, hashes: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return the page of each hash (any page where there is none), and whether there is one."""
        import numpy as np

        if not len(self._sorted):
            return np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes), dtype=bool)
        places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        return self._order[places], self._sorted[places] == hashes


def read_graph(conf: Configuration, store: DataStore[WebPage]) -> MemoryGraph:
    """Read the table once; raise :class:`TooLargeError` as soon as it is known not to fit."""
    rules = LinkRules(conf)
    graph = MemoryGraph(memory_limit(conf), rules.navigation)
    for number, (key, page) in enumerate(RowCheck().rows(store.scan(Query(FIELDS)))):
        if rules.is_page(page):
            graph.add(key, rules.links(key, page))
        if number % 10_000 == 0:
            graph.check()
    graph.check()
    return graph


def write_ranks(
    store: DataStore[WebPage],
    graph: MemoryGraph,
    ranks: Any,
    update_score: bool,
    before: Callable[[], object] | None = None,
) -> int:
    """Write the ranks into the rows, those that changed; a row that is no page loses its rank. Return rows written.

    ``before`` runs before each group of rows is written.
    """
    import numpy as np

    written = 0
    with store.batch(before) as batch:
        for rows in _chunks(store):
            hashes = np.array([hash(key) for key, _ in rows], dtype=np.int64)
            numbers, found = graph.numbers(hashes)
            values = np.where(found, ranks[numbers] if len(ranks) else 0.0, 0.0)
            for (key, page), value, known in zip(rows, values.tolist(), found.tolist(), strict=True):
                if known or page.page_rank:
                    page.page_rank = value
                    if update_score and known:
                        page.score = value
                    written += batch.put(key, page)
    return written


def _chunks(store: DataStore[WebPage]) -> Iterator[list[tuple[str, WebPage]]]:
    rows: list[tuple[str, WebPage]] = []
    query = Query(frozenset({WebPage.page_rank, WebPage.score, WebPage.fetch_interval}))
    for row in RowCheck().rows(store.scan(query)):
        rows.append(row)
        if len(rows) == _ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def memory_limit(conf: Configuration) -> int:
    """Return the bytes that the graph may take: ``pagerank.memory.limit`` (MB), else half of what is free."""
    limit = conf.get_int("pagerank.memory.limit", 0)
    if limit:
        return limit * 1_000_000
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 512
    except (OSError, KeyError, ValueError):  # not told here, as on macOS
        return 1_000_000_000
