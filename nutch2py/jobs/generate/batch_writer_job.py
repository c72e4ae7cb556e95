"""BatchWriterJob: write the list of a batch, ordered for the fetch tasks, and the marks into its rows.

Map: the entries up to the cut, each to the partition of its host. Reduce, one group per partition: interleave the URLs
of the hosts, write the list, then the marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

import orjson

from nutch2py.jobs.batches.batch_lists import put_list_entry
from nutch2py.jobs.generate.candidate_blocks import decode_entry, read_block_entries
from nutch2py.jobs.generate.top_n import SEPARATOR, get_url_and_moved_marks
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.mapreduce.job_parameters import NON_NEGATIVE, POSITIVE, BatchParameters
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol, partition_key, partition_of_key
from nutch2py.mapreduce.table_job import KeyValuePair, TableJob
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.url.keys import reverse_url
from nutch2py.url.url_partitioner import URLPartitioner


@dataclass(frozen=True, kw_only=True)
class BatchWriterParameters(BatchParameters):
    """Parameters of a batch.

    ``last_entry``: the last entry of the batch, in hexadecimal, "" for all. ``partitions``: the number of fetch tasks
    that the list is made for. ``seed``: determines which hosts share a partition.
    """

    last_entry: str = ""
    partitions: int = 1
    seed: int = 0
    ranges: ClassVar = {"partitions": POSITIVE, "seed": NON_NEGATIVE}


class BatchWriterJob(TableJob[BatchWriterParameters]):
    """Selected entries to a batch list and marks."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Yield the entries of some blocks by partition, each with the key of its host."""
        parameters = self.parameters
        partitioner = URLPartitioner(self.conf, seed=parameters.seed)
        last, count, failures = bytes.fromhex(parameters.last_entry), parameters.partitions, self.plugin_failures
        for lines in read_block_entries(self.derived_store, split.key_range):
            for line in lines:
                if last and line > last:
                    break
                text = decode_entry(line)
                url, _ = get_url_and_moved_marks(text)
                failures.pages += 1
                try:
                    number, host = partitioner.partition(url, count), partitioner.key(url)
                except PluginError as error:
                    failures.record(error)
                    continue
                yield partition_key(number, count), f"{text}{SEPARATOR}{host}"

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[KeyValuePair]:
        """Write the list of each partition, then the marks: a list without marks does no harm."""
        batch_id = self.parameters.batch_id
        for partition, texts in groups:
            hosts: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
            for text in texts:
                entry, host = text.rsplit(SEPARATOR, 1)
                hosts[host].append(get_url_and_moved_marks(entry))
            rows: list[tuple[str, str]] = []
            with self.derived_store.batch(self.check_lock) as batch:
                for order, (url, moved) in enumerate(interleave_hosts(hosts)):
                    key = reverse_url(url)
                    put_list_entry(batch, batch_id, partition_of_key(partition), order, key)
                    rows.append((key, moved))
            rows.sort()
            self.store.due_index().add_rows_without_time([key for key, moved in rows if moved])
            with self.write_batch() as batch:
                for key, moved in rows:
                    page = WebPage({}, frozenset())
                    if moved:  # the URL normalizes to another row, which takes over these marks, as in Nutch
                        page.markers.update(orjson.loads(moved))
                    page.markers[Mark.GENERATE] = batch_id
                    page.batch_id = batch_id
                    batch.put(key, page)
                    self.channel.advance()
            self.count("generator", "generated", len(rows))
        yield from ()


def interleave_hosts(hosts: dict[str, list[tuple[str, str]]]) -> list[tuple[str, Any]]:
    """Distribute the URLs of each host evenly over the whole list, in their order, from different start positions."""
    placed = [
        ((rank + crc32(name.encode()) / 2**32) / len(urls), name, url)
        for name, urls in hosts.items()
        for rank, url in enumerate(urls)
    ]
    placed.sort()
    return [url for _, _, url in placed]
