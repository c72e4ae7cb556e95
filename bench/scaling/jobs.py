"""Phases of each job, after ``nutch2py/jobs`` with HBase and ``-r hadoop``.

``serial`` is the work of a single process, independent of the cluster's size; its keys are the names in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from bench.scaling.hosts import Fetching, fetching, host_sizes
from bench.scaling.model import BOUND_BY_REGIONS, Cluster, Crawl, Phase

Parameters = Mapping[str, float]
Phases = list[Phase]
_SEED_BYTES = 40
_BLOCK = 1_000  # entries of a candidate block
_JOURNAL_BLOCK = 500
_MANY = 100_000  # entries of a batch list that is split without sampling
_FEW = 500_000  # rows of the derived table that the driver deletes itself
_PAGE_MOVED = 12_000  # bytes of a page between task, gateway, region server
_ROW_MOVED = 250
_BLOCK_PAGES = 65_536
_RANK_BUCKETS = 1_024


def regions(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> int:
    """Return the number of regions of the table."""
    return max(1, math.ceil(crawl.stored(parameters) / (cluster.region_bytes * 0.75)))


def _scan(crawl: Crawl, cluster: Cluster, parameters: Parameters, name: str) -> Phase:
    """Return a pass over every row, with a map task per region: more tasks would sample the whole table."""
    count = regions(crawl, cluster, parameters)
    return Phase(
        starts=1,
        tasks=count,
        uneven=True,
        limit=BOUND_BY_REGIONS,
        task=crawl.rows * parameters[f"{name}.task"],
        region=crawl.rows * parameters[f"{name}.region"],
        gateway=crawl.rows * parameters[f"{name}.gateway"],
        moved=crawl.rows * _ROW_MOVED,
        read=crawl.rows * parameters["row.bytes"],
    )


def _batch(crawl: Crawl, cluster: Cluster, parameters: Parameters, name: str) -> Phase:
    """Return a pass over the rows of a batch by its list; a long list is split by entry numbers."""
    count = crawl.top_n
    cutting = count * parameters["sample.row"]
    if count >= _MANY:
        cutting = min(cutting, 3 * cluster.all_slots * parameters["seek.row"])
    return Phase(
        serial={"the driver cuts the batch list": cutting},
        starts=1,
        tasks=cluster.all_slots,
        task=count * parameters[f"{name}.task"],
        region=count * parameters[f"{name}.region"],
        gateway=count * parameters[f"{name}.gateway"],
        moved=count * _PAGE_MOVED,
        read=count * parameters["page.bytes"],
    )


def _clearing(rows: float, name: str, cluster: Cluster, parameters: Parameters) -> Phase:
    """Return the deletion of rows of the derived table, by tasks if there are many."""
    if rows <= _FEW:
        return Phase(serial={f"the driver deletes {name}": rows * parameters["delete.row"]})
    each = {what: rows * parameters[f"delete.{what}"] for what in ("task", "region", "gateway")}
    return Phase(starts=1, tasks=cluster.all_slots, moved=rows * _ROW_MOVED, **each)


def inject(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Return the injection of as many seeds as a batch has rows; the driver splits the seed file."""
    seeds = crawl.top_n
    size = seeds * _SEED_BYTES
    each = {what: seeds * parameters[f"inject.{what}"] for what in ("task", "region", "gateway")}
    splitting = {"the driver splits the seed file": size * parameters["seed.byte"]}
    tasks = max(cluster.all_slots, math.ceil(size / (16 << 20)))
    mapped = Phase(serial=splitting, starts=1, tasks=tasks, task=each["task"] / 2)
    written = Phase(
        tasks=cluster.all_slots,
        task=each["task"] / 2 + seeds * parameters["shuffle.record"],
        region=each["region"],
        gateway=each["gateway"],
        moved=seeds * _ROW_MOVED,
    )
    return [mapped, written]


