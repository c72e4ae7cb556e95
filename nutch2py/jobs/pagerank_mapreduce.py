"""PageRank by MapReduce, for graphs that fit into no memory: one job reads the table, one more runs each iteration."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.clearing import clear
from nutch2py.jobs.pagerank_blocks import CUTS, INTERNAL, KEYS, LINKS, PREFIX, BlockStore
from nutch2py.jobs.pagerank_graph import LinkGraphJob, LinkGraphParameters, bucket_bits
from nutch2py.jobs.pagerank_links import FIELDS
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pair, TableJob
from nutch2py.mapreduce.parameters import NUMBER, JobParameters
from nutch2py.mapreduce.protocol import SortedTextProtocol
from nutch2py.mapreduce.splits import SideSplit, range_splits
from nutch2py.ranges import LONG, Range
from nutch2py.record import Field
from nutch2py.scoring.rank_model import Change, PageRankModel, difference, received, shares
from nutch2py.table import DataStore, Query, prefix_range
from nutch2py.webpage import BatchEntry, WebPage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_VECTORS_HELD = 64  # sums of contributions that a map task keeps at once, 512 KB each
_SPARSE = 10  # bytes of an entry of a sum when those that are nothing are left out, else 8
_ROWS = 1_000


@dataclass(frozen=True, kw_only=True)
class IterationParameters(JobParameters):
    """Where the iterations stand: how many were done, and the rank of ``pages`` that the ``dangling`` ones hold."""

    iteration: int
    pages: int = 0
    dangling: float = 0.0
    ranges: ClassVar = {"iteration": NUMBER, "pages": NUMBER, "dangling": Range(0, LONG, whole=False)}


class PageRankJob(TableJob[IterationParameters]):
    """One iteration: the shares of rank that links carry, summed up for each block that they lead to.

    A map task holds the sums of 64 blocks, 32 MB, and the links of one row; a reduce task the ranks of one block.
    """

    INTERNAL_PROTOCOL = SortedTextProtocol

    def prepare(self) -> None:
        """Read where the iteration stands."""
        self.model = PageRankModel.of(self.conf)
        self.blocks = BlockStore(self.batches)

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Yield sums for each block that links lead to, and an empty text for each block there is."""
        import numpy as np

        sums: dict[str, Floats] = {}
        last, share = "", None
        for links in self.blocks.links(split.range):
            if isinstance(links, str):
                yield links, ""
                continue
            weight = self.model.weight(links.kind == INTERNAL)
            if not weight:
                continue
            if links.source != last or share is None:
                ranks = self.blocks.ranks(links.source, self.parameters.iteration, self.model.initial)
                last, share = links.source, shares(ranks, self.blocks.degrees(links.source))
            total = sums.get(links.target)
            pages = self.blocks.pages(links.target) if total is None else len(total)
            ends = links.sources.astype(np.int64), links.targets.astype(np.int64)
            brought = weight * received(share, *ends, pages)
            if total is not None:
                total += brought
            else:
                if len(sums) >= _VECTORS_HELD:
                    yield from _texts(sums)
                    sums = {}
                sums[links.target] = brought
            self.channel.advance(len(links.sources))
        yield from _texts(sums)

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        """Write the new ranks of each block; yield what the driver adds up."""
        import numpy as np

        at = self.parameters
        with self.batches.batch() as batch:
            for block, values in groups:
                before = self.blocks.ranks(block, at.iteration, self.model.initial)
                total = np.zeros(len(before))
                for value in values:
                    _add(value, total)
                after = self.model.next_rank(total, at.dangling, at.pages)
                self.blocks.put_ranks(batch, block, at.iteration + 1, after)
                mean, greatest = difference(before, after)
                leaves = self.blocks.degrees(block) == 0
                yield block, [mean * len(after), greatest, float(after[leaves].sum()), float(after.sum())]


def _texts(sums: dict[str, Floats]) -> Iterator[Pair]:
    """Yield sums as text, whole or, when that is shorter, what is not nothing with the places of it."""
    import numpy as np

    for block, vector in sums.items():
        places = np.flatnonzero(vector)
        if len(places) * _SPARSE < vector.nbytes:
            kind, data = "s", vector[places].astype("<f8").tobytes() + places.astype("<u2").tobytes()
        else:
            kind, data = "d", vector.astype("<f8").tobytes()
        yield block, kind + base64.b64encode(data).decode("ascii")


