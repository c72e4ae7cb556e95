"""nodedumper: the pages, hosts or domains with the most inlinks, the most outlinks or the highest scores."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from nutch2py.conf import Configuration
from nutch2py.disk import new_file
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.works import reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import SEVERAL, JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.reporting import say, tell
from nutch2py.table import Query
from nutch2py.url.keys import host_of_key, name_of_key, unreverse_host
from nutch2py.url.parts import domain_of_host
from nutch2py.webpage import WebPage

Value = Literal["inlinks", "outlinks", "scores"]
_FIELD = {"inlinks": WebPage.inlinks, "outlinks": WebPage.outlinks, "scores": WebPage.score}
_HELD = 50_000  # names that a task holds before it gives them on


@dataclass(frozen=True, kw_only=True)
class NodeParameters(JobParameters):
    """``value``: inlinks, outlinks or scores. ``top``: how many. ``group``: host, domain or ""; ``add``: sum or max."""

    value: str = "scores"
    top: int
    group: str = ""
    add: str = "sum"
    ranges: ClassVar = {"top": SEVERAL}


class NodeDumperJob(TableJob[NodeParameters]):
    """Rows to the greatest of each split; with a group, to values by its name."""

    def prepare(self) -> None:
        """Read what is asked for, and nothing else."""
        self.fields = frozenset({_FIELD[self.parameters.value]})

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield (row key, value), or (host or domain, value)."""
        values = ((self._value(page), key) for key, page in pages)
        if not self.parameters.group:
            yield from self._best((key, value) for value, key in values)
            return
        held: dict[str, float] = {}
        for value, key in values:
            host = unreverse_host(host_of_key(key))
            name = domain_of_host(host) if self.parameters.group == "domain" else host
            held[name] = value if name not in held else self._joined(held[name], value)
            if len(held) >= _HELD:
                yield from held.items()
                held.clear()
        yield from held.items()

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Yield the greatest of all."""
        join = sum if self.parameters.add == "sum" else max
        yield from self._best((name, join(values)) for name, values in groups)

    def _best(self, pairs: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
        return heapq.nsmallest(self.parameters.top, pairs, key=lambda pair: (-pair[1], pair[0]))

    def _value(self, page: WebPage) -> float:
        match self.parameters.value:
            case "inlinks":
                return len(page.inlinks)
            case "outlinks":
                return len(page.outlinks)
            case _:
                return page.score

    def _joined(self, one: float, other: float) -> float:
        return one + other if self.parameters.add == "sum" else max(one, other)


def greatest(conf: Configuration, asked: NodeParameters) -> list[tuple[str, float]]:
    """Return (URL, host or domain; value), the greatest first, equal ones by row key or name."""
    with begin(conf, reader("nodedumper")) as tables:
        store = tables.store
        splits = range_splits(store, Query(frozenset({_FIELD[asked.value]})), map_tasks(conf))
        result = run_job(NodeDumperJob, conf, splits, asked, title="NodeDumper", expected=store.row_estimate())
    best = sorted(result.output, key=lambda each: (-each[1], each[0]))[: asked.top]
    return [(name if asked.group else name_of_key(name), value) for name, value in best]


def print_nodes(conf: Configuration, asked: NodeParameters, output: Path | None = None) -> int:
    """Print ``name<TAB>value`` lines, or write them to a file."""
    lines = [f"{name}\t{value:g}" for name, value in greatest(conf, asked)]
    if output is None:
        for line in lines:
            say(line)
        return 0
    with new_file(output) as out:
        out.writelines(f"{line}\n".encode() for line in lines)
    tell(f"NodeDumper: {len(lines)} lines in {output}")
    return 0
