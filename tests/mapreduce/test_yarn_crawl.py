"""Crawl on YARN, HDFS, HBase and Solr, compared with the same crawl in one process.

The first two rounds run inline on both tables: they only make rows of every status. Fetch and updatedb of the third
round and index then run once on YARN, in the long form every other job, too. An application of YARN takes 30 s of
processor time, whatever it has to do.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import Host
from nutch2py.table import TableQuery, open_store
from tests.jobs import crawl
from tests.mapreduce.hadoop_cluster import Cluster
from tests.site import hosts

DELAY = 0.25
SETTINGS = {
    "http.agent.name": "nutch-test",
    "http.filter.ipaddress.exclude": "",
    "fetcher.threads.per.queue": "1",
    "storage.embedded.map.size": str(1 << 30),
    "urlfilter.regex.file": "site-urlfilter.txt",
    "plugin.excludes": "indexer-embedded",
    "parser.timeout": "15",
    "pagerank.iterations": "1",
}
YARN_ROUND = 3
INLINE = ("-r", "inline", "-D", "fetcher.server.delay=0")
"""Options of the jobs of the rounds before :data:`YARN_ROUND`."""
RANK = "s:pr"
CLOCKS = {"tstamp", "date", "terms_date", "_version_"}
"""Fields of documents that hold a clock: ``date`` is that of the fetch where the server names none."""
_TASKS = re.compile(r": application_\d+_\d+: (?:(\d+) map tasks?)?(?:, )?(?:(\d+) reduce tasks?)?$", re.MULTILINE)
Tasks = list[tuple[int, int]]
"""Map and reduce tasks of the applications of a job, in their order."""


class Run(NamedTuple):
    """Result of a crawl.

    Attributes:
        conf: The configuration that the jobs ran with.
        said: Standard output of each job by its command line.
        tasks: Map and reduce tasks of the YARN applications of each job that did not run with :data:`INLINE`.
        requests: Requests that the hosts received during each job.
    """

    conf: Configuration
    said: dict[str, str]
    tasks: dict[str, Tasks]
    requests: dict[str, list[hosts.Request]]


def run_crawl(folder: Path, settings: Mapping[str, str], seeds: str, served: hosts.Web, others: Sequence[str]) -> Run:
    """Run the jobs of three rounds, then those of the whole table, through the command line.

    Args:
        folder: Configuration folder of the crawl.
        settings: Properties of the crawl.
        seeds: Folder of the seed list.
        served: The web that is crawled.
        others: Options of the jobs other than fetch and updatedb of the third round, and index.
    """
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in {**SETTINGS, **settings}.items()
    ]
    (folder / "nutch-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    said: dict[str, str] = {}
    tasks: dict[str, Tasks] = {}
    crawl_id = folder.parent.name
    requests: dict[str, list[hosts.Request]] = {}

    def job(*words: str) -> None:
        before = len(served.requests)
        with redirect_stdout(StringIO()) as output:
            assert main([*words, "--conf", str(folder), "-crawlId", crawl_id]) == 0, " ".join(words)
        name = " ".join(word for word in words if word not in INLINE) if words[0] != "inject" else "inject"
        said[name] = output.getvalue()
        if "-r" not in words:
            tasks[name] = [(int(maps or 0), int(reduces or 0)) for maps, reduces in _TASKS.findall(said[name])]
        requests[name] = served.requests[before:]

    job("inject", seeds, *others)
    for number in range(1, YARN_ROUND + 1):
        batch = f"round-{number}"
        first, second = (INLINE, INLINE) if number < YARN_ROUND else ((), others)
        job("generate", "-topN", "180", "-batchId", batch, *second)
        job("fetch", batch, *first)
        job("parse", batch, *second)
        job("updatedb", batch, *first)
    job("pagerank", *others)
    job("updatehostdb", *others)
    job("dedup", *others)
    job("index", "-all")
    job("clean", *others)
    return Run(Configuration.load(folder, {"storage.crawl.id": crawl_id}), said, tasks, requests)


class Outcome(NamedTuple):
    """The run on the cluster, the one in this process, the documents of each, and the files left on HDFS."""

    cluster: Run
    inline: Run
    cluster_documents: dict[str, Any]
    inline_documents: dict[str, Any]
    left_on_hdfs: list[str]


SOME, EVERY = "fetch, updatedb, index", "every job"
"""What runs on YARN; the second in the long form."""


@pytest.fixture(scope="module", params=[SOME, EVERY])
def outcome(
    hadoop_cluster: Cluster,
    hbase_server: Any,
    solr_server: Any,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Outcome:
    """Run both crawls of one web."""
    folder, others = tmp_path_factory.mktemp("crawl"), () if request.param == EVERY else INLINE
    hbase_server.start()
    solr_server.start()
    cores = [f"{folder.name}-cluster", f"{folder.name}-inline"]
    of_cluster, of_inline = map(solr_server.core, cores)
    with hosts.web() as served:
        seeds = folder / "seeds"
        seeds.mkdir()
        for number, part in enumerate((served.seeds()[::2], served.seeds()[1::2])):
            (seeds / f"part-{number}").write_text("".join(f"{url}\n" for url in part))
        hdfs_seeds = f"/{folder.name}"
        hadoop_cluster.hadoop("fs", "-put", str(seeds), hdfs_seeds)
        for name in ("cluster", "inline"):
            (folder / name).mkdir()
            for rules in hadoop_cluster.conf_folder.glob("*.txt"):
                (folder / name / rules.name).write_bytes(rules.read_bytes())
        served.owner = task_of_connection(hadoop_cluster, served.port)
        on_cluster = {
            **hadoop_cluster.settings,
            "storage.data.store": hbase_server.address(),
            "storage.embedded.shared": "false",
            "solr.server.url": of_cluster,
            "fetcher.server.delay": str(DELAY),
        }
        here = {
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "solr.server.url": of_inline,
            "fetcher.server.delay": "0",
            "plugin.excludes": "indexer-embedded",
        }
        cluster = run_crawl(folder / "cluster", on_cluster, f"hdfs://{hdfs_seeds}", served, others)
        left = hadoop_cluster.hadoop("fs", "-ls", "-C", "nutch2py").splitlines()
        served.owner = lambda _: "here"
        inline = run_crawl(folder / "inline", here, str(seeds), served, others)
    found = [_documents(solr_server, core) for core in cores]
    return Outcome(cluster, inline, *found, left)


def task_of_connection(cluster: Cluster, port: int) -> Callable[[int], object]:
    """Return what finds the fetch task that holds the client's end of a connection to ``port``, by its process id."""

    def owner(client: int) -> object:
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if (int(fields[1].split(":")[1], 16), int(fields[2].split(":")[1], 16)) == (client, port):
                socket = f"socket:[{fields[9]}]"
                for process in cluster.tasks("FetcherJob", "reducer"):
                    for held in Path(f"/proc/{process}/fd").iterdir():
                        try:
                            if str(held.readlink()) == socket:
                                return process
                        except OSError:  # closed meanwhile
                            continue
        return None

    return owner


