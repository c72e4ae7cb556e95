"""PageRank by MapReduce for graphs that exceed the memory: one job builds the graph, one job runs per iteration."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import LONG_MAX, NumberRange
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.batches.bulk_delete import bulk_delete_range
from nutch2py.jobs.pagerank.graph_blocks import (
    BLOCKS_PREFIX,
    INTERNAL_KIND,
    KEYS_PREFIX,
    LINK_SPLIT_KEYS,
    LINKS_PREFIX,
    GraphBlockStore,
)
from nutch2py.jobs.pagerank.graph_links import LINK_GRAPH_FIELDS
from nutch2py.jobs.pagerank.link_graph_job import LinkGraphJob, LinkGraphParameters, choose_bucket_bits
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import DerivedTableSplit, range_splits
from nutch2py.mapreduce.job_parameters import NON_NEGATIVE, JobParameters
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol
from nutch2py.mapreduce.table_job import KeyValuePair, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.scoring.pagerank_model import PageRankModel, RankChange, rank_change, rank_shares, received_rank
from nutch2py.table import DataStore, TableQuery, prefix_range

if TYPE_CHECKING:
    from nutch2py.jobs.pagerank.array_types import Floats

MAX_HELD_VECTORS = 64
"""Vectors of received rank that a map task buffers, 512 KB each."""
_SPARSE_ENTRY_BYTES = 10  # bytes per entry of a sparse vector; 8 in a dense one
_ROWS_PER_READ = 1_000


@dataclass(frozen=True, kw_only=True)
class IterationParameters(JobParameters):
    """State of the iterations: number of finished ones, number of ``pages``, total rank of ``dangling`` pages."""

    iteration: int
    pages: int = 0
    dangling: float = 0.0
    ranges: ClassVar = {
        "iteration": NON_NEGATIVE,
        "pages": NON_NEGATIVE,
        "dangling": NumberRange(0, LONG_MAX, integer=False),
    }


class PageRankJob(TableJob[IterationParameters]):
    """One iteration: sums the rank that links carry to each block.

    A map task holds the vectors of 64 blocks (32 MB) and the links of one row, a reduce task the ranks of one block.
    """

    INTERNAL_PROTOCOL = SortedTextProtocol

    def prepare(self) -> None:
        """Load the model and the blocks."""
        self.model = PageRankModel.from_conf(self.conf)
        self.block_store = GraphBlockStore(self.derived_store)

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Yield the received rank of target blocks, and "" for each block."""
        import numpy as np

        sums: dict[str, Floats] = {}
        last, share = "", None
        for links in self.block_store.iter_links(split.key_range):
            if isinstance(links, str):
                yield links, ""
                continue
            weight = self.model.link_weight(links.kind == INTERNAL_KIND)
            if not weight:
                continue
            if links.source_block != last or share is None:
                ranks = self.block_store.get_ranks(
                    links.source_block, self.parameters.iteration, self.model.initial_rank
                )
                last, share = links.source_block, rank_shares(ranks, self.block_store.get_degrees(links.source_block))
            total = sums.get(links.target_block)
            pages = self.block_store.count_pages(links.target_block) if total is None else len(total)
            ends = links.source_numbers.astype(np.int64), links.target_numbers.astype(np.int64)
            received = weight * received_rank(share, *ends, pages)
            if total is not None:
                total += received
            else:
                if len(sums) >= MAX_HELD_VECTORS:
                    yield from encode_sums(sums)
                    sums = {}
                sums[links.target_block] = received
            self.channel.advance(len(links.source_numbers))
        yield from encode_sums(sums)

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[KeyValuePair]:
        """Write the new ranks of each block; yield the values that the driver sums."""
        import numpy as np

        parameters = self.parameters
        with self.derived_store.batch() as batch:
            for block, values in groups:
                old_ranks = self.block_store.get_ranks(block, parameters.iteration, self.model.initial_rank)
                total = np.zeros(len(old_ranks))
                for value in values:
                    add_encoded(value, total)
                new_ranks = self.model.next_rank(total, parameters.dangling, parameters.pages)
                self.block_store.put_ranks(batch, block, parameters.iteration + 1, new_ranks)
                mean, greatest = rank_change(old_ranks, new_ranks)
                leaves = self.block_store.get_degrees(block) == 0
                yield block, [mean * len(new_ranks), greatest, float(new_ranks[leaves].sum()), float(new_ranks.sum())]


def encode_sums(sums: dict[str, Floats]) -> Iterator[KeyValuePair]:
    """Yield vectors as text, dense or, if shorter, sparse with indices."""
    import numpy as np

    for block, vector in sums.items():
        nonzero = np.flatnonzero(vector)
        if len(nonzero) * _SPARSE_ENTRY_BYTES < vector.nbytes:
            kind, data = "s", vector[nonzero].astype("<f8").tobytes() + nonzero.astype("<u2").tobytes()
        else:
            kind, data = "d", vector.astype("<f8").tobytes()
        yield block, kind + base64.b64encode(data).decode("ascii")


