"""A Hadoop installation: its commands, its file system, and the logs that YARN collected."""

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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError, LockedError, NutchError, RunnerError
from nutch2py.mapreduce.runners.hadoop.hadoop_errors import INSTALLATION_HINT, explain_error
from nutch2py.mapreduce.task_progress import TASK_ERROR_PREFIX, decode_error
from nutch2py.support.retry import ServiceRetry, service_wait_seconds
from nutch2py.support.temp_dirs import temp_dir

if TYPE_CHECKING:
    from nutch2py.mapreduce.runners.hadoop.package_archive import PackageManifest

_LOG_ATTEMPTS = 5
LOG_RETRY_DELAY = 2.0
"""Seconds between attempts to read the logs of an application: YARN collects them some seconds after its end."""
_STREAMING_JARS = (
    "share/hadoop/tools/lib/hadoop-streaming-[0-9]*.jar",
    "hadoop-mapreduce/hadoop-streaming*.jar",
    "hadoop-streaming*.jar",
    "contrib/streaming/hadoop-streaming*.jar",
    "../hadoop-mapreduce/hadoop-streaming*.jar",
)
_SERVICE_UNAVAILABLE = re.compile(
    rb"failed on (connection|socket timeout|local) exception|Connection (refused|reset)|ConnectException"
    rb"|SocketTimeoutException|NoRouteToHostException|in safe mode|StandbyException|RetriableException"
    rb"|There are 0 datanode"  # no DataNode has started yet
)
"""Messages of Hadoop's commands for a NameNode or ResourceManager that is unavailable or starting."""
_SLOW_COMMAND = 60.0  # seconds after which a slow command, which starts a JVM, is reported
_RUNNING_APPLICATION = re.compile(rb"^\s*(application_\d+_\d+)\s+nutch2py ", re.MULTILINE)
_OWN_HDFS_FILE = re.compile(r"nutch2py-.*\.tar\.gz(\.\d+)?$|run_\w+Job\.")

MIN_CLEANUP_AGE = 3600.0
"""Minimum age in seconds of files on HDFS to delete: younger ones may belong to a job in preparation. Allows for clock
skew."""


