"""Services that can be stopped, each with a job that needs it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.backends.opensearch_server import OpenSearchServer
from tests.backends.solr_server import SolrServer
from tests.jobs.stages import JOBS, Crawl, Stages, on_hbase, state
from tests.mapreduce.hadoop_cluster import Cluster, make_package
from tests.outages.proxy import Proxy
from tests.processes import alive, wait_until
from tests.services import Service
from tests.table.hbase_server import Server as HBaseServer

_SESSION = 90  # seconds, HBase's default on a cluster


class Trial(NamedTuple):
    """A job and its expected result: ``left()`` equals ``expected`` after it."""

    crawl: Crawl
    words: list[str]
    left: Callable[[], Any]
    expected: Any
    runner: str = "inline"
    at_work: Callable[[], object] = lambda: True
    """Returns whether its service may become unavailable now."""
    concurrent: Trial | None = None
    """Another job, which is started when the service is gone; when the first excludes it, it is run again after it."""


class Subject(ABC):
    """A service, started before the trials, of which ``part`` is stopped (None: all of it)."""

    part: str | None = None
    needed = True
    """Whether a running job cannot end during the outage; otherwise a trial finds that it does."""

    def __init__(self, server: Service, part: str | None = None) -> None:
        self.server, self.part = server, part

    def start(self) -> None:
        """Start all that the job needs."""
        self.server.start()

    @abstractmethod
    def trial(self, stages: Stages, folder: Path) -> Trial:
        """Return a job on its own crawl in ``folder``, which does not exist yet."""

    def remove(self) -> None:
        """Stop everything and delete its data."""
        self.server.remove()

    def stop(self) -> None:
        """Make the service silent: connections stay open without responses."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resume responses."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it as a power failure does."""
        self.server.crash(*self._parts())

    def restart(self) -> None:
        """Start it again."""
        self.server.start(*self._parts())

    def _parts(self) -> list[str]:
        return [self.part] if self.part else []

    def _signal(self, number: signal.Signals) -> None:
        for path in self.server.folder.glob(f"run/{self.part or '*'}.pid"):
            os.kill(int(path.read_text()), number)


class OfTable(Subject):
    """HBase or a gateway of it, during updatedb, which reads and writes every row of the batch.

    ZooKeeper expires its servers after 90 s, as on a cluster, and not after the 10 s of HBase in one process.
    """

    server: HBaseServer

    def __init__(self, part: str) -> None:
        super().__init__(HBaseServer(), part)
        self._set(ZOOKEEPER_SESSION=str(_SESSION * 1000))

    def _set(self, **environment: str) -> None:
        self.server.environment = {**self.server.environment, **environment}

    def trial(self, stages: Stages, folder: Path) -> Trial:
        stage, expected = stages("updatedb")
        crawl = on_hbase(stage, self.server, folder)
        return Trial(crawl, JOBS["updatedb"], lambda: state(crawl.conf), expected)


class OfZooKeeper(OfTable):
    """HBase's ZooKeeper as seen by the gateway, through a proxy; HBase itself has it in its process."""

    needed = False

    def __init__(self) -> None:
        super().__init__("gateway")
        self._proxy = Proxy()

    def start(self) -> None:
        self.server.start("master")
        port = int(self.server.port("zookeeper"))
        self._proxy = Proxy("127.0.0.2", port)  # it has to have the same port
        self._proxy.start(port)
        self._set(ZOOKEEPER_HOST=self._proxy.address)
        self.server.start("gateway")

    def stop(self) -> None:
        self._proxy.stop()

    def go_on(self) -> None:
        self._proxy.go_on()

    def kill(self) -> None:
        self._proxy.kill()

    def restart(self) -> None:
        self._proxy.restart()


class OfServersZooKeeper(OfZooKeeper):
    """HBase's ZooKeeper as seen by master, region server and gateway.

    It recovers by itself: it expires the sessions of servers that were away longer, which then exit.
    """

    def start(self) -> None:
        super().start()
        self.server.stop("master", "gateway")
        self.server.start("master", "gateway")

    def go_on(self) -> None:
        super().go_on()
        self._revive()

    def restart(self) -> None:
        super().restart()
        self._revive()

    def _revive(self) -> None:
        """Restart HBase after it has exited, as a supervisor does."""
        if time.monotonic() - self._proxy.since > _SESSION:
            master = int((self.server.folder / "run" / "master.pid").read_text())
            wait_until(lambda: not alive(master))
        self.server.start("master", "gateway")


