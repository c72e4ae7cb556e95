"""A real HBase of the tests' own: started by scripts/services on free ports, stopped and removed at the end."""

import subprocess
from pathlib import Path

import pytest

from tests.services import ROOT, Service, running


class Server(Service):
    """An instance of HBase with its gateways."""

    kind = "hbase"
    environment = {"HBASE_MEMORY": "768m", "GATEWAY_MEMORY": "512m"}  # noqa: RUF012

    @property
    def location(self):
        """Value of storage.data.store."""
        return self.endpoint

    def status(self):
        return self.services("status")

    def java_command(self, source: Path, *arguments: str) -> list[str]:
        """Return the command that runs a Java program of one file as a client of this HBase."""
        classes = f"{ROOT / 'services' / 'hbase'}:{self.folder.parent / 'lib'}/*"
        values = {
            "zookeeper.port": self.port("zookeeper"),
            "zookeeper.host": "127.0.0.1",
            "zookeeper.session": 10_000,
            "scanner.timeout": 60_000,
            "data": self.folder,
        }
        options = [f"-Dnutch2py.{name}={value}" for name, value in values.items()]
        return ["java", *options, "-XX:TieredStopAtLevel=1", "-cp", classes, str(source), *arguments]

    def java(self, source, *arguments):
        """Run a Java program of one file as a client of this HBase, and wait for its end."""
        done = subprocess.run(self.java_command(source, *arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def port(self, part: str) -> int:
        lines = (self.folder / "settings").read_text().splitlines()
        return int(next(line.partition("=")[2] for line in lines if line.startswith(f"{part}=")))

    def address(self, part: str = "gateway") -> str:
        return f"hbase://127.0.0.1:{self.port(part)}"


@pytest.fixture(scope="session")
def hbase_server():
    """Give a running HBase with a gateway, or skip where there is no Java or Maven."""
    with running(Server()) as server:
        yield server


@pytest.fixture
def hbase(hbase_server):
    """Give the server with HBase and its first gateway running, whatever the test before did."""
    hbase_server.start()
    return hbase_server
