"""A real HBase of the tests' own: started by scripts/services on free ports, stopped and removed at the end."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """An instance of HBase with its gateways; parts can be killed and started again while a test runs."""

    def __init__(self, name):
        self.name = name
        self.location = ""
        self.environment = {**os.environ, "HBASE_MEMORY": "768m", "GATEWAY_MEMORY": "512m"}

    def _services(self, action, *words):
        command = [str(ROOT / "scripts" / "services"), action, "hbase", "--instance", self.name, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment)
        assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stderr}"
        return done.stdout

    def start(self, *parts):
        self.location = self._services("start", *parts).strip()

    def stop(self, *parts):
        self._services("stop", *parts)

    def crash(self, *parts):
        self._services("stop", "--crash", *parts)

    def remove(self):
        self._services("remove")

    def status(self):
        return self._services("status")

    def java(self, source, *arguments):
        """Run a Java program of one file as a client of this HBase."""
        classes = f"{ROOT / 'services' / 'hbase'}:{self.home.parent / 'lib'}/*"
        values = {"zookeeper.port": self.port("zookeeper"), "scanner.timeout": 60_000, "data": self.home}
        options = [f"-Dnutch2py.{name}={value}" for name, value in values.items()]
        command = ["java", *options, "-XX:TieredStopAtLevel=1", "-cp", classes, str(source), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def home(self):
        return ROOT / ".cache" / "services" / "hbase" / self.name

    def port(self, part):
        lines = (self.home / "settings").read_text().splitlines()
        return int(next(line.partition("=")[2] for line in lines if line.startswith(f"{part}=")))

    def address(self, part="gateway"):
        return f"hbase://127.0.0.1:{self.port(part)}"


@pytest.fixture(scope="session")
def hbase_server():
    """Give a running HBase with a gateway, or skip where there is no Java or Maven."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not on the PATH: a JDK 17 and Maven run the HBase of this test")
    server = Server(f"test-{os.getpid()}")
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def hbase(hbase_server):
    """Give the server with HBase and its first gateway running, whatever the test before did."""
    hbase_server.start()
    return hbase_server
