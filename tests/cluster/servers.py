"""HDFS, YARN and HBase over machines: what each runs, its settings, and what the servers know of one another."""

from __future__ import annotations

import json
import shutil
import socket
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.cluster.nodes import MASTER, NODES, Machine, Node, Task
from tests.counted_kills import strike
from tests.import_graph import ROOT
from tests.processes import wait_until

SHARED = Path("/mnt/shared")
HADOOP_HOME = Path("/mnt/node/hadoop")
GATEWAY, SECOND_GATEWAY = 9090, 9095
_NAMENODE, _RESOURCEMANAGER, _PAGES = 8020, 8032, 8088
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true")
_OPENED = ("java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref", "java.lang.reflect", "java.util",
           "java.util.concurrent", "jdk.internal.util.random")  # fmt: skip
_EXPORTED = ("java.base/jdk.internal.misc", "java.base/sun.net.dns", "java.base/sun.net.util",
             "java.security.jgss/sun.security.krb5")  # fmt: skip
_HBASE_OPTIONS = (
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-modules=jdk.unsupported",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTED),
)
_CONTAINER = " ".join(("-Xmx192m", *_SMALL))
_CLASSES = "/mnt/shared,/mnt/hadoop/*"

CORE = {
    "fs.defaultFS": f"hdfs://{MASTER}:{_NAMENODE}",
    "hadoop.tmp.dir": "/mnt/node/tmp",
    # a machine without power does not answer at all: know it soon
    "ipc.client.connect.timeout": "3000",
    "ipc.client.connect.max.retries": "3",
    "ipc.client.connect.max.retries.on.timeouts": "2",
    "ipc.client.rpc-timeout.ms": "20000",
}
HDFS = {
    "dfs.replication": "2",
    "dfs.namenode.name.dir": "file:///mnt/node/hdfs/name",
    "dfs.datanode.data.dir": "file:///mnt/node/hdfs/data",
    "dfs.namenode.safemode.extension": "0",
    "dfs.namenode.safemode.min.datanodes": str(len(NODES)),
    "dfs.namenode.handler.count": "8",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "3000",
    "dfs.namenode.stale.datanode.interval": "4000",
    "dfs.namenode.avoid.read.stale.datanode": "true",
    "dfs.namenode.avoid.write.stale.datanode": "true",
    "dfs.client.socket-timeout": "10000",
    "dfs.datanode.socket.write.timeout": "10000",
}
YARN = {
    "yarn.resourcemanager.hostname": MASTER,
    "yarn.nodemanager.aux-services": "mapreduce_shuffle",
    "yarn.nodemanager.local-dirs": "/mnt/node/yarn",
    "yarn.nodemanager.log-dirs": "/mnt/node/userlogs",
    "yarn.node-attribute.fs-store.root-dir": "file:///mnt/node/attributes",
    "yarn.application.classpath": _CLASSES,
    "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG",
    "yarn.log-aggregation-enable": "true",
    "yarn.nodemanager.remote-app-log-dir": "/logs",
    "yarn.nodemanager.resource.memory-mb": "1536",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.maximum-allocation-mb": "1536",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "15000",
    "yarn.am.liveness-monitor.expiry-interval-ms": "120000",
}
SCHEDULER = {
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.root.default.state": "RUNNING",
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-container-assignments": "1",
}
MAPRED = {
    "mapreduce.framework.name": "yarn",
    "mapreduce.application.classpath": _CLASSES,
    "mapreduce.client.submit.file.replication": "2",
    "yarn.app.mapreduce.am.resource.mb": "512",
    "yarn.app.mapreduce.am.command-opts": _CONTAINER,
    "mapreduce.map.memory.mb": "512",
    "mapreduce.reduce.memory.mb": "512",
    "mapreduce.map.java.opts": _CONTAINER,
    "mapreduce.reduce.java.opts": _CONTAINER,
    "mapreduce.task.io.sort.mb": "32",
    "mapreduce.client.completion.pollinterval": "200",
    "mapreduce.client.progressmonitor.pollinterval": "200",
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "200",
    "mapreduce.job.reduce.slowstart.completedmaps": "0.9",
    "mapreduce.jobhistory.jhist.format": "json",
}
HBASE = {
    "hbase.cluster.distributed": "true",
    "hbase.rootdir": f"hdfs://{MASTER}:{_NAMENODE}/hbase",
    "hbase.tmp.dir": "/mnt/node/hbase",
    "hbase.zookeeper.quorum": MASTER,
    "hbase.zookeeper.property.dataDir": "/mnt/node/zookeeper",
    "zookeeper.session.timeout": "8000",
    "hbase.master.info.port": "-1",
    "hbase.regionserver.info.port": "-1",
    "hbase.thrift.info.port": "-1",
    "hbase.master.wait.on.regionservers.mintostart": str(len(NODES)),
    "hbase.master.wait.on.regionservers.timeout": "1000",
    "hbase.regionserver.msginterval": "500",
    "hbase.regionserver.handler.count": "8",
    "hbase.hregion.memstore.mslab.chunksize": "131072",
    "hbase.hregion.memstore.mslab.max.allocation": "32768",
    "hbase.rpc.timeout": "10000",
    "hbase.ipc.client.socket.timeout.connect": "3000",
    "hbase.lease.recovery.dfs.timeout": "10000",
    # as docs/stores/hbase.md has it
    "hbase.client.scanner.timeout.period": "600000",
    "hbase.thrift.server.socket.read.timeout": "0",
    "hbase.thrift.connection.max-idletime": "2147483647",
}