def _add(text: str, total: Floats) -> None:
    """Add what :func:`_texts` has written."""
    import numpy as np

    data = base64.b64decode(text[1:])
    if text.startswith("d"):
        total += np.frombuffer(data, dtype="<f8")
    elif text:
        count = len(data) // _SPARSE
        total[np.frombuffer(data, "<u2", offset=count * 8)] += np.frombuffer(data, "<f8", count)


class RankWriterJob(TableJob[IterationParameters]):
    """Ranks out of the blocks into the rows, those that changed."""

    reduce_steps = 0

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Write the ranks of some blocks."""
        blocks, iteration = BlockStore(self.batches), self.parameters.iteration
        initial, update_score = PageRankModel.of(self.conf).initial, self.conf.get_bool("pagerank.update.score")
        fields: set[Field[Any]] = {WebPage.page_rank, WebPage.score, WebPage.fetch_interval}
        with self.store.batch(self.check_held) as batch:
            for name, entry in self.batches.scan(Query(frozenset({BatchEntry.data}), split.range)):
                keys = blocks.keys(entry)
                ranks = blocks.ranks(name.removeprefix(KEYS), iteration, initial).tolist()
                for start in range(0, len(keys), _ROWS):
                    some = keys[start : start + _ROWS]
                    for key, page, rank in zip(some, self.store.get_many(some, fields), ranks[start:], strict=False):
                        if page is None:  # deleted since the table was read
                            continue
                        page.page_rank = rank
                        if update_score:
                            page.score = rank
                        self.count("pagerank", "rows_written", batch.put(key, page))
                    self.channel.advance(len(some))
        yield from ()


class MapReduceRanks:
    """Runs the jobs. ``pages`` and ``links``: the size of the graph, known after :meth:`read`."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.side: DataStore[BatchEntry] = BatchLists(conf).store
        self.model = PageRankModel.of(conf)
        self.pages = self.links = 0
        self.done = 0
        self.mean = self.model.initial

    def clear(self) -> None:
        """Delete the blocks, those of a run that was killed included."""
        clear(self.conf, BatchLists(self.conf), prefix_range(PREFIX), CUTS, "PageRankJob")

    def read(self, store: DataStore[WebPage]) -> None:
        """Make the blocks of the table."""
        self.side.create()
        splits = range_splits(store, Query(FIELDS), map_tasks(self.conf))
        rows = store.row_estimate()
        bits = bucket_bits(rows)
        expected = rows * 2 if rows else None  # each page is read, then numbered
        for salt in itertools.count():
            self.clear()
            asked = LinkGraphParameters(bits=bits, salt=salt)
            title = "PageRankJob: reading links"
            result = run_job(LinkGraphJob, self.conf, splits, asked, title=title, expected=expected)
            if not result.count("pagerank", "collisions"):  # else two pages had one hash: another one parts them
                break
        self.pages, self.links = result.count("pagerank", "pages"), result.count("pagerank", "links")
        leaves = self.pages - result.count("pagerank", "pages_with_links")
        self._dangling = leaves * self.model.initial

    def iterate(self, iterations: int, tolerance: float, report: Callable[[int, Change], None]) -> int:
        """Run iterations as :func:`nutch2py.scoring.rank_model.pagerank` does; return how many were done."""
        splits = self._splits(LINKS)
        while self.pages and self.done < iterations:
            at = IterationParameters(iteration=self.done, pages=self.pages, dangling=self._dangling)
            title = f"PageRankJob: iteration {self.done + 1}"
            result = run_job(PageRankJob, self.conf, splits, at, title=title, expected=self.links)
            parts = [values for _, values in result.output]
            self._dangling = sum(part[2] for part in parts)
            change = Change(sum(part[0] for part in parts) / self.pages, max(part[1] for part in parts))
            self.mean = sum(part[3] for part in parts) / self.pages
            self.done += 1
            report(self.done, change)
            if change.mean <= tolerance and tolerance > 0:
                break
        return self.done

    def write(self) -> int:
        """Write the ranks into the table; return how many rows changed."""
        at = IterationParameters(iteration=self.done)
        result = run_job(RankWriterJob, self.conf, self._splits(KEYS), at, title="PageRankJob: writing")
        return result.count("pagerank", "rows_written")

    def _splits(self, prefix: str) -> list[SideSplit]:
        query = Query(frozenset({BatchEntry.data}), prefix_range(prefix))
        return [SideSplit(key_range) for key_range in self.side.key_ranges(query, map_tasks(self.conf))]
