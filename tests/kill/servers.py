"""The real servers that schedules run on, and how they are killed; none of them for the embedded stores."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.kill.faults import Options
from tests.kill.workspace import MakeGround, ServerGround

_TASKS = {"mapreduce.job.maps": "2", "mapreduce.job.reduces": "2"}
_JOB_CLASSES = {
    "inject": "InjectorJob", "generate": "GeneratorJob", "fetch": "FetcherJob", "parse": "ParserJob",
    "updatedb": "DbUpdaterJob", "index": "IndexerJob",
}  # fmt: skip


class RealServers:
    """Starts the servers that the options name, until the stack is closed.

    ``started``: those that run already, by ``hbase`` and ``solr``. ``missing``: kinds of faults that cannot be tried
    here, and why. ``settings``: those of struck commands.
    """

    def __init__(
        self, options: Options, folder: Path, stack: ExitStack, started: Mapping[str, Any] | None = None
    ) -> None:
        self.missing: dict[str, str] = {}
        self.settings: dict[str, str] = {"mapreduce.runner": options.runner}
        self.hbase: Any = None
        self.solr: Any = None
        self.hadoop: Any = None
        if options.runner != "inline":
            self.settings.update(_TASKS)
        if (options.store, options.index, options.runner) == ("embedded", "embedded", options.runner) and (
            options.runner != "hadoop"
        ):
            return
        lacking = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
        if lacking:
            raise SystemExit(f"{' and '.join(lacking)} not on the PATH: a JDK 17 and Maven run the servers")
        from tests.services import running

        self.hbase, self.solr = ((started or {}).get(kind) for kind in ("hbase", "solr"))
        if options.store == "hbase" and self.hbase is None:
            from tests.table.hbase_server import Server

            self.hbase = stack.enter_context(running(Server()))
        if options.index == "solr" and self.solr is None:
            from tests.backends.solr_server import SolrServer

            self.solr = stack.enter_context(running(SolrServer()))
        if options.runner == "hadoop":
            self._start_hadoop(folder, stack)

    def _start_hadoop(self, folder: Path, stack: ExitStack) -> None:
        from tests.mapreduce.hadoop_cluster import Cluster, make_package
        from tests.services import running

        package = folder / "package"
        package.mkdir()
        make_package(package / "package.tar.gz")
        self.hadoop = stack.enter_context(running(Cluster(package)))
        of_cluster = self.hadoop.settings
        of_cluster.pop("urlfilter.regex.file")  # the commands have no configuration folder of their own
        self.settings = {**self.settings, **of_cluster}

    def maker(self, name: str) -> MakeGround:
        """Return what makes the ground of one crawl on these servers."""
        hbase = self.hbase.address() if self.hbase is not None else ""
        solr = self.solr.url if self.solr is not None else ""
        return lambda plan, folder: ServerGround(plan, folder, name, hbase, solr)

    def crash(self, what: str) -> None:
        """Kill a server."""
        if what == "solr":
            self.solr.crash()
        else:
            self.hbase.crash("master" if what == "hbase" else "gateway")

    def restore(self) -> None:
        """Start what does not run."""
        for server in (self.hbase, self.solr):
            if server is not None:
                server.start()

    def containers(self, job: str) -> list[int]:
        """Return the tasks of a job that run in containers."""
        return [pid for kind in ("mapper", "reducer") for pid in self.hadoop.tasks(_JOB_CLASSES[job], kind)]
