"""PageRank in memory: reads the table once and holds the graph as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.pagerank.graph_links import LINK_GRAPH_FIELDS, GraphLinkRules, PageLinks
from nutch2py.jobs.pagerank.site_navigation import SiteRuns, drop_navigation
from nutch2py.records.webpage import WebPage
from nutch2py.scoring.pagerank_model import LinkArrays, LinkGraph
from nutch2py.table import DataStore, TableQuery
from nutch2py.table.row_validation import RowValidator

if TYPE_CHECKING:
    from nutch2py.jobs.pagerank.array_types import Indices, Mask

EXTERNAL_INDEX = 1  # index of links between sites; 0: within a site
LINKS_PER_CHUNK = 1 << 20
"""Links per lookup."""
_ROWS_PER_WRITE = 2_000  # rows
BYTES_PER_LINK, BYTES_PER_PAGE = 24, 120
"""Peak memory, measured and rounded up."""


class GraphTooLargeError(Exception):
    """The graph exceeds the memory limit, or has a hash collision."""


class MemoryGraph:
    """Link graph of a table. 64-bit hashes of row keys identify the pages, so no keys are kept.

    A hash collision of two pages raises :class:`GraphTooLargeError` (for 100 million pages in one of 3,700 tables). A
    link to a missing row may match the hash of an existing page, with a similarly low probability.

    Args:
        memory_limit: Memory limit in bytes.
        navigation_share: Part of the pages of a site; a page that more of them link to is navigation.
    """

    def __init__(self, memory_limit: int, navigation_share: float = 1.0) -> None:
        self.memory_limit, self._navigation_share = memory_limit, navigation_share
        self._sites = SiteRuns()
        self.hashes = array("q")
        self.counts = [array("q"), array("q")]
        self.targets = [array("q"), array("q")]

    def add_page(self, key: str, links: PageLinks) -> None:
        """Add a page and its links; pages must be in the order of their keys."""
        self._sites.add_page(len(self.hashes), key, links)
        self.hashes.append(hash(key))
        for kind, targets in enumerate(links):
            self.counts[kind].append(len(targets))
            self.targets[kind].extend(map(hash, targets))

    def check_memory(self) -> None:
        """Raise :class:`GraphTooLargeError` if the run would exceed the memory limit."""
        needed = len(self.hashes) * BYTES_PER_PAGE + sum(map(len, self.targets)) * BYTES_PER_LINK
        if needed > self.memory_limit:
            raise GraphTooLargeError

    def build(self) -> LinkGraph:
        """Return the graph without links to other rows and navigation; releases the added links."""
        import numpy as np

        hashes = np.frombuffer(self.hashes, dtype=np.int64)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted_hashes = hashes[self._order]
        if len(hashes) > 1 and bool((self._sorted_hashes[1:] == self._sorted_hashes[:-1]).any()):
            raise GraphTooLargeError
        kinds = []
        for kind in (0, 1):
            counts = np.frombuffer(self.counts[kind], dtype=np.int64)
            targets = np.frombuffer(self.targets[kind], dtype=np.int64).copy()
            self.targets[kind] = array("q")
            links = self._resolve_targets(counts, targets)
            if self._navigation_share < 1:
                links = drop_navigation(
                    links, self._sites, len(hashes), self._navigation_share, kind == EXTERNAL_INDEX, LINKS_PER_CHUNK
                )
            kinds.append(links)
        return LinkGraph(len(hashes), *kinds)

    def _resolve_targets(self, counts: Indices, targets: Indices) -> LinkArrays:
        """Replace hashes of targets by page numbers, in place."""
        import numpy as np

        kept = np.empty(len(targets), dtype=bool)
        for start in range(0, len(targets), LINKS_PER_CHUNK):
            chunk = slice(start, start + LINKS_PER_CHUNK)
            targets[chunk], kept[chunk] = self.find_pages(targets[chunk])
        if kept.all():
            return LinkArrays(counts.copy(), targets)
        kept_before = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
        ends = np.cumsum(counts)
        return LinkArrays(kept_before[ends] - kept_before[ends - counts], targets[kept])

    def find_pages(self, hashes: Indices) -> tuple[Indices, Mask]:
        """Return the page of each hash (undefined if not found), and whether it was found."""
        import numpy as np

        if not len(self._sorted_hashes):
            return np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes), dtype=bool)
        positions = np.minimum(np.searchsorted(self._sorted_hashes, hashes), len(self._sorted_hashes) - 1)
        return self._order[positions], self._sorted_hashes[positions] == hashes


def read_graph(conf: Configuration, store: DataStore[WebPage]) -> MemoryGraph:
    """Read the table once; raise :class:`GraphTooLargeError` as soon as the graph exceeds the limit."""
    rules = GraphLinkRules(conf)
    graph = MemoryGraph(get_memory_limit(conf), rules.navigation_share)
    for number, (key, page) in enumerate(RowValidator().valid_rows(store.scan(TableQuery(LINK_GRAPH_FIELDS)))):
        if rules.is_page(page):
            graph.add_page(key, rules.select_links(key, page))
        if number % 10_000 == 0:
            graph.check_memory()
    graph.check_memory()
    return graph


def write_ranks(
    store: DataStore[WebPage],
    graph: MemoryGraph,
    ranks: Any,
    update_score: bool,
    before_write: Callable[[], object] | None = None,
) -> int:
    """Write changed ranks into the rows; return the number of written rows.

    Rows outside the graph lose their rank. ``before_write`` runs before each write.
    """
    import numpy as np

    written = 0
    with store.batch(before_write) as batch:
        for rows in _iter_row_chunks(store):
            hashes = np.array([hash(key) for key, _ in rows], dtype=np.int64)
            numbers, found = graph.find_pages(hashes)
            values = np.where(found, ranks[numbers] if len(ranks) else 0.0, 0.0)
            for (key, page), value, known in zip(rows, values.tolist(), found.tolist(), strict=True):
                if known or page.page_rank:
                    page.page_rank = value
                    if update_score and known:
                        page.score = value
                    written += batch.put(key, page)
    return written


def _iter_row_chunks(store: DataStore[WebPage]) -> Iterator[list[tuple[str, WebPage]]]:
    rows: list[tuple[str, WebPage]] = []
    query = TableQuery(frozenset({WebPage.page_rank, WebPage.score, WebPage.fetch_interval}))
    for row in RowValidator().valid_rows(store.scan(query)):
        rows.append(row)
        if len(rows) == _ROWS_PER_WRITE:
            yield rows
            rows = []
    if rows:
        yield rows


def get_memory_limit(conf: Configuration) -> int:
    """Return the memory limit in bytes: ``pagerank.memory.limit`` (MB), by default half of the available memory."""
    limit = conf.get_int("pagerank.memory.limit", 0)
    if limit:
        return limit * 1_000_000
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 512
    except (OSError, KeyError, ValueError):  # unavailable, as on macOS
        return 1_000_000_000