def _marking(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phase:
    count = crawl.top_n
    return Phase(
        starts=1,
        tasks=cluster.all_slots,
        task=count * (parameters["chosen.task"] + parameters["shuffle.record"]),
        region=count * parameters["chosen.region"],
        gateway=count * parameters["chosen.gateway"],
        moved=count * _ROW_MOVED,
        held=count / cluster.all_slots * parameters["entry.memory"],
    )


def _entries(crawl: Crawl, tasks: int) -> float:
    """Return the number of entries from map tasks: at most topN of each, since tasks are independent."""
    return min(crawl.rows * crawl.due, tasks * crawl.top_n)


def generate_by_one(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Return the former phases: one reduce task takes topN of the entries of all map tasks."""
    scan = _scan(crawl, cluster, parameters, "generate")
    entries = _entries(crawl, scan.tasks)
    due_of_task = crawl.rows * crawl.due / scan.tasks
    scan.held = min(2 * crawl.top_n, due_of_task) * parameters["entry.memory"]
    scan.task += entries * parameters["shuffle.record"] / 2
    one = (
        entries * (parameters["shuffle.record"] / 2 + parameters["select.passed"])
        + crawl.top_n * parameters["select.chosen"]
    )
    select = Phase(serial={"the one reducer of generate": one}, held=crawl.top_n * parameters["entry.memory"])
    return [scan, select, _marking(crawl, cluster, parameters)]


def generate(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Return the phases: reduce tasks take the best of their buckets; the driver finds the cut by first entries."""
    scan = _scan(crawl, cluster, parameters, "generate")
    entries = _entries(crawl, scan.tasks)
    held = min(2.0 * crawl.top_n, crawl.rows * crawl.due / scan.tasks, 1_000_000)
    scan.held = held * parameters["entry.memory"]
    scan.task += entries * parameters["shuffle.record"] / 2
    buckets = cluster.all_slots
    kept = min(entries, float(buckets * crawl.top_n))
    select = Phase(
        tasks=cluster.all_slots,
        task=entries * (parameters["shuffle.record"] / 2 + parameters["select.passed"])
        + kept * parameters["select.chosen"] / 2,
        moved=entries * parameters["entry.bytes"],
        read=entries * parameters["entry.bytes"],
    )
    looked_at = min(kept, 2.0 * buckets * _BLOCK)
    cut = kept / _BLOCK * parameters["select.chosen"] + looked_at * parameters["select.passed"] * 4
    marking = _marking(crawl, cluster, parameters)
    marking.serial = {"the driver cuts at topN": cut}
    marking.held = max(marking.held, looked_at * 150 + kept / _BLOCK * 500)
    return [scan, select, marking]


@lru_cache(64)
def _fetching(crawl: Crawl, slots: int, page: float) -> Fetching:
    hosts = max(1, min(crawl.rows // crawl.rows_per_host, crawl.top_n))
    sizes = host_sizes(crawl.top_n, hosts, crawl.max_count, crawl.seed)
    return fetching(
        sizes,
        slots,
        slots,
        delay=crawl.delay,
        page=page,
        answer=crawl.answer,
        threads=crawl.threads,
        seed=crawl.seed,
    )


def fetched(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Fetching:
    """Return the simulation of the batch's hosts."""
    return _fetching(crawl, cluster.all_slots, parameters["fetch.task"])


def fetch(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Read the list in one pass, then fetch with delays, one task per partition."""
    found = fetched(crawl, cluster, parameters)
    phase = _batch(crawl, cluster, parameters, "fetch")
    names = {"politeness to the largest hosts": found.hosts, "pages of a fetch task": found.tasks}
    phase.fixed = {max(names, key=lambda name: names[name]): found.seconds}
    return [phase]


def parse(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Pass over the batch."""
    return [_batch(crawl, cluster, parameters, "parse")]


def updatedb(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Pass over the batch, invert links, write the journal; a second job applies it."""
    phase = _batch(crawl, cluster, parameters, "updatedb")
    changes = crawl.top_n * 6  # rows: the pages and their link targets, most of them on the same hosts
    phase.task += crawl.top_n * crawl.links * parameters["shuffle.record"]
    phase.moved += crawl.top_n * crawl.links * 150
    blocks = changes / _JOURNAL_BLOCK
    writing = Phase(
        serial={
            "the driver splits the journal": blocks * parameters["sample.row"],
            "the driver deletes the journal": blocks * parameters["delete.row"],
        },
        starts=1,
        tasks=cluster.all_slots,
        moved=changes * _ROW_MOVED,
    )
    return [phase, writing]


def index(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Pass over the batch, with Solr on as many other machines; then delete the list."""
    phase = _batch(crawl, cluster, parameters, "index")
    solr = crawl.top_n * parameters["index.solr"] / (cluster.nodes * cluster.cores)
    phase.fixed = {"Solr, on as many nodes again": solr}
    return [phase, _clearing(crawl.top_n, "the batch list", cluster, parameters)]


def stats(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Pass over every row: HBase stores no statistics."""
    return [_scan(crawl, cluster, parameters, "stats")]


def dedup(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Pass over every row; fetched ones go through the shuffle."""
    costs = {**parameters, "dedup.region": parameters["stats.region"], "dedup.gateway": parameters["stats.gateway"]}
    grouped = crawl.rows * crawl.fetched * parameters["shuffle.record"]
    return [_scan(crawl, cluster, costs, "dedup"), Phase(tasks=cluster.all_slots, task=grouped)]


def pagerank(crawl: Crawl, cluster: Cluster, parameters: Parameters) -> Phases:
    """Build blocks of the table, iterate over them, write ranks, delete the blocks."""
    pages = crawl.rows * crawl.fetched
    links = pages * crawl.links
    costs = {**parameters, "pagerank.task": parameters["pagerank.page"] * crawl.fetched}
    costs |= {"pagerank.region": parameters["stats.region"], "pagerank.gateway": parameters["stats.gateway"]}
    blocks = max(1.0, pages / _BLOCK_PAGES)
    # Each block has a row for each block that its links target.
    rows = blocks * min(blocks, 0.2 * _BLOCK_PAGES * crawl.links + 1) + 3 * blocks
    tasks = cluster.all_slots
    first = Phase(serial={"the driver splits the blocks": rows * parameters["sample.row"]})
    once = Phase(
        starts=1,
        tasks=tasks,
        task=links * parameters["pagerank.link"] + rows * parameters["stats.task"],
        region=rows * parameters["stats.region"],
        gateway=rows * parameters["stats.gateway"],
        moved=links * 18.0,
        read=links * 4.0,
        held=100e6,
    )
    reading = _scan(crawl, cluster, costs, "pagerank")
    reading.held = max(100e6, 24 * pages / _RANK_BUCKETS)
    gone = _clearing(rows, "the blocks", cluster, parameters)
    return [reading, first, *[once] * crawl.iterations, _scan(crawl, cluster, costs, "pagerank"), gone]


JOBS: Mapping[str, Callable[[Crawl, Cluster, Parameters], Phases]] = {
    "inject": inject,
    "generate, one reducer": generate_by_one,
    "generate": generate,
    "fetch": fetch,
    "parse": parse,
    "updatedb": updatedb,
    "index": index,
    "pagerank": pagerank,
    "dedup": dedup,
    "readdb -stats": stats,
}
"""Phases of each job by its name in the tables. Inject adds a hundredth of the rows."""