def _documents(server: Any, core: str) -> dict[str, Any]:
    found = server.select("*:*", core, rows=1000, fl="*,pagerank")["response"]["docs"]
    return {one["id"]: {name: value for name, value in one.items() if name not in CLOCKS} for one in found}


def _table(run: Run) -> tuple[dict[str, dict[str, bytes]], dict[str, float]]:
    """Return the cells of a crawl, and apart from them the ranks, whose last digits depend on the order of a sum."""
    rows = crawl.table(run.conf)
    ranks = {key: struct.unpack(">f", cells.pop(RANK))[0] for key, cells in rows.items() if RANK in cells}
    return rows, ranks


def test_yarn_crawl_table_equals_inline_table(outcome: Outcome) -> None:
    rows, ranks = _table(outcome.cluster)
    expected, expected_ranks = _table(outcome.inline)
    assert len(expected) > 400
    statuses = [cells.get("f:st", b"")[-1:] for cells in expected.values()]
    assert all(statuses.count(bytes([status])) > 10 for status in (1, 2, 3, 4, 5))
    assert sum(b"parser.timeout" in cells.get("p:st", b"") for cells in expected.values()) == 1
    assert rows.keys() == expected.keys()
    differences = [
        (key, column, cells.get(column), expected[key].get(column))
        for key, cells in rows.items()
        for column in cells.keys() | expected[key].keys()
        if cells.get(column) != expected[key].get(column)
    ]
    assert differences == []
    assert ranks == pytest.approx(expected_ranks, rel=1e-6)


