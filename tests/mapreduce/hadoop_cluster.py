"""A real Hadoop of the tests' own: started by scripts/services on free ports, stopped and removed at the end."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration, data_dir
from tests.processes import commands
from tests.services import Service, running


class Cluster(Service):
    """HDFS and YARN of one node; ``settings`` are the properties of a job that runs there."""

    kind = "hadoop"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.conf_folder = folder / "conf"
        self.package = folder / "package.tar.gz"

    @property
    def home(self) -> str:
        """The folder of the Hadoop installation."""
        return self.endpoint

    @property
    def settings(self) -> dict[str, str]:
        return {
            "mapreduce.runner": "hadoop",
            "mapreduce.hadoop.home": self.home,
            "mapreduce.package": str(self.package),
            "mapreduce.job.maps": "3",
            "mapreduce.job.reduces": "2",
            "storage.embedded.shared": "true",
            "urlfilter.regex.file": "site-urlfilter.txt",
        }

    def configuration(self, settings: dict[str, str]) -> Configuration:
        return Configuration.load(self.conf_folder, {**self.settings, **settings})

    def hadoop(self, *words: str) -> str:
        done = subprocess.run([f"{self.home}/bin/hadoop", *words], capture_output=True, text=True, check=False)
        return done.stdout

    def running(self) -> list[str]:
        """Names and ids of the applications that have not ended."""
        listed = self.hadoop("application", "-list").splitlines()
        return [line for line in listed if line.startswith("application_")]

    def tasks(self, job: str, kind: str) -> list[int]:
        """Process ids of a job's tasks of a kind (mapper, reducer) that run in containers of this cluster."""
        found = []
        for pid, words in commands():
            if words[1:2] == [f"run_{job}.py".encode()] and f"--{kind}".encode() in words:
                with contextlib.suppress(OSError):  # it has just ended
                    found += [pid] if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(self.folder) else []
        return found


def make_package(path: Path) -> None:
    """Make a package by the command; Ctrl-C, of which that makes an exit code, ends the caller, too."""
    code = main(["package", str(path)])
    if code == 130:
        raise KeyboardInterrupt
    assert code == 0


@pytest.fixture(scope="session")
def package_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a package, made through the command line, and ``conf``, the configuration folder in it."""
    folder = tmp_path_factory.mktemp("package")
    rules = folder / "conf"
    rules.mkdir()
    shutil.copy(data_dir("conf") / "regex-urlfilter.txt", rules / "site-urlfilter.txt")
    (rules / "broken-urlfilter.txt").write_text("+[a-\n")
    secret = "<property><name>solr.auth.password</name><value>hush</value></property>"
    (rules / "nutch-site.xml").write_text(f"<configuration>{secret}</configuration>")
    assert main(["package", str(folder / "package.tar.gz"), "--conf", str(rules)]) == 0
    return folder


@pytest.fixture(scope="session")
def hadoop_cluster(package_folder: Path) -> Iterator[Cluster]:
    """Give a running cluster with the package made, or skip where there is no Java or Maven."""
    with running(Cluster(package_folder)) as cluster:
        yield cluster