class OfTwoJobs(OfTable):
    """HBase or a gateway of it, during a job, and during an inject started while it is gone."""

    def __init__(self, part: str, job: str) -> None:
        super().__init__(part)
        self._job = job

    def trial(self, stages: Stages, folder: Path) -> Trial:
        stage, _ = stages(self._job)
        seeds = folder.with_name(f"{folder.name}-seeds.txt")
        seeds.write_text("".join(f"http://127.0.0.9/{number}\n" for number in range(40)))
        inject = ["inject", str(seeds)]
        whole = stage.copy(folder.with_name(f"{folder.name}-whole"))
        for words in (JOBS[self._job], inject):
            whole.run(words)
        crawl = on_hbase(stage, self.server, folder)
        second = Crawl(folder / "concurrent", seeds, **crawl.settings)
        concurrent = Trial(second, inject, lambda: None, None)
        return Trial(crawl, JOBS[self._job], lambda: state(crawl.conf), state(whole.conf), concurrent=concurrent)


class OfIndex(Subject):
    """Solr or OpenSearch, during an index job that sends one document per request."""

    _expected: Any = None

    def trial(self, stages: Stages, folder: Path) -> Trial:
        server: Any = self.server
        stage, _ = stages("index")
        folder.mkdir()
        crawl = stage.copy(folder / "crawl")
        if isinstance(server, SolrServer):
            writer = {"solr.server.url": server.url, "solr.commit.size": "1"}
        else:
            writer = {"elastic.host": server.url, "elastic.max.bulk.docs": "1"}
        crawl.settings |= writer
        if self._expected is None:
            Crawl(stage.copy(folder / "whole").folder, stage.seeds, **crawl.settings).run(["index", "-all"])
            self._expected = self._documents()
            assert len(self._expected) > 5
        server.clear()
        return Trial(crawl, ["index", "-all"], self._documents, self._expected)

    def _documents(self) -> dict[str, Any]:
        server: Any = self.server
        if isinstance(server, SolrServer):
            found = server.select("*:*", rows=10_000)["response"]["docs"]
        else:
            found = [hit["_source"] for hit in server.search()] if "nutch" in server.call("GET", "_mapping") else []
        return {
            str(document["id"]): {
                name: value for name, value in document.items() if name not in ("_version_", "tstamp")
            }
            for document in found
        }


class OfYarn(Subject):
    """A YARN daemon in its own process, during updatedb, once its first task runs."""

    server: Cluster

    def __init__(self, part: str) -> None:
        super().__init__(Cluster(Path(tempfile.mkdtemp(prefix="outages-package-"))), part)

    def start(self) -> None:
        make_package(self.server.package)
        self.server.start("namenode", "datanode", "resourcemanager", "nodemanager")

    def trial(self, stages: Stages, folder: Path) -> Trial:
        stage, expected = stages("updatedb")
        folder.mkdir()
        crawl = stage.copy(folder / "crawl")
        of_cluster = self.server.settings
        of_cluster.pop("urlfilter.regex.file")  # the command has no configuration folder of its own
        crawl.settings |= of_cluster
        return Trial(
            crawl,
            JOBS["updatedb"],
            lambda: state(crawl.conf),
            expected,
            "hadoop",
            lambda: self.server.tasks("DbUpdaterJob", "mapper"),
        )

    def remove(self) -> None:
        super().remove()
        shutil.rmtree(self.server.package.parent)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "gateway": lambda: OfTable("gateway"),
    "hbase": lambda: OfTable("master"),
    "zookeeper": OfZooKeeper,
    "zookeeper-of-servers": OfServersZooKeeper,
    **{
        f"{part} of two jobs, {job}": partial(OfTwoJobs, "master" if part == "hbase" else part, job)
        for part in ("gateway", "hbase")
        for job in ("fetch", "updatedb")
    },
    "solr": lambda: OfIndex(SolrServer()),
    "opensearch": lambda: OfIndex(OpenSearchServer()),
    "resourcemanager": lambda: OfYarn("resourcemanager"),
    "nodemanager": lambda: OfYarn("nodemanager"),
}
"""``hbase`` goes with its ZooKeeper, which lives in the same process here."""