def test_yarn_crawl_host_table_equals_inline(outcome: Outcome) -> None:
    found = [
        {key: sorted(host.metadata.decoded_items()) for key, host in open_store(run.conf, Host).scan(TableQuery())}
        for run in (outcome.cluster, outcome.inline)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(hosts.HOSTS)


def test_yarn_crawl_solr_documents_equal_inline(outcome: Outcome) -> None:
    assert len(outcome.inline_documents) > 200
    assert outcome.cluster_documents.keys() == outcome.inline_documents.keys()
    for key, document in outcome.cluster_documents.items():
        expected = outcome.inline_documents[key]
        assert document.pop("pagerank") == pytest.approx(expected.pop("pagerank"), rel=1e-5)
        assert document == expected


def test_yarn_crawl_job_summaries_equal_inline(outcome: Outcome) -> None:
    for name, said in outcome.inline.said.items():
        expected = [line for line in said.splitlines() if re.search(r"\d (SUCCESS|success|rows|documents|hosts)", line)]
        lines = outcome.cluster.said[name].splitlines()
        assert [line for line in expected if line not in lines] == [], name


def test_yarn_crawl_jobs_have_several_tasks(outcome: Outcome) -> None:
    of_maps_alone = ("parse", "index", "clean")
    for name, applications in outcome.cluster.tasks.items():
        assert applications, name
        for number, (maps, reduces) in enumerate(applications):
            writes = (name.startswith("updatedb") and number == 1) or (
                name == "pagerank" and number == len(applications) - 1
            )
            assert maps > 1, (name, applications)
            assert (reduces > 1) == (not writes and not name.startswith(of_maps_alone)), (name, applications)


@pytest.mark.parametrize("outcome", [EVERY], indirect=True)
def test_yarn_crawl_pagerank_uses_mapreduce_and_inline_memory(outcome: Outcome) -> None:
    assert " links, by MapReduce" in outcome.cluster.said["pagerank"]
    assert " links, in memory" in outcome.inline.said["pagerank"]


def test_yarn_crawl_leaves_only_package_on_hdfs(outcome: Outcome) -> None:
    assert len(outcome.left_on_hdfs) == 1
    assert outcome.left_on_hdfs[0].endswith(".tar.gz")


def test_yarn_crawl_each_host_is_fetched_by_one_task(outcome: Outcome) -> None:
    tasks = defaultdict(set)
    for request in outcome.cluster.requests[f"fetch round-{YARN_ROUND}"]:
        tasks[request.host].add(request.owner)
    assert tasks.keys() == set(hosts.HOSTS)
    assert [len(found) for found in tasks.values()] == [1] * len(hosts.HOSTS), tasks
    found = set().union(*tasks.values())
    assert None not in found
    assert len(found) > 1


def test_yarn_crawl_host_delay_holds_over_job(outcome: Outcome) -> None:
    requests = outcome.cluster.requests[f"fetch round-{YARN_ROUND}"]
    for host in hosts.HOSTS:
        times = sorted(r.time for r in requests if r.host == host and r.path != "/robots.txt")
        assert len(times) > 5
        assert min(after - before for before, after in pairwise(times)) >= DELAY