class HadoopClient(NamedTuple):
    """A Hadoop installation: its commands, the jar of Hadoop streaming, and our directory on HDFS.

    ``wait_seconds``: how long unavailable HDFS and YARN services are retried.
    """

    hadoop_command: str
    yarn_command: str
    streaming_jar: str
    hdfs_dir: str
    wait_seconds: float = 0.0

    @classmethod
    def from_conf(cls, conf: Configuration) -> HadoopClient:
        """Find the installation by the properties, else by the environment."""
        home = conf.get_trimmed("mapreduce.hadoop.home") or os.environ.get("HADOOP_HOME", "")
        hadoop = _find_program("hadoop", home)
        if hadoop is None:
            where = f"{home}/bin/hadoop does not exist" if home else "there is no hadoop on the PATH"
            raise ConfigurationError(f"cannot run jobs on Hadoop: {where}: {INSTALLATION_HINT}")
        yarn = _find_program("yarn", str(Path(hadoop).parent.parent)) or _find_program("yarn", home)
        if yarn is None:
            raise ConfigurationError(
                f"cannot run jobs on Hadoop: there is no command yarn next to {hadoop}: {INSTALLATION_HINT}"
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
        return cls(hadoop, yarn, jar, folder, service_wait_seconds(conf))

    def run_fs(
        self, *arguments: str, failure_message: str | None = None, error_class: type[NutchError] = RunnerError
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``hadoop fs``; ``failure_message`` describes the failed action; None: a failure is a valid result.

        ``error_class``: raised when HDFS is available and the error is not a known one.
        """
        done = self._run_with_retry("HDFS", self.hadoop_command, "fs", *arguments)
        if done.returncode and (failure_message is not None or _SERVICE_UNAVAILABLE.search(done.stderr)):
            raise self._create_error(failure_message or f"hadoop fs {' '.join(arguments)} failed", done, error_class)
        return done

    def _create_error(self, doing: str, done: subprocess.CompletedProcess[bytes], kind: type[NutchError]) -> NutchError:
        to_read = kind is InputError and b"Permission denied" in done.stderr
        known = explain_error(doing, done.stderr.splitlines()) if not to_read else None
        if known is not None:
            return known
        kind = RunnerError if _SERVICE_UNAVAILABLE.search(done.stderr) else kind
        return kind(f"{doing}: {_last_line(done.stderr)}: check that HDFS and YARN run, and the permissions there")

    def _run_with_retry(self, service: str, *command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command; retry while it reports that the service is unavailable."""
        outage = ServiceRetry(service, self.wait_seconds, "HADOOP_HOME")
        while True:
            with outage.warn_if_slow(_SLOW_COMMAND):
                done = self._run_once(command, max(self.wait_seconds, _SLOW_COMMAND) if service == "YARN" else None)
            if not (done.returncode and _SERVICE_UNAVAILABLE.search(done.stderr)):
                outage.succeeded()
                return done
            if not outage.wait_before_retry(_last_line(done.stderr)):
                return done

    @staticmethod
    def _run_once(command: tuple[str, ...], max_seconds: float | None) -> subprocess.CompletedProcess[bytes]:
        """Run a command once; the YARN client retries by itself, 15 minutes or as configured."""
        try:
            return subprocess.run(  # noqa: S603 - no shell; the configured Hadoop client
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=max_seconds
            )
        except subprocess.TimeoutExpired as error:
            raise RunnerError(
                f"YARN has not responded for {max_seconds:g} s: start its ResourceManager, then run the command again"
            ) from error
        except OSError as error:
            raise ConfigurationError(f"cannot run {command[0]} ({error.strerror}): {INSTALLATION_HINT}") from error

    def run_yarn(self, *arguments: str, failure_message: str) -> bytes:
        """Return the output of ``yarn``; RunnerError with ``failure_message`` when it fails."""
        done = self._run_with_retry("YARN", self.yarn_command, *arguments)
        if done.returncode:
            raise self._create_error(failure_message, done, RunnerError)
        return done.stdout

    def query_yarn(self, *words: str) -> bytes | None:
        """Return the output of ``yarn`` with the given arguments; None when it fails."""
        with suppress(NutchError):
            return self._run_once((self.yarn_command, *words), _SLOW_COMMAND).stdout
        return None

    def upload_package(self, package: Path, manifest: PackageManifest) -> str:
        """Return the address of the archive on HDFS; upload it if it is not there."""
        target = f"{self.hdfs_dir}/{_archive_name(manifest)}"
        if self.run_fs("-test", "-e", target).returncode:
            problem = f"cannot put {package} on HDFS"
            self.create_hdfs_dir()
            self.run_fs("-put", "-f", str(package), f"{target}.{os.getpid()}", failure_message=problem)
            if self.run_fs("-mv", f"{target}.{os.getpid()}", target).returncode:  # another driver was faster
                self.run_fs("-rm", "-f", "-skipTrash", f"{target}.{os.getpid()}")
        return target

    def clean_hdfs_dir(self, manifest: PackageManifest) -> tuple[list[str], list[str]]:
        """Delete everything in our HDFS directory except the archive of ``manifest``; return deleted and kept names.

        These are archives of earlier versions, and inputs of jobs whose driver died. While one of our jobs runs,
        nothing is deleted, as its tasks may need either: LockedError. Young files are kept, because they may belong to
        a job that YARN does not know yet.
        """
        listed = self.run_yarn("application", "-list", failure_message="cannot query YARN for running jobs")
        running = _RUNNING_APPLICATION.search(listed)
        if running is not None:
            raise LockedError(
                f"{running[1].decode()} is running and may need the files on HDFS: clean when no job runs"
            )
        self.create_hdfs_dir()
        ages = self._file_ages()
        old = [name for name in ages if _OWN_HDFS_FILE.match(name) and name != _archive_name(manifest)]
        gone = [name for name in old if ages[name] >= MIN_CLEANUP_AGE]
        if gone:
            paths = [f"{self.hdfs_dir}/{name}" for name in gone]
            self.run_fs("-rm", "-r", "-f", "-skipTrash", *paths, failure_message=f"cannot clean {self.hdfs_dir}")
        return gone, [name for name in old if ages[name] < MIN_CLEANUP_AGE]

    def _file_ages(self) -> dict[str, float]:
        """Return the age in seconds of each file in our HDFS directory, by name."""
        problem = f"cannot list {self.hdfs_dir}"
        found = self.run_fs("-ls", "-C", self.hdfs_dir, failure_message=problem).stdout.decode("utf-8", "replace")
        paths = [line for line in found.splitlines() if line.strip()]
        if not paths:
            return {}
        # a file that is deleted meanwhile is reported on standard error
        listing = self.run_fs("-stat", "%Y %n", *paths).stdout.decode("utf-8", "replace")
        written = [line.partition(" ") for line in listing.splitlines()]
        return {name: time.time() - int(moment) / 1000 for moment, _, name in written}

    def create_hdfs_dir(self) -> None:
        """Create our HDFS directory with private access: jobs and archives may contain secrets."""
        self.run_fs("-mkdir", "-p", self.hdfs_dir, failure_message=f"cannot make the folder {self.hdfs_dir}")
        self.run_fs("-chmod", "700", self.hdfs_dir, failure_message=f"cannot protect the folder {self.hdfs_dir}")

    def find_task_error(self, application: str) -> NutchError | None:
        """Return the last error that a task of an application reported in YARN's collected logs."""
        marker = TASK_ERROR_PREFIX.encode()
        for attempt in range(_LOG_ATTEMPTS):
            time.sleep(LOG_RETRY_DELAY if attempt else 0)
            done = self.query_yarn("logs", "-applicationId", application, "-log_files", "stderr")
            if done is None:
                return None
            lines = [line for line in done.splitlines() if line.startswith(marker)]
            if lines:
                return decode_error(lines[-1][len(marker) :])
        return None


@contextmanager
def download_input(conf: Configuration, path: str) -> Iterator[Path]:
    """Yield a local path for ``path``: a copy for an address (``hdfs://…``), otherwise the path itself."""
    if "://" not in path:
        yield Path(path).absolute()
        return
    if path.lower().startswith(("http://", "https://", "ftp://")):
        raise InputError(f"{path} is a URL, not a seed file: write the URL into a file and name the file")
    with temp_dir("input") as folder:
        copy = folder / "input"
        HadoopClient.from_conf(conf).run_fs(
            "-get", path, str(copy), failure_message=f"cannot read {path}", error_class=InputError
        )
        yield copy


def _archive_name(manifest: PackageManifest) -> str:
    return f"nutch2py-{manifest.version}-{manifest.digest}.tar.gz"


def _find_program(name: str, home: str) -> str | None:
    if home:
        path = Path(home, "bin", name)
        return str(path) if os.access(path, os.X_OK) else None
    return shutil.which(name)


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
