"""A crawl on three nodes, in the midst of which one loses its power, against one in a single process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import happybase
import pytest

from nutch2py.conf.configuration import Configuration
from tests.cluster.nodes import ADDRESSES, MASTER, NODES, SITES
from tests.cluster.servers import GATEWAY, HADOOP_HOME, SECOND_GATEWAY, Cluster, write_xml
from tests.counted_kills import Kills, strike
from tests.import_graph import ROOT
from tests.jobs import crawl
from tests.processes import wait_until
from tests.site import hosts

SETTINGS = {
    "http.agent.name": "nutch-test",
    "http.filter.ipaddress.exclude": "",
    "storage.embedded.map.size": str(1 << 30),
    "plugin.excludes": "indexer-embedded",
    "fetcher.threads.per.queue": "1",
    "urlfilter.regex.file": "site-urlfilter.txt",
}
ON_CLUSTER = {
    "mapreduce.runner": "hadoop",
    "mapreduce.hadoop.home": str(HADOOP_HOME),
    "mapreduce.job.maps": "3",
    "mapreduce.job.reduces": "3",
    "storage.data.store": "hbase://" + ",".join(f"{name}:{GATEWAY}" for name in NODES),
    "hbase.thrift2.gateways": f"{MASTER}:{SECOND_GATEWAY}",
    "hbase.create.splits": "2.0.77.10,3.0.77.10",
    "fetcher.server.delay": "1",
}
ADDRESS_OF = {address: name for name, address in ADDRESSES.items()}
_HISTORY = "/tmp/hadoop-yarn/staging/history/done_intermediate/*/*.jhist"


class Attempt(NamedTuple):
    """An attempt at a task that has ended well: its job, kind and node, and the node that was named as best, if any."""

    job: str
    kind: str
    node: str
    best: str


class Run:
    """A crawl: its folder of configuration, and what its jobs said."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder, self.said = folder, dict[str, str]()
        folder.mkdir()
        (folder / "site-urlfilter.txt").write_text("-[?*!@=]\n+.\n")
        write_xml(folder / "nutch-site.xml", {**SETTINGS, **settings})

    def job(self, *words: str) -> None:
        """Run a command to its end."""
        started = time.monotonic()
        command = [sys.executable, "-m", "nutch2py.cli", *words, "--conf", str(self.folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        print(f"{self.folder.name}: {' '.join(words)}: {time.monotonic() - started:.1f} s", flush=True)
        assert done.returncode == 0, done.stdout + done.stderr
        self.said[" ".join(words[:2])] = done.stdout

    def round(self, around_fetch: Callable[[], AbstractContextManager[None]]) -> None:
        """Run the jobs of a round."""
        batch = "round-1"
        self.job("generate", "-topN", "30", "-batchId", batch)
        with around_fetch():
            self.job("fetch", batch)
        for name in ("parse", "updatedb", "index"):
            self.job(name, batch)

    @property
    def conf(self) -> Configuration:
        return Configuration.load(self.folder)


@contextmanager
def documents(folder: Path) -> Iterator[tuple[str, Path]]:
    """Give the address of an index that all machines reach, and the file with its documents."""
    file = folder.with_suffix(".documents.json")
    program = str(ROOT / "tests" / "outages" / "small_solr.py")
    server = subprocess.Popen([sys.executable, program, "0", str(file), SITES[0]], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        yield f"http://{SITES[0]}:{port}/solr/nutch", file
    finally:
        strike(server)
        server.stdout.close()


class Outcome(NamedTuple):
    """Both crawls, the documents of each, what was asked of the hosts, and the attempts at tasks."""

    cluster: Run
    inline: Run
    cluster_documents: dict[str, Any]
    inline_documents: dict[str, Any]
    requests: list[hosts.Request]
    attempts: list[Attempt]
    killed: str
    regions: list[str]
    regions_after: list[str]


class Killer:
    """Takes the power from a node that fetches, and on which no application master is."""

    def __init__(self, cluster: Cluster, served: hosts.Web) -> None:
        self.cluster, self.served = cluster, served
        self.killed = ""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Kill a node within the block."""
        before = len(self.served.requests)
        with Kills("nodes of a cluster") as kills:
            thread = threading.Thread(target=self._strike, args=(before, kills), daemon=True)
            thread.start()
            yield
            thread.join(60)

    def _strike(self, before: int, kills: Kills) -> None:
        def at_work() -> set[str]:
            """Return the nodes that have fetched some pages of a host, not all, and lately."""
            pages: dict[str, list[hosts.Request]] = defaultdict(list)
            for request in self.served.requests[before:]:
                pages[request.client].append(request)
            lately = time.monotonic() - 3
            found = {ADDRESS_OF[one] for one, of in pages.items() if 2 < len(of) < 8 and of[-1].time > lately}
            return found - {self._of_master()} if found else found

        found: set[str] = set()
        wait_until(lambda: found.update(at_work()) or found)
        self.killed = min(found)
        kills.count(self.cluster.nodes[self.killed].power_off())

    def _of_master(self) -> str:
        """Return the node of the application master."""
        (app,) = self.cluster.ask("apps?states=RUNNING")["apps"]["app"]
        return str(app["amHostHttpAddress"].partition(":")[0])


@pytest.fixture(scope="module")
def outcome(three_nodes: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run both crawls of one web."""
    folder = tmp_path_factory.mktemp("crawl")
    with hosts.web(SITES) as served:
        seeds = folder / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in served.seeds() if not url.endswith("endless")))
        three_nodes.hadoop("fs", "-put", str(seeds), "/seeds")
        with documents(folder / "cluster") as (address, file):
            package = str(folder / "package.tar.gz")
            cluster = Run(folder / "cluster", {**ON_CLUSTER, "solr.server.url": address, "mapreduce.package": package})
            killer = Killer(three_nodes, served)
            cluster.job("package")
            cluster.job("inject", "hdfs:///seeds")
            first_regions = region_servers(killer.killed)
            cluster.round(killer.at_work)
            cluster.job("readdb", "-stats")
            last_regions = region_servers(killer.killed)
            on_cluster = json.loads(file.read_text())
        requests = list(served.requests)
        with documents(folder / "inline") as (address, file):
            here = {"storage.data.store": f"embedded:{folder / 'table'}", "solr.server.url": address}
            inline = Run(folder / "inline", {**here, "fetcher.server.delay": "0"})
            inline.job("inject", str(seeds))
            inline.round(nullcontext)
            here_documents = json.loads(file.read_text())
    history = three_nodes.hadoop("fs", "-cat", _HISTORY)
    return Outcome(
        cluster,
        inline,
        on_cluster,
        here_documents,
        requests,
        list(attempts(history)),
        killer.killed,
        first_regions,
        last_regions,
    )


def region_servers(gone: str) -> list[str]:
    """Return where the regions of the crawl's table are, in the order of their keys."""
    connection = happybase.Connection(next(name for name in NODES if name != gone), GATEWAY)
    with closing(connection):
        return [region["server_name"].decode() for region in connection.table("webpage").regions()]


def attempts(history: str) -> Iterator[Attempt]:
    """Yield the attempts in files of the history of jobs."""
    best: dict[str, str] = {}
    for line in history.splitlines():
        if not line.startswith('{"type":'):
            continue
        event = json.loads(line)
        if event["type"] == "record":  # what the others are made of
            continue
        (found,) = event["event"].values()
        match event["type"]:
            case "TASK_STARTED":
                best[found["taskid"]] = found["splitLocations"]
            case "MAP_ATTEMPT_FINISHED" | "REDUCE_ATTEMPT_FINISHED" as kind:
                job, task = found["attemptId"].split("_")[2], found["taskid"]
                yield Attempt(job, kind.partition("_")[0].lower(), found["hostname"], best[task])


def test_cluster_table_equals_single_process_table(outcome: Outcome) -> None:
    assert outcome.killed in NODES
    rows, expected = crawl.table(outcome.cluster.conf), crawl.table(outcome.inline.conf)
    assert len(expected) > 100
    assert rows.keys() == expected.keys()
    assert rows == expected


def test_cluster_documents_equal_single_process_documents(outcome: Outcome) -> None:
    assert len(outcome.inline_documents) > 20
    for documents_of_one in (outcome.cluster_documents, outcome.inline_documents):
        for document in documents_of_one.values():
            for clock in ("tstamp", "date"):
                document.pop(clock, None)
    assert outcome.cluster_documents == outcome.inline_documents


def test_tasks_run_on_hosts_of_their_regions(outcome: Outcome) -> None:
    assert sorted(outcome.regions) == sorted(NODES)
    assert outcome.killed not in outcome.regions_after
    by_job = defaultdict(list)
    for attempt in outcome.attempts:
        if attempt.best:
            by_job[attempt.job].append(attempt)
    placed = [by_job[job] for job in sorted(by_job)]
    assert len(placed) >= 2  # generate, and readdb -stats
    for number, tasks in enumerate(placed):
        known = outcome.regions_after if number == len(placed) - 1 else outcome.regions
        assert sorted(task.best for task in tasks) == sorted(known)
        assert [task.node for task in tasks] == [task.best for task in tasks]


def test_every_node_runs_tasks_of_each_kind(outcome: Outcome) -> None:
    for kind in ("map", "reduce"):
        assert {attempt.node for attempt in outcome.attempts if attempt.kind == kind} == set(NODES)
    assert {ADDRESS_OF[request.client] for request in outcome.requests} == set(NODES)
