"""PageRank by MapReduce, for graphs that fit into no memory: one job reads the table, one more runs each iteration."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mrjob.step import MRStep

from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists, prefix_range
from nutch2py.jobs.pagerank_blocks import (
    EXTERNAL,
    INTERNAL,
    KEYS,
    LINKS,
    PAGES,
    PAGES_PER_BLOCK,
    PREFIX,
    BlockStore,
    LinkWriter,
    block_name,
)
from nutch2py.jobs.pagerank_links import FIELDS, LinkRules
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.protocol import SortedTextProtocol, escape_key, unescape_key
from nutch2py.mapreduce.splits import RangeSplit, SideSplit
from nutch2py.record import Field
from nutch2py.scoring.pagerank import Change, PageRankModel, difference, received, shares
from nutch2py.table import DataStore, Query
from nutch2py.webpage import BatchEntry, WebPage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PAGE = "!"  # sorts before the kinds of links
_VECTORS_HELD = 64  # sums of contributions that a map task keeps at once, 512 KB each
_ROWS = 1_000


class LinkGraphJob(TableJob):
    """Pages and links of the table into numbered blocks.

    First step: links come to their targets, which get numbers; those to rows that are no pages are dropped. Second
    step: the numbers come back to the pages that have the links.
    """

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True
    fields = FIELDS

    def steps(self) -> list[MRStep]:
        """Return the two joins."""
        return [MRStep(mapper=self.mapper, reducer=self.reducer), MRStep(reducer=self.reducer)]

    def prepare(self) -> None:
        """Load the rules."""
        self.rules = LinkRules(self.conf)
        self.blocks = BlockStore(self.batches)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield each page, and each of its links under the key of its target; a row that is no page loses its rank."""
        with self.store.batch() as batch:
            for key, page in pages:
                if not self.rules.is_page(page):
                    if page.page_rank:
                        page.page_rank = 0.0
                        batch.put(key, page)
                    continue
                yield key, _PAGE
                source = escape_key(key)
                links = self.rules.links(key, page)
                for kind, targets in ((INTERNAL, links.internal), (EXTERNAL, links.external)):
                    for target in targets:
                        yield target, kind + source

    def reduce_step(self, groups: Iterator[tuple[str, Iterator[Any]]], step_num: int) -> Iterator[Pair]:
        """Give numbers in the first step, write the links in the second."""
        return self._number(groups) if step_num == 0 else self._write(groups)

    def _number(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        keys: list[str] = []
        block = ""
        with self.batches.batch() as batch:
            for key, values in groups:
                first = next(values)
                if first != _PAGE:
                    self.count("pagerank", "links_left_out", 1 + sum(1 for _ in values))
                    continue
                if len(keys) == PAGES_PER_BLOCK:
                    self.blocks.put_pages(batch, keys)
                    keys = []
                if not keys:
                    block = block_name(key)
                number = f"{block} {len(keys)}"
                keys.append(key)
                yield key, _PAGE + number
                for value in values:
                    yield unescape_key(value[1:]), value[0] + number
                self.count("pagerank", "pages")
                self.channel.advance()
            if keys:
                self.blocks.put_pages(batch, keys)

    def _write(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        with self.batches.batch() as batch:
            writer = LinkWriter(self.blocks, batch)
            for _, values in groups:
                block, number = _place(next(values))
                links = [(value[0], *_place(value)) for value in values]
                if links:
                    writer.add(block, number, links)
                else:
                    self.count("pagerank", "leaves")
                self.count("pagerank", "links", len(links))
            writer.flush()
        yield from ()


def _place(value: str) -> tuple[str, int]:
    block, _, number = value[1:].partition(" ")
    return block, int(number)


class PageRankJob(TableJob):
    """One iteration: the shares of rank that links carry, summed up for each block that they lead to."""

    INTERNAL_PROTOCOL = SortedTextProtocol

    def prepare(self) -> None:
        """Read where the iteration stands."""
        conf = self.conf
        self.model = PageRankModel.of(conf)
        self.iteration = conf.get_int("pagerank.job.iteration")
        self.dangling, self.page_count = conf.get_float("pagerank.job.dangling"), conf.get_int("pagerank.job.pages")
        self.blocks = BlockStore(self.batches)

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Yield a vector of sums for each block that links lead to, and an empty text for each block there is."""
        if split.range.start.startswith(PAGES):
            for key, _ in self.batches.scan(Query(frozenset({BatchEntry.count}), split.range)):
                yield key.removeprefix(PAGES), ""
            return
        sums: dict[str, NDArray[np.float64]] = {}
        last, share = "", None
        for source, target, kind, sources, targets in self.blocks.links(split.range):
            weight = self.model.weight(kind == INTERNAL)
            if not weight:
                continue
            if source != last or share is None:
                ranks = self.blocks.ranks(source, self.iteration, self.model.initial)
                last, share = source, shares(ranks, self.blocks.degrees(source))
            pages = len(sums[target]) if target in sums else self.blocks.pages(target)
            brought = weight * received(share, sources, targets, pages)
            if target in sums:
                sums[target] += brought
            else:
                sums[target] = brought
                if len(sums) > _VECTORS_HELD:
                    yield from _texts(sums)
                    sums = {}
            self.channel.advance(len(sources))
        yield from _texts(sums)

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[Pair]:
        """Write the new ranks of each block; yield what the driver adds up."""
        import numpy as np

        with self.batches.batch() as batch:
            for block, values in groups:
                before = self.blocks.ranks(block, self.iteration, self.model.initial)
                total = np.zeros(len(before))
                for value in values:
                    if value:
                        total += np.frombuffer(base64.b64decode(value), dtype=np.float64)
                after = self.model.next_rank(total, self.dangling, self.page_count)
                self.blocks.put_ranks(batch, block, self.iteration + 1, after)
                mean, greatest = difference(before, after)
                leaves = self.blocks.degrees(block) == 0
                yield block, [mean * len(after), greatest, float(after[leaves].sum()), float(after.sum())]


def _texts(sums: dict[str, NDArray[np.float64]]) -> Iterator[Pair]:
    for block, vector in sums.items():
        yield block, base64.b64encode(vector.tobytes()).decode("ascii")


class RankWriterJob(TableJob):
    """Ranks out of the blocks into the rows, those that changed."""

    has_reducer = False

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Write the ranks of some blocks."""
        blocks, iteration = BlockStore(self.batches), self.conf.get_int("pagerank.job.iteration")
        initial, update_score = PageRankModel.of(self.conf).initial, self.conf.get_bool("pagerank.update.score")
        fields: set[Field[Any]] = {WebPage.page_rank, WebPage.score, WebPage.fetch_interval}
        with self.store.batch() as batch:
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
        self.conf = conf.copy()
        self.side: DataStore[BatchEntry] = BatchLists(conf).store
        self.model = PageRankModel.of(conf)
        self.pages = self.links = 0
        self.mean = self.model.initial

    def clear(self) -> None:
        """Delete the blocks, those of a run that was killed included."""
        BatchLists(self.conf).delete(prefix_range(PREFIX))

    def read(self, store: DataStore[WebPage]) -> None:
        """Make the blocks of the table."""
        self.side.create()
        self.clear()
        splits = [RangeSplit(key_range) for key_range in store.key_ranges(Query(FIELDS), map_tasks(self.conf))]
        expected = (store.row_estimate() or 0) * 2 or None  # each page is read, then numbered
        result = run_job(LinkGraphJob, self.conf, splits, title="PageRankJob: reading links", expected=expected)
        self.pages, self.links = result.count("pagerank", "pages"), result.count("pagerank", "links")
        self._dangling = result.count("pagerank", "leaves") * self.model.initial

    def iterate(self, iterations: int, tolerance: float, report: Callable[[int, Change], None]) -> int:
        """Run iterations as :func:`nutch2py.scoring.pagerank.pagerank` does; return how many were done."""
        splits = [*self._splits(LINKS), SideSplit(prefix_range(PAGES))]
        self.conf.set("pagerank.job.pages", self.pages)
        done = 0
        while self.pages and done < iterations:
            self.conf.set("pagerank.job.iteration", done)
            self.conf.set("pagerank.job.dangling", repr(self._dangling))
            title = f"PageRankJob: iteration {done + 1}"
            result = run_job(PageRankJob, self.conf, splits, title=title, expected=self.links)
            parts = [values for _, values in result.output]
            self._dangling = sum(part[2] for part in parts)
            change = Change(sum(part[0] for part in parts) / self.pages, max(part[1] for part in parts))
            self.mean = sum(part[3] for part in parts) / self.pages
            done += 1
            report(done, change)
            if change.mean <= tolerance and tolerance > 0:
                break
        self.conf.set("pagerank.job.iteration", done)
        return done

    def write(self) -> int:
        """Write the ranks into the table; return how many rows changed."""
        result = run_job(RankWriterJob, self.conf, self._splits(KEYS), title="PageRankJob: writing")
        return result.count("pagerank", "rows_written")

    def _splits(self, prefix: str) -> list[SideSplit]:
        query = Query(frozenset({BatchEntry.data}), prefix_range(prefix))
        return [SideSplit(key_range) for key_range in self.side.key_ranges(query, map_tasks(self.conf))]
