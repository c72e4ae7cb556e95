"""pagerank: a table of ROWS pages with 10 links each, half of them within the host; compared with scipy on arrays."""

from __future__ import annotations

import importlib.util
import random
import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measuring import Cost, Measurement, Nutch, run
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS = (10_000, 100_000, 1_000_000)
LINKS = 10
ITERATIONS = 20
AIMS = {1_000_000: 600.0}  # by MapReduce
_TASKS = {"mapreduce.job.maps": "2", "mapreduce.job.reduces": "2"}
_HOST_PAGES = 200
_ROOT = Path(__file__).resolve().parent.parent


def _url(number: int) -> str:
    return f"http://h{number // _HOST_PAGES:05d}.bench.example/p{number % _HOST_PAGES:04d}.html"


def _links(number: int, pages: int, chance: random.Random) -> set[int]:
    """Choose the linked pages of a page: a few pages have most links, as on the web."""
    first = number - number % _HOST_PAGES
    links: set[int] = set()
    while len(links) < LINKS:
        near = first + chance.randrange(min(_HOST_PAGES, pages - first))
        far = int(chance.paretovariate(1.1) * pages / 50) % pages
        links.add(near if chance.random() < 0.5 else far)
        links.discard(number)
    return links


def build(conf: Configuration, pages: int, edges: Path | None = None) -> None:
    """Create a table of fetched pages in key order; write the numbers of linked pages to the file ``edges``."""
    store = open_store(conf, WebPage)
    store.create()
    chance = random.Random(pages)
    numbers = array("q")
    with store.batch() as batch:
        for number in range(pages):
            page = WebPage()
            page.status, page.fetch_interval = CrawlStatus.FETCHED, 2_592_000
            links = _links(number, pages, chance)
            page.outlinks = {_url(target): "link" for target in links}
            numbers.extend(links)
            batch.put(reverse_url(_url(number)), page)
    if edges is not None:
        edges.write_bytes(numbers.tobytes())


def bare(edges: Path) -> NDArray[np.float64]:
    """Return the classic PageRank of the links of a file by scipy: the minimum of any program."""
    import numpy as np
    import scipy.sparse

    targets = np.fromfile(edges, dtype=np.int64)
    pages = len(targets) // LINKS
    sources = np.repeat(np.arange(pages), LINKS)
    matrix = scipy.sparse.csr_matrix((np.full(len(targets), 1 / LINKS), (targets, sources)), shape=(pages, pages))
    ranks = np.ones(pages)
    for _ in range(ITERATIONS):
        ranks = 0.15 + 0.85 * (matrix @ ranks)
    return ranks


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure ``nutch2py pagerank`` in memory, by MapReduce with two tasks, and scipy alone; a record is a link."""
    edges = folder / "edges"
    build(Configuration.load(overrides=Nutch(folder).settings), rows, edges)

    def measured(work: str, cost: Cost, aim: float | None = None) -> Measurement:
        return Measurement(f"pagerank {rows:,} pages, {work}", rows * LINKS, cost, "links", aim)

    found = []
    if importlib.util.find_spec("scipy"):
        command = [sys.executable, "-c", f"from bench import pagerank; pagerank.bare(pagerank.Path({str(edges)!r}))"]
        found.append(measured("scipy bare", run(command, folder=_ROOT)))
    else:
        print("scipy alone: skipped, scipy is not installed", file=sys.stderr)
    found.append(measured("in memory", Nutch(folder)("pagerank", "-D", "pagerank.method=memory")))
    runner = "local" if runner == "inline" else runner
    cost = Nutch(folder, runner, **_TASKS)("pagerank", "-D", "pagerank.method=mapreduce")
    found.append(measured(f"MapReduce, {runner}, 2 tasks", cost, AIMS.get(rows)))
    return found