def write_xml(path: Path, properties: Mapping[str, str]) -> None:
    """Write Hadoop's XML."""
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    ]
    path.write_text(f"<configuration>\n{''.join(lines)}</configuration>\n")


def free(host: str, port: int) -> bool:
    """Return whether no server responds at a port."""
    with suppress(OSError), socket.create_connection((host, port), 1):
        return False
    return True


class Cluster:
    """Three nodes with DataNode, NodeManager, region server and gateway each; their masters on the master."""

    def __init__(self) -> None:
        self.master = Machine()
        self._configure()
        self.nodes = {name: Node(name) for name in NODES}

    @staticmethod
    def _configure() -> None:
        for name, properties in {
            "core-site": CORE, "hdfs-site": HDFS, "yarn-site": YARN, "mapred-site": MAPRED, "hbase-site": HBASE,
            "capacity-scheduler": SCHEDULER,
        }.items():  # fmt: skip
            write_xml(SHARED / f"{name}.xml", properties)
        services = ROOT / "services"
        shutil.copy(services / "hadoop" / "conf" / "log4j.properties", SHARED)
        shutil.copy(services / "hbase" / "log4j2.properties", SHARED)
        for folder in ("hdfs", "datanode", "static"):
            (SHARED / "webapps" / folder).mkdir(parents=True)
        tools = HADOOP_HOME / "share" / "hadoop" / "tools" / "lib"
        (HADOOP_HOME / "bin").mkdir(parents=True)
        tools.mkdir(parents=True)
        for name in ("hadoop", "yarn"):
            shutil.copy(services / "hadoop" / "bin" / "hadoop", HADOOP_HOME / "bin" / name)
        (HADOOP_HOME / "share" / "hadoop" / "lib").symlink_to("/mnt/hadoop")
        (HADOOP_HOME / "etc").mkdir()
        (HADOOP_HOME / "etc" / "hadoop").symlink_to(SHARED)
        (jar,) = Path("/mnt/hadoop").glob("hadoop-streaming-*.jar")
        (tools / jar.name).symlink_to(jar)

    def start(self) -> None:
        """Start everything, and wait until it works together."""
        self.master.disk.joinpath("tmp").mkdir()
        self._must(self.master.run(*_hadoop("hdfs.server.namenode.NameNode", 256), "-format", "-nonInteractive"))
        self.master.start("namenode", *_hadoop("hdfs.server.namenode.NameNode", 256))
        self.master.start("resourcemanager", *_hadoop("yarn.server.resourcemanager.ResourceManager", 320))
        self.master.start("zookeeper", *_hbase("zookeeper.HQuorumPeer", 128))
        self._answers("namenode", _NAMENODE)
        self._answers("zookeeper", 2181)
        for node in self.nodes.values():
            node.disk.joinpath("tmp").mkdir()
            node.start("datanode", *_hadoop("hdfs.server.datanode.DataNode", 128))
        self._answers("resourcemanager", _RESOURCEMANAGER)
        self.master.start("hbase", *_hbase("master.HMaster", 256), "start")
        for node in self.nodes.values():
            node.start("nodemanager", *_hadoop("yarn.server.nodemanager.NodeManager", 192))
            node.start("regionserver", *_hbase("regionserver.HRegionServer", 320), "start")
            node.start("gateway", *_gateway("thrift", GATEWAY))
        self.master.start("gateway2", *_gateway("thrift2", SECOND_GATEWAY))
        self._until("hbase", lambda: "Master has completed initialization" in self.master.log("hbase").read_text())
        self._answers("gateway2", SECOND_GATEWAY)
        for name in NODES:
            wait_until(lambda name=name: not free(name, GATEWAY))
        wait_until(lambda: len(self.working()) == len(NODES))

    def _answers(self, part: str, port: int) -> None:
        self._until(part, lambda: not free(MASTER, port))

    def _until(self, part: str, condition: Callable[[], object]) -> None:
        process = self.master.started[part]
        wait_until(lambda: condition() or process.poll() is not None)
        assert process.poll() is None, self.master.log(part).read_text()[-4000:]

    @staticmethod
    def _must(task: Task) -> None:
        assert task.code == 0, task.out

    def ask(self, path: str) -> Any:
        """Return what the ResourceManager's REST interface says."""
        with urllib.request.urlopen(f"http://{MASTER}:{_PAGES}/ws/v1/cluster/{path}", timeout=30) as answer:
            return json.load(answer)

    def working(self) -> set[str]:
        """Return the names of the nodes that YARN can use."""
        with suppress(OSError):
            found = (self.ask("nodes?states=RUNNING")["nodes"] or {}).get("node", [])
            return {node["nodeHostName"] for node in found}
        return set()

    def hadoop(self, *words: str) -> str:
        """Return what the command ``hadoop`` says."""
        done = self.master.run(f"{HADOOP_HOME}/bin/hadoop", *words)
        self._must(done)
        return done.out

    def stop(self) -> None:
        """End the nodes at once, and what runs on the master."""
        for node in self.nodes.values():
            node.power_off()
        for process in self.master.started.values():
            strike(process)

    def logs(self) -> str:
        """Return the end of what every server said."""
        found = []
        for machine in (self.master, *self.nodes.values()):
            for part in machine.started:
                lines = machine.log(part).read_text(errors="replace").splitlines()
                found += [f"--- {machine.name} {part}", *lines[-15:]]
        return "\n".join(found)


