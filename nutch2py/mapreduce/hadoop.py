"""A Hadoop installation as its client sees it: where it is, its file system, and the logs that YARN collected."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, InputError, LockedError, NutchError, RunnerError
from nutch2py.mapreduce import guard
from nutch2py.mapreduce.hadoop_words import INSTALLATION, refusal
from nutch2py.mapreduce.progress import TASK_ERROR, decode_error
from nutch2py.outages import Outage, service_wait
from nutch2py.scratch import scratch_folder

if TYPE_CHECKING:
    from nutch2py.mapreduce.package_archive import Manifest

_ATTEMPTS, _PAUSE = 5, 2.0  # YARN collects logs some seconds after the end
_STREAMING_JARS = (
    "share/hadoop/tools/lib/hadoop-streaming-[0-9]*.jar",
    "hadoop-mapreduce/hadoop-streaming*.jar",
    "hadoop-streaming*.jar",
    "contrib/streaming/hadoop-streaming*.jar",
    "../hadoop-mapreduce/hadoop-streaming*.jar",
)
_AWAY = re.compile(
    rb"failed on (connection|socket timeout|local) exception|Connection (refused|reset)|ConnectException"
    rb"|SocketTimeoutException|NoRouteToHostException|in safe mode|StandbyException|RetriableException"
    rb"|There are 0 datanode"  # none has come up yet
)
"""What the commands of Hadoop say of a NameNode or ResourceManager that is away, or begins."""
_SILENCE = 60.0  # seconds that a command may take, which starts a JVM, before that is worth a line
_RUNNING = re.compile(rb"^\s*(application_\d+_\d+)\s+nutch2py ", re.MULTILINE)
_OURS = re.compile(r"nutch2py-.*\.tar\.gz(\.\d+)?$|run_\w+Job\.")

YOUNG = 3600.0
"""Seconds for which what is on HDFS may be of a job that is being prepared, clocks that differ among them."""


class Hadoop(NamedTuple):
    """A Hadoop installation: its commands, the jar of Hadoop streaming, and our folder on its file system.

    ``wait``: seconds for which HDFS and YARN are tried while they are away.
    """

    hadoop: str
    yarn: str
    streaming_jar: str
    folder: str
    wait: float = 0.0

    @classmethod
    def find(cls, conf: Configuration) -> Hadoop:
        """Return the installation that the properties, else the environment, point at."""
        home = conf.get_trimmed("mapreduce.hadoop.home") or os.environ.get("HADOOP_HOME", "")
        hadoop = _program("hadoop", home)
        if hadoop is None:
            where = f"{home}/bin/hadoop is not there" if home else "there is no hadoop on the PATH"
            raise ConfigurationError(f"cannot run jobs on Hadoop: {where}: {INSTALLATION}")
        yarn = _program("yarn", str(Path(hadoop).parent.parent)) or _program("yarn", home)
        if yarn is None:
            raise ConfigurationError(
                f"cannot run jobs on Hadoop: there is no command yarn beside {hadoop}: {INSTALLATION}"
            )
        jar = conf.get_trimmed("mapreduce.streaming.jar")
        if jar and not Path(jar).is_file():
            raise ConfigurationError(
                f"mapreduce.streaming.jar is {jar}, which is no file: correct it, or leave it empty"
            )
        if not jar:
            roots = [home, str(Path(hadoop).resolve().parent.parent), "/usr/lib/hadoop", "/usr/lib/hadoop-mapreduce"]
            found = [each for root in roots if root for name in _STREAMING_JARS for each in Path(root).glob(name)]
            found = [each for each in found if "-sources" not in each.name]
            if not found:
                raise ConfigurationError(
                    f"there is no hadoop-streaming jar in {' or '.join(filter(None, roots))}: "
                    "name it with the property mapreduce.streaming.jar"
                )
            jar = str(found[0])
        user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        folder = conf.get_trimmed("mapreduce.hadoop.folder").rstrip("/") or f"hdfs:///user/{user}/nutch2py"
        return cls(hadoop, yarn, jar, folder, service_wait(conf))

    def fs(
        self, *arguments: str, expect: str | None = None, kind: type[NutchError] = RunnerError
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``hadoop fs``; ``expect`` says what failed when it fails, None: failing is an answer.

        ``kind``: what is raised when HDFS is there and it is none of its refusals.
        """
        done = self._run("HDFS", self.hadoop, "fs", *arguments)
        if done.returncode and (expect is not None or _AWAY.search(done.stderr)):
            raise self._failure(expect or f"hadoop fs {' '.join(arguments)} failed", done, kind)
        return done

    def _failure(self, doing: str, done: subprocess.CompletedProcess[bytes], kind: type[NutchError]) -> NutchError:
        to_read = kind is InputError and b"Permission denied" in done.stderr
        known = refusal(doing, done.stderr.splitlines()) if not to_read else None
        if known is not None:
            return known
        kind = RunnerError if _AWAY.search(done.stderr) else kind
        return kind(f"{doing}: {_last_line(done.stderr)}: check that HDFS and YARN run, and the permissions there")

    def _run(self, service: str, *command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command, again and again while it says that the service is away."""
        outage = Outage(service, self.wait, "HADOOP_HOME")
        while True:
            with outage.listening(_SILENCE):
                done = self._tried(command, max(self.wait, _SILENCE) if service == "YARN" else None)
            if not (done.returncode and _AWAY.search(done.stderr)):
                outage.over()
                return done
            if not outage.failed(_last_line(done.stderr)):
                return done

    @staticmethod
    def _tried(command: tuple[str, ...], patience: float | None) -> subprocess.CompletedProcess[bytes]:
        """Run a command once; the client of YARN tries by itself, for a quarter of an hour or as it is configured."""
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=patience)
        except subprocess.TimeoutExpired as error:
            raise RunnerError(
                f"YARN has not answered for {patience:g} s: start its ResourceManager, then run the command again"
            ) from error
        except OSError as error:
            raise ConfigurationError(f"cannot run {command[0]} ({error.strerror}): {INSTALLATION}") from error

    def left_running(self, tag: str) -> list[str]:
        """Return the ids of the applications with a tag that have not ended."""
        done = self._run("YARN", self.yarn, *guard.listing(tag))
        if done.returncode:
            raise self._failure("cannot ask YARN which jobs run", done, RunnerError)
        return guard.applications_in(done.stdout)

    def ask(self, *words: str) -> bytes | None:
        """Return what ``yarn`` puts out after some words; None when it cannot be asked."""
        with suppress(NutchError):
            return self._tried((self.yarn, *words), _SILENCE).stdout
        return None

    def ship(self, package: Path, manifest: Manifest) -> str:
        """Return the address of the archive on HDFS, putting it there unless it is."""
        target = f"{self.folder}/{_archive_name(manifest)}"
        if self.fs("-test", "-e", target).returncode:
            problem = f"cannot put {package} on HDFS"
            self.make_folder()
            self.fs("-put", "-f", str(package), f"{target}.{os.getpid()}", expect=problem)
            if self.fs("-mv", f"{target}.{os.getpid()}", target).returncode:  # another driver was faster
                self.fs("-rm", "-f", "-skipTrash", f"{target}.{os.getpid()}")
        return target

    def clean(self, manifest: Manifest) -> tuple[list[str], list[str]]:
        """Delete what our folder on HDFS holds but the archive of ``manifest``; return the names, and those that stay.

        That is archives of earlier versions, and inputs of jobs whose driver died. While one of our jobs runs, nothing
        is deleted, as its tasks may need either: LockedError. What is young stays, as it may be of a job that YARN does
        not know yet.
        """
        listed = self._run("YARN", self.yarn, "application", "-list")
        if listed.returncode:
            raise self._failure("cannot ask YARN which jobs run", listed, RunnerError)
        running = _RUNNING.search(listed.stdout)
        if running is not None:
            raise LockedError(f"{running[1].decode()} runs and may need what is on HDFS: clean when no job does")
        self.make_folder()
        ages = self._ages()
        old = [name for name in ages if _OURS.match(name) and name != _archive_name(manifest)]
        gone = [name for name in old if ages[name] >= YOUNG]
        if gone:
            paths = [f"{self.folder}/{name}" for name in gone]
            self.fs("-rm", "-r", "-f", "-skipTrash", *paths, expect=f"cannot clean {self.folder}")
        return gone, [name for name in old if ages[name] < YOUNG]

    def _ages(self) -> dict[str, float]:
        """Return the names in our folder on HDFS, with the seconds since each was written."""
        problem = f"cannot list {self.folder}"
        found = self.fs("-ls", "-C", self.folder, expect=problem).stdout.decode("utf-8", "replace")
        paths = [line for line in found.splitlines() if line.strip()]
        if not paths:
            return {}
        # one that goes meanwhile is said on the other stream, and is none of these
        told = self.fs("-stat", "%Y %n", *paths).stdout.decode("utf-8", "replace")
        written = [line.partition(" ") for line in told.splitlines()]
        return {name: time.time() - int(moment) / 1000 for moment, _, name in written}

    def make_folder(self) -> None:
        """Make our folder on HDFS, for us alone: jobs and archives may hold what others must not read."""
        self.fs("-mkdir", "-p", self.folder, expect=f"cannot make the folder {self.folder}")
        self.fs("-chmod", "700", self.folder, expect=f"cannot protect the folder {self.folder}")

    def task_error(self, application: str) -> NutchError | None:
        """Return the last error that a task of an application gave in the user's words, by YARN's collected logs."""
        marker = TASK_ERROR.encode()
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE if attempt else 0)
            done = self.ask("logs", "-applicationId", application, "-log_files", "stderr")
            if done is None:
                return None
            lines = [line for line in done.splitlines() if line.startswith(marker)]
            if lines:
                return decode_error(lines[-1][len(marker) :])
        return None


@contextmanager
def local_copy(conf: Configuration, path: str) -> Iterator[Path]:
    """Give a local path for ``path``: a copy of what an address (``hdfs://…``) names, or itself."""
    if "://" not in path:
        yield Path(path).absolute()
        return
    if path.lower().startswith(("http://", "https://", "ftp://")):
        raise InputError(f"{path} is a URL, and not a file of them: write it into one, or give a list from a program")
    with scratch_folder("input") as folder:
        copy = folder / "input"
        Hadoop.find(conf).fs("-get", path, str(copy), expect=f"cannot read {path}", kind=InputError)
        yield copy


def _archive_name(manifest: Manifest) -> str:
    return f"nutch2py-{manifest.version}-{manifest.digest}.tar.gz"


def _program(name: str, home: str) -> str | None:
    if home:
        path = Path(home, "bin", name)
        return str(path) if os.access(path, os.X_OK) else None
    return shutil.which(name)


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
