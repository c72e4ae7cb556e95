"""nodedumper: lists pages, hosts or domains with the most inlinks, most outlinks or highest scores."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import make_reader_scope
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import POSITIVE, JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.records.webpage import WebPage
from nutch2py.support.atomic_files import atomic_write
from nutch2py.support.reporting import log_line, print_output
from nutch2py.table import TableQuery
from nutch2py.url.keys import reversed_host_of_key, unreverse_host, url_or_key
from nutch2py.url.url_parts import DomainRules

NodeValue = Literal["inlinks", "outlinks", "scores"]
_FIELD_BY_VALUE = {"inlinks": WebPage.inlinks, "outlinks": WebPage.outlinks, "scores": WebPage.score}
_MAX_BUFFERED_NAMES = 50_000  # names that a task buffers before it emits them


@dataclass(frozen=True, kw_only=True)
class NodeDumperParameters(JobParameters):
    """Parameters of the job.

    Attributes:
        value: inlinks, outlinks or scores.
        top: Number of nodes.
        group: host, domain, or "" for pages.
        aggregate: sum or max of the pages of a group.
    """

    value: str = "scores"
    top: int
    group: str = ""
    aggregate: str = "sum"
    ranges: ClassVar = {"top": POSITIVE}


class NodeDumperJob(TableJob[NodeDumperParameters]):
    """Selects the nodes with the highest values."""

    def prepare(self) -> None:
        """Select the field to read."""
        self._domain_of_host = DomainRules.from_conf(self.conf).domain_of_host
        self.fields = frozenset({_FIELD_BY_VALUE[self.parameters.value]})

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield (row key, value), or (host or domain, value)."""
        values = ((self._get_value(page), key) for key, page in pages)
        if not self.parameters.group:
            yield from self._select_top((key, value) for value, key in values)
            return
        buffer: dict[str, float] = {}
        for value, key in values:
            host = unreverse_host(reversed_host_of_key(key))
            name = self._domain_of_host(host) if self.parameters.group == "domain" else host
            buffer[name] = value if name not in buffer else self._aggregate(buffer[name], value)
            if len(buffer) >= _MAX_BUFFERED_NAMES:
                yield from buffer.items()
                buffer.clear()
        yield from buffer.items()

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Yield the nodes with the highest values."""
        join = sum if self.parameters.aggregate == "sum" else max
        yield from self._select_top((name, join(values)) for name, values in groups)

    def _select_top(self, pairs: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
        return heapq.nsmallest(self.parameters.top, pairs, key=lambda pair: (-pair[1], pair[0]))

    def _get_value(self, page: WebPage) -> float:
        match self.parameters.value:
            case "inlinks":
                return len(page.inlinks)
            case "outlinks":
                return len(page.outlinks)
            case _:
                return page.score

    def _aggregate(self, one: float, other: float) -> float:
        return one + other if self.parameters.aggregate == "sum" else max(one, other)


def find_top_nodes(conf: Configuration, parameters: NodeDumperParameters) -> list[tuple[str, float]]:
    """Return (URL, host or domain; value), in descending order, then by row key or name."""
    with open_job(conf, make_reader_scope("nodedumper")) as tables:
        store = tables.store
        splits = range_splits(store, TableQuery(frozenset({_FIELD_BY_VALUE[parameters.value]})), map_task_count(conf))
        result = run_job(
            NodeDumperJob, conf, splits, parameters, title="NodeDumper", expected_rows=store.row_estimate()
        )
    best = sorted(result.output, key=lambda each: (-each[1], each[0]))[: parameters.top]
    return [(name if parameters.group else url_or_key(name), value) for name, value in best]


def print_nodes(conf: Configuration, parameters: NodeDumperParameters, output: Path | None = None) -> int:
    """Print ``name<TAB>value`` lines, or write them to a file."""
    lines = [f"{name}\t{value:g}" for name, value in find_top_nodes(conf, parameters)]
    if output is None:
        for line in lines:
            print_output(line)
        return 0
    with atomic_write(output) as out:
        out.writelines(f"{line}\n".encode() for line in lines)
    log_line(f"NodeDumper: {len(lines)} lines in {output}")
    return 0