def _hadoop(name: str, megabytes: int) -> list[str]:
    # without Hadoop's native library each file of an archive costs a process: let that be a cheap one
    options = [
        "-Djdk.lang.Process.launchMechanism=VFORK",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Dhadoop.root.logger=INFO,console",
    ]
    folders = ["-Dhadoop.log.dir=/mnt/node/log", "-Dyarn.log.dir=/mnt/node/log", "-Djava.io.tmpdir=/mnt/node/tmp"]
    classes = "/mnt/shared:/mnt/hadoop/*"
    return ["java", f"-Xmx{megabytes}m", *_SMALL, *options, *folders, "-cp", classes, f"org.apache.hadoop.{name}"]


def _hbase(name: str, megabytes: int) -> list[str]:
    own = ["-Dlog4j2.configurationFile=/mnt/shared/log4j2.properties", "-Djava.io.tmpdir=/mnt/node/tmp"]
    classes = "/mnt/shared:/mnt/hbase/*"
    return [
        "java", f"-Xmx{megabytes}m", *_SMALL, *_HBASE_OPTIONS, *own, "-cp", classes,
        f"org.apache.hadoop.hbase.{name}",
    ]  # fmt: skip


def _gateway(interface: str, port: int) -> list[str]:
    return [*_hbase(f"{interface}.ThriftServer", 128), "start", "-p", str(port), "--infoport", "-1"]