def add_encoded(text: str, total: Floats) -> None:
    """Add a vector encoded by :func:`encode_sums`."""
    import numpy as np

    data = base64.b64decode(text[1:])
    if text.startswith("d"):
        total += np.frombuffer(data, dtype="<f8")
    elif text:
        count = len(data) // _SPARSE_ENTRY_BYTES
        total[np.frombuffer(data, "<u2", offset=count * 8)] += np.frombuffer(data, "<f8", count)


class RankWriterJob(TableJob[IterationParameters]):
    """Writes changed ranks from the blocks into the rows."""

    reduce_steps = 0

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Write the ranks of chunk blocks."""
        blocks, iteration = GraphBlockStore(self.derived_store), self.parameters.iteration
        initial, update_score = (
            PageRankModel.from_conf(self.conf).initial_rank,
            self.conf.get_bool("pagerank.update.score"),
        )
        fields: set[RecordField] = {WebPage.page_rank, WebPage.score, WebPage.fetch_interval}
        with self.store.batch(self.check_lock) as batch:
            for name, entry in self.derived_store.scan(TableQuery(frozenset({DerivedRow.data}), split.key_range)):
                keys = blocks.decode_row_keys(entry)
                ranks = blocks.get_ranks(name.removeprefix(KEYS_PREFIX), iteration, initial).tolist()
                for start in range(0, len(keys), _ROWS_PER_READ):
                    chunk = keys[start : start + _ROWS_PER_READ]
                    for key, page, rank in zip(chunk, self.store.get_many(chunk, fields), ranks[start:], strict=False):
                        if page is None:  # deleted after the table was read
                            continue
                        page.page_rank = rank
                        if update_score:
                            page.score = rank
                        self.count("pagerank", "rows_written", batch.put(key, page))
                    self.channel.advance(len(chunk))
        yield from ()


class MapReducePageRank:
    """Runs the jobs; ``pages`` and ``links`` are the size of the graph after :meth:`build_blocks`."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self.block_table: DataStore[DerivedRow] = BatchListStore(conf).store
        self.model = PageRankModel.from_conf(conf)
        self.pages = self.links = 0
        self.iterations_done = 0
        self.mean = self.model.initial_rank

    def delete_blocks(self) -> None:
        """Delete the blocks, including those of killed runs."""
        bulk_delete_range(
            self.conf, BatchListStore(self.conf), prefix_range(BLOCKS_PREFIX), LINK_SPLIT_KEYS, "PageRankJob"
        )

    def build_blocks(self, store: DataStore[WebPage]) -> None:
        """Build the blocks from the table."""
        self.block_table.create()
        splits = range_splits(store, TableQuery(LINK_GRAPH_FIELDS), map_task_count(self.conf))
        rows = store.row_estimate()
        bits = choose_bucket_bits(rows)
        expected = rows * 2 if rows else None  # each page is read, then numbered
        for salt in itertools.count():
            self.delete_blocks()
            parameters = LinkGraphParameters(bits=bits, salt=salt)
            title = "PageRankJob: reading links"
            result = run_job(LinkGraphJob, self.conf, splits, parameters, title=title, expected_rows=expected)
            if not result.count("pagerank", "collisions"):  # otherwise repeat with another salt
                break
        self.pages, self.links = result.count("pagerank", "pages"), result.count("pagerank", "links")
        leaves = self.pages - result.count("pagerank", "pages_with_links")
        self._dangling_rank = leaves * self.model.initial_rank

    def run_iterations(self, iterations: int, tolerance: float, report: Callable[[int, RankChange], None]) -> int:
        """Run iterations as :func:`nutch2py.scoring.pagerank_model.compute_pagerank` does; return their number."""
        splits = self._make_splits(LINKS_PREFIX)
        while self.pages and self.iterations_done < iterations:
            parameters = IterationParameters(
                iteration=self.iterations_done, pages=self.pages, dangling=self._dangling_rank
            )
            title = f"PageRankJob: iteration {self.iterations_done + 1}"
            result = run_job(PageRankJob, self.conf, splits, parameters, title=title, expected_rows=self.links)
            parts = [values for _, values in result.output]
            self._dangling_rank = sum(part[2] for part in parts)
            change = RankChange(sum(part[0] for part in parts) / self.pages, max(part[1] for part in parts))
            self.mean = sum(part[3] for part in parts) / self.pages
            self.iterations_done += 1
            report(self.iterations_done, change)
            if change.mean <= tolerance and tolerance > 0:
                break
        return self.iterations_done

    def write_ranks(self) -> int:
        """Write the ranks into the table; return the number of changed rows."""
        parameters = IterationParameters(iteration=self.iterations_done)
        result = run_job(
            RankWriterJob, self.conf, self._make_splits(KEYS_PREFIX), parameters, title="PageRankJob: writing"
        )
        return result.count("pagerank", "rows_written")

    def _make_splits(self, prefix: str) -> list[DerivedTableSplit]:
        query = TableQuery(frozenset({DerivedRow.data}), prefix_range(prefix))
        return [
            DerivedTableSplit(key_range) for key_range in self.block_table.key_ranges(query, map_task_count(self.conf))
        ]
