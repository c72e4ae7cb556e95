"""The model: phases of jobs on a cluster, and their bottlenecks.

A phase has tasks that read and write the table, and work of a single process before or after them. Its wall time is
that of the single process plus the maximum of: tasks in their slots (seeded list scheduling of unequal tasks), CPU on
all cores, the gateways' CPU, network, and disks.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

BOUND_BY_TASKS, BOUND_BY_REGIONS, BOUND_BY_CORES = "tasks", "too few regions", "cores"
_START = "starting tasks"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Identical machines: each runs tasks, a region server, a DataNode and, unless there are fewer, a gateway.

    ``slots``: concurrent tasks per node; the other cores serve the servers. ``network``, ``disk``: bytes per second of
    a node. ``region_bytes``: split size of a region. ``memory``: bytes per task. ``gateways``: number of Thrift
    gateways, 0 for one per node.
    """

    nodes: int
    cores: int = 16
    slots: int = 12
    network: float = 1.25e9
    disk: float = 6e8
    region_bytes: float = 10e9
    memory: float = 2e9
    gateways: int = 0

    @property
    def all_slots(self) -> int:
        """Concurrent tasks."""
        return self.nodes * self.slots

    @property
    def all_gateways(self) -> int:
        """Number of gateways."""
        return min(self.gateways or self.nodes, self.nodes)


@dataclass(frozen=True, kw_only=True)
class Crawl:
    """A crawl of ``rows`` rows.

    ``fetched``, ``due``: shares of the rows. ``batch``: URLs of a batch, as a share. ``max_count``: URLs of a host in a
    batch. ``delay``: seconds between two requests to a host. ``answer``: seconds of a response.
    """

    rows: int
    fetched: float = 0.2
    due: float = 0.3
    batch: float = 0.01
    rows_per_host: int = 1000
    max_count: int = 500
    delay: float = 5.0
    answer: float = 1.0
    threads: int = 500
    links: int = 10
    iterations: int = 20
    seed: int = 1

    @property
    def top_n(self) -> int:
        """URLs of a batch."""
        return max(1, int(self.rows * self.batch))

    def stored(self, parameters: Mapping[str, float]) -> float:
        """Return the size of the table in bytes."""
        return self.rows * (parameters["row.bytes"] + self.fetched * parameters["page.bytes"])


@dataclass(kw_only=True)
class Phase:
    """A map or reduce phase of a Hadoop job, or work of a driver alone.

    ``serial``: seconds of a single process by activity. ``tasks``: number, 0 for none. ``task``, ``region``,
    ``gateway``: CPU seconds in total. ``moved``: bytes over the network. ``read``: bytes from disks. ``uneven``: tasks
    vary as much as regions. ``held``: memory of the largest process in bytes. ``starts``: number of Hadoop jobs that
    start here. ``limit``: name of the limit of ``tasks``. ``fixed``: seconds independent of the cluster, such as
    crawl delays, by reason.
    """

    serial: dict[str, float] = field(default_factory=dict)
    tasks: int = 0
    task: float = 0.0
    region: float = 0.0
    gateway: float = 0.0
    moved: float = 0.0
    read: float = 0.0
    uneven: bool = False
    held: float = 0.0
    starts: int = 0
    limit: str = BOUND_BY_TASKS
    fixed: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Cost of a job: seconds of wall time, CPU seconds of all machines, and the bottleneck.

    ``parts``: seconds by activity. ``held``: memory of the largest process in bytes.
    """

    seconds: float
    cpu: float
    held: float
    parts: Mapping[str, float]

    @property
    def binds(self) -> str:
        """The bottleneck: the activity with most of the time."""
        return max(self.parts, key=lambda name: self.parts[name])


def makespan(durations: Sequence[float], slots: int) -> float:
    """Return the end of the last task when each goes to the first free slot, in order."""
    ends = [0.0] * min(slots, len(durations))
    for duration in durations:
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends, default=0.0)


def region_shares(count: int, seed: int) -> list[float]:
    """Return the share of the table in each region: a split region is half full."""
    chance = random.Random(seed)
    sizes = [chance.uniform(0.5, 1.0) for _ in range(count)]
    return [size / sum(sizes) for size in sizes]


def outcome(phases: Sequence[Phase], cluster: Cluster, parameters: Mapping[str, float], seed: int) -> Outcome:
    """Return the cost of phases in sequence."""
    parts: dict[str, float] = {}
    cpu = parameters["start.driver"]
    _add(parts, "the driver", parameters["start.driver"])
    for phase in phases:
        starting = phase.tasks * parameters["start.task"]
        cpu += phase.task + phase.region + phase.gateway + starting + sum(phase.serial.values())
        for what, seconds in phase.serial.items():
            _add(parts, what, seconds)
        _add(parts, _START, phase.starts * parameters["start.job"])
        needs = _needs(phase, cluster, parameters, seed)
        if needs:
            longest = max(needs, key=lambda what: needs[what])
            _add(parts, longest, needs[longest])
    held = max((phase.held for phase in phases), default=0.0)
    return Outcome(sum(parts.values()), cpu, held, parts)


def work(phases: Sequence[Phase], parameters: Mapping[str, float]) -> float:
    """Return the CPU seconds of the work itself, without the start of tasks, independent of the cluster."""
    each = (phase.task + phase.region + phase.gateway + sum(phase.serial.values()) for phase in phases)
    return parameters["start.driver"] + sum(each)


def _needs(phase: Phase, cluster: Cluster, parameters: Mapping[str, float], seed: int) -> dict[str, float]:
    needs = dict(phase.fixed)
    if phase.tasks:
        start = parameters["start.task"]
        shares = region_shares(phase.tasks, seed) if phase.uneven else [1 / phase.tasks] * phase.tasks
        tasks = makespan([start + phase.task * share for share in shares], cluster.all_slots)
        waves = -(-phase.tasks // cluster.all_slots)
        limit = phase.limit if phase.tasks < cluster.all_slots else BOUND_BY_TASKS
        needs[_START if phase.task / phase.tasks < start else limit] = tasks
        everything = phase.task + phase.region + phase.gateway + phase.tasks * start
        needs[BOUND_BY_CORES] = everything / (cluster.nodes * cluster.cores) + (waves > 0) * start
    needs["gateways"] = phase.gateway / (cluster.all_gateways * cluster.cores)
    needs["network"] = phase.moved / (cluster.nodes * cluster.network)
    needs["gateways' network"] = phase.moved / (cluster.all_gateways * cluster.network)
    needs["disks"] = phase.read / (cluster.nodes * cluster.disk)
    return needs


def _add(parts: dict[str, float], what: str, seconds: float) -> None:
    if seconds:
        parts[what] = parts.get(what, 0.0) + seconds


def stops_scaling(seconds: Mapping[int, float]) -> int:
    """Return the number of nodes above which the speedup is less than half of the additional nodes.

    ``seconds``: wall time by number of nodes.
    """
    counts = sorted(seconds)
    for few, many in pairwise(counts):
        gain, more = seconds[few] / seconds[many], many / few
        if gain < 1 + (more - 1) / 2:
            return few
    return counts[-1]
