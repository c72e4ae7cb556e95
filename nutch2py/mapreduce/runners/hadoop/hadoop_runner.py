"""Runs jobs on YARN through Hadoop streaming: prepares the files for the nodes, and monitors the client.

Command lines contain no secrets: properties are passed to Hadoop in a file (``-conf``) and to the tasks in another
(``-files``), both readable by the user alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from nutch2py import errors
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError, RunnerError
from nutch2py.mapreduce import PACKAGE_DIR
from nutch2py.mapreduce.input_splits import Split
from nutch2py.mapreduce.mrjob_protocols import unescape_streamed_text
from nutch2py.mapreduce.runners import client_watchdog
from nutch2py.mapreduce.runners.hadoop import locality, yarn_applications
from nutch2py.mapreduce.runners.hadoop import package_archive as archive
from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient
from nutch2py.mapreduce.runners.hadoop.hadoop_errors import explain_error, is_known_error, simplify_line
from nutch2py.mapreduce.runners.hadoop.yarn_queue import YarnQueueMonitor
from nutch2py.mapreduce.runners.job_dir import add_java_tmpdir
from nutch2py.mapreduce.runners.mrjob_compat import JobKeyMixin, mrjob_importable
from nutch2py.mapreduce.runners.task_exit import describe_exit
from nutch2py.mapreduce.task_progress import ProgressMonitor
from nutch2py.support.invariants import not_none
from nutch2py.support.reporting import warn
from nutch2py.support.retry import report_outage, report_recovery, service_wait_seconds

with mrjob_importable():
    from mrjob.hadoop import HadoopJobRunner
    from mrjob.logs.step import _interpret_hadoop_jar_command_stderr

_PASSED_PREFIXES = ("mapreduce.", "mapred.", "yarn.", "stream.", "dfs.", "fs.", "hadoop.", "ipc.", "io.")
_OWN_PROPERTIES = frozenset(
    {
        "mapreduce.runner",
        "mapreduce.job.maps",
        "mapreduce.job.reduces",
        "mapreduce.package",
        "mapreduce.python",
        "mapreduce.hadoop.home",
        "mapreduce.hadoop.folder",
        "mapreduce.streaming.jar",
        "mapreduce.spark.master",
        # properties in nutch-default.xml for Nutch's own Java code
        "hadoop.job.history.user.location",
        "io.serializations",
    }
)
_SUBMITTED = re.compile(
    rb"Submitted application (?P<id>application_\d+_\d+)|Job job_\d+_\d+ (running|completed|failed)"
)
_PROGRESS = re.compile(rb"map\s+(\d+)%\s+reduce\s+(\d+)%")
_RETRY_INTERVAL = 30_000  # yarn.resourcemanager.connect.retry-interval.ms; smaller values are rejected
GUARD_TIMEOUT = 60.0
"""Seconds that a stopped job waits for the end of its application."""
_EXIT_CODE = re.compile(rb"subprocess failed with code (\d+)")
_MEMORY_EXCEEDED = re.compile(rb"is running .* beyond the '(PHYSICAL|VIRTUAL)' memory limit")
_FAILURE_REASON = re.compile(rb"failed with state \w+ due to: (.+)")
_FINAL_STATUS = re.compile(rb"Application state is completed. FinalApplicationStatus=(\w+)")
_MISSING_PROGRAM = re.compile(rb'Cannot run program "([^"]+)"')


def job_label(conf: Configuration, title: str, batch: str = "") -> str:
    """Return ``nutch2py CRAWL TITLE BATCH``, the name in YARN's UI. ``batch``: "" when the job works on the table."""
    crawl = conf.get_trimmed("storage.crawl.id") or "-"
    return " ".join(filter(None, ("nutch2py", crawl, title.replace(":", ""), batch)))


def job_tag(conf: Configuration, label: str) -> str:
    """Return the tag of a job's application: equal for a rerun, which can so find the application of a dead driver."""
    what = "\n".join((conf.get_trimmed("storage.data.store"), label))
    return f"nutch2py-{hashlib.sha256(what.encode()).hexdigest()[:20]}"


def write_job_properties(path: Path, conf: Configuration, label: str, tag: str) -> None:
    """Write Hadoop's properties of the configuration in Hadoop's XML format, readable by the user alone."""
    properties = {
        name: conf.get(name, "")
        for name in conf
        if name.startswith(_PASSED_PREFIXES) and name not in _OWN_PROPERTIES and conf.get_trimmed(name)
    }
    for name, value in _retry_properties(service_wait_seconds(conf)).items():
        properties.setdefault(name, value)
    properties["mapreduce.job.name"] = label
    properties["mapreduce.job.tags"] = ",".join(filter(None, (properties.get("mapreduce.job.tags"), tag)))
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in sorted(properties.items())
    ]
    text = '<?xml version="1.0"?>\n<configuration>\n' + "\n".join(lines) + "\n</configuration>\n"
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _retry_properties(seconds: float) -> dict[str, str]:
    """Return how long client and application master retry an unavailable ResourceManager or NameNode."""
    milliseconds = str(max(round(seconds * 1000), _RETRY_INTERVAL))
    return {
        "yarn.resourcemanager.connect.max-wait.ms": milliseconds,
        "yarn.app.mapreduce.am.scheduler.connection.wait.interval-ms": milliseconds,
        "ipc.client.connect.max.retries": str(max(round(seconds), 1)),  # one per second
    }


class HadoopLaunch(NamedTuple):
    """Prepared launch of a job: the Hadoop installation, the job's tag, and arguments for mrjob."""

    client: HadoopClient
    tag: str
    arguments: list[str]

    @classmethod
    def prepare(cls, conf: Configuration, work: Path, splits: Sequence[Split], title: str, batch: str) -> HadoopLaunch:
        """Find Hadoop, upload the archive if needed, and write the job's properties into ``work``.

        Also writes the preferred hosts of the splits.
        """
        installation = HadoopClient.from_conf(conf)
        label = job_label(conf, title, batch)
        tag = job_tag(conf, label)
        write_job_properties(work / "job.xml", conf, label, tag)
        arguments = [
            *("--hadoop-bin", installation.hadoop_command, "--hadoop-streaming-jar", installation.streaming_jar),
            *("--hadoop-tmp-dir", installation.hdfs_dir, f"--hadoop-args=-conf {work / 'job.xml'}"),
            *("--python-bin", conf.get_trimmed("mapreduce.python") or f"python{archive.python_tag()}"),
            *("--no-read-logs", "--no-check-input-paths"),
            *locality.prepare_locality(work, splits),
        ]
        if is_installed_on_nodes(conf):
            installation.create_hdfs_dir()
        else:
            target = installation.upload_package(archive.archive_path(conf), archive.check_package(conf))
            arguments += ["--archives", f"{target}#{PACKAGE_DIR}"]
        return cls(installation, tag, arguments)

    def configure_runner(self, runner: HadoopRunner, reduce_tasks: int, monitor: ProgressMonitor) -> None:
        """Set attributes of mrjob's runner that its constructor does not accept."""
        runner.client, runner.tag = self.client, self.tag
        runner.reduce_tasks, runner.report_progress, runner.log_line = reduce_tasks, monitor.set_note, monitor.log_line


def summarize_tasks(counters: Mapping[str, Mapping[str, int]]) -> str:
    """Return ``24 map tasks, 12 reduce tasks, 1 of them failed and run again`` from Hadoop's counters of a job."""
    counts = {
        name: amount
        for group in counters
        if group.startswith("Job Counters")
        for name, amount in counters[group].items()
    }
    failed = sum(counts.get(f"Failed {kind} tasks", 0) for kind in ("map", "reduce"))
    parts = [(counts.get("Launched map tasks", 0), "map task"), (counts.get("Launched reduce tasks", 0), "reduce task")]
    words = [f"{amount} {name}{'' if amount == 1 else 's'}" for amount, name in parts if amount]
    return ", ".join(words + [f"{failed} of them failed and run again"] * bool(failed))


def is_installed_on_nodes(conf: Configuration) -> bool:
    """Return whether ``mapreduce.package`` is ``none``: program and configuration are installed on the nodes."""
    return conf.get_trimmed("mapreduce.package").lower() == "none"


class HadoopRunner(JobKeyMixin, HadoopJobRunner):  # type: ignore[misc]
    """Runs steps as Hadoop streaming jobs. The driver sets the attributes before the run."""

    client: HadoopClient
    tag: str
    reduce_tasks = 1
    _queue_monitor: YarnQueueMonitor | None = None
    report_progress: Callable[[str], None] = staticmethod(lambda _: None)
    log_line: Callable[[str], None] = staticmethod(lambda _: None)
    application = ""
    exit_code: int | None = None
    """Exit code of the last task attempt that failed."""
    last_error_line = ""
    """Last error line of the client."""
    has_exceeded_memory = False
    """Whether YARN has killed a task for its memory use."""
    missing_program = ""
    """Program that could not be started on a node."""
    failure_reason = ""
    """YARN's reason for the failure of the application."""
    known_error_line = b""
    """Last line of the client with a reason why YARN or HDFS rejects the job."""
    final_status = ""
    """Final status of the application, when its master exited before the client read it: the history server has the
    rest."""
    is_unknown_to_yarn = False
    """Whether the ResourceManager has reported that it does not know the application."""

    def __init__(self, **options: object) -> None:
        if options.get("libjars"):  # the hosts of the splits are known
            options["hadoop_input_format"] = locality.PLACED_SPLITS_FORMAT
        super().__init__(**options)

    def get_hadoop_version(self) -> str:
        """Return a version for every Hadoop with YARN; querying the real one would start a JVM."""
        return "3.4"

    def _run(self) -> None:
        """Upload the input to HDFS and run; files of the job go into YARN's staging directory when it is submitted."""
        yarn_applications.kill_left_applications(self.client, self.tag, self.report_progress)
        self._upload_mgr = None
        local = Path(self._get_local_tmp_dir(), "hdfs", self._job_key)
        local.mkdir(parents=True)
        (path,) = self._input_paths
        shutil.copyfile(path, local / "splits")
        with suppress(FileNotFoundError):
            shutil.copyfile(Path(path).with_name(locality.HOSTS_FILE), local / locality.HOSTS_FILE)
        self.client.run_fs(
            "-put", "-f", str(local), f"{self.client.hdfs_dir}/", failure_message="cannot put the job's input on HDFS"
        )
        self._run_job_in_hadoop()

    def _step_input_uris(self, step_num: int) -> list[str]:
        if step_num == 0:
            return [f"{self._hadoop_tmp_dir}/splits"]
        uris: list[str] = super()._step_input_uris(step_num)
        return uris

    def _jobconf_for_step(self, step_num: int) -> dict[str, str]:
        jobconf: dict[str, str] = super()._jobconf_for_step(step_num)
        if "reducer" in self._get_step(step_num):
            jobconf["mapreduce.job.reduces"] = str(self.reduce_tasks)
        return jobconf

    def _run_hadoop(
        self, hadoop_args: list[str], env: dict[str, str], record_callback: object
    ) -> tuple[int, dict[str, Any]]:
        """Run the client under the watchdog, which stops client and application when this process exits."""
        python = [sys.executable, "-S", "-E"]
        kill_command = [*python, yarn_applications.__file__, self.tag, self.client.yarn_command]
        command = [*python, client_watchdog.__file__, *kill_command, "--", *hadoop_args]
        environment = {**env, "HADOOP_ROOT_LOGGER": "INFO,console"}  # counters arrive as a log line
        environment["HADOOP_CLIENT_OPTS"] = add_java_tmpdir(
            env.get("HADOOP_CLIENT_OPTS", ""), self._get_local_tmp_dir()
        )
        process = subprocess.Popen(  # noqa: S603 - no shell; the configured Hadoop client
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        stdin, stdout = not_none(process.stdin, "stdin"), not_none(process.stdout, "stdout")
        try:
            found: dict[str, Any] = _interpret_hadoop_jar_command_stderr(self._watch_output(stdout))
            code = process.wait()
        finally:
            if self._queue_monitor is not None:
                self._queue_monitor.cancel()
            stdin.close()
            stdout.close()
            self._await_watchdog(process)
        self.application = found.get("application_id") or self.application
        if code == 0:
            self.log_line(f"{self.application}: {summarize_tasks(found.get('counters', {}))}")
        return code, found

    def _await_watchdog(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the watchdog, whose input is closed by now, has stopped the application."""
        if process.poll() is None:
            self.report_progress("ending the application")
        try:
            process.wait(GUARD_TIMEOUT)
        except subprocess.TimeoutExpired:
            warn(
                f"YARN has not responded for {GUARD_TIMEOUT:g} s: {self.application or 'the application'} is ended as "
                "soon as it does, or by the same command when that is run again"
            )

    def _watch_output(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            progress = _PROGRESS.search(line)
            submitted = _SUBMITTED.search(line)
            if progress or submitted:
                report_recovery("YARN")
            if submitted and submitted["id"]:
                self.application = submitted["id"].decode()
                self.report_progress("waiting for YARN to start it")
                self._queue_monitor = YarnQueueMonitor(self.client, self.application)
            if progress and self._queue_monitor is not None:
                self._queue_monitor.report_progress(is_working=progress.groups() != (b"0", b"0"))
            if progress:
                self.report_progress(f"map {progress[1].decode()} % reduce {progress[2].decode()} %")
            failed = _EXIT_CODE.search(line)
            if failed:
                self.exit_code = int(failed[1])
            if _MEMORY_EXCEEDED.search(line):
                self.has_exceeded_memory = True
            program = _MISSING_PROGRAM.search(line)
            if program:
                self.missing_program = program[1].decode("utf-8", "replace")
            if b"Could not get Job info from RM" in line:
                self.is_unknown_to_yarn = True
            ended = _FINAL_STATUS.search(line)
            if ended:
                self.final_status = ended[1].decode()
            if is_known_error(line):
                self.known_error_line = line
            due_to = _FAILURE_REASON.search(line)
            if due_to:
                self.failure_reason = simplify_line(due_to[1])
            if b"Retrying connect to server" in line or b"ERROR" in line or b"Exception" in line:
                self.last_error_line = simplify_line(line)
                if b"Retrying" in line and self.is_unknown_to_yarn:  # a missing history server, retried again and again
                    raise self._unknown_application_error()
                if b"Retrying" in line and self.final_status:
                    raise self._no_history_error() if self.final_status == "SUCCEEDED" else OSError(self.final_status)
                if b"Retrying" in line:  # the client itself waits, see write_job_properties
                    report_outage(
                        "YARN", self.last_error_line.partition("Retrying ")[2], self.client.wait_seconds, "HADOOP_HOME"
                    )
            yield line

    def _unknown_application_error(self) -> NutchError:
        return RunnerError(
            "YARN no longer knows the application of this job: its ResourceManager was restarted, and keeps "
            "applications only with yarn.resourcemanager.recovery.enabled: run the command again"
        )

    def _no_history_error(self) -> NutchError:
        return RunnerError(
            f"{self.application} has succeeded, but its counters are not available: its master exited before the "
            "client read them, and YARN's history server does not respond: start one "
            "(mapred --daemon start historyserver), and run the command again"
        )

    def count_output_records(self) -> int:
        """Return the number of output lines of the last step, by Hadoop's counters."""
        counters = self.counters()[-1].get("Map-Reduce Framework", {})
        kind = "Reduce" if "reducer" in self._get_steps()[-1] else "Map"
        return int(counters.get(f"{kind} output records", 0))

    def cat_output(self) -> Iterator[bytes]:
        """Yield the output of the last step."""
        if self.count_output_records():
            problem = "cannot read the job's output from HDFS"
            yield self.client.run_fs("-cat", f"{self._output_dir}/part-*", failure_message=problem).stdout

    def copy_output(self, directory: Path) -> None:
        """Copy the part files of the last step into a local folder."""
        directory.mkdir(parents=True, exist_ok=True)
        problem = f"cannot copy the job's output from HDFS to {directory}"
        self.client.run_fs("-get", f"{self._output_dir}/part-*", str(directory), failure_message=problem)
        for path in directory.glob("part-*"):
            whole = path.with_name(f".{path.name}")
            with path.open("rb") as source, whole.open("wb") as target:
                target.writelines(map(unescape_streamed_text, source))
            whole.replace(path)

    def _cleanup_hadoop_tmp(self) -> None:
        try:  # without retries: leftovers are deleted by package -clean, and Ctrl-C waits for this
            self.client._replace(wait_seconds=0.0).run_fs("-rm", "-r", "-f", "-skipTrash", self._hadoop_tmp_dir)
        except NutchError as error:
            warn(f"the job's input stays on HDFS, until nutch2py package -clean: {error}")

    def explain(self, error: Exception) -> NutchError:
        """Return why the job failed: the error of a task if its log is available, else what the client reported."""
        logs = f"yarn logs -applicationId {self.application}" if self.application else "the log of the ResourceManager"
        if self.missing_program:
            return ConfigurationError(
                f"the nodes have no {self.missing_program}: install it there, "
                "or name a Python that they have with mapreduce.python"
            )
        known = explain_error("the job failed on YARN", [self.known_error_line]) if self.exit_code is None else None
        if known is not None:  # no task has run
            return known
        task_error = self.client.find_task_error(self.application) if self.application else None
        if task_error is not None:
            return task_error
        if self.is_unknown_to_yarn:
            return self._unknown_application_error()
        for kind in _TASK_ERRORS:
            if kind.exit_code == self.exit_code:
                return kind(f"a task failed ({_first_line(kind.__doc__)}): see {logs}")
        if self.has_exceeded_memory:
            return ConfigurationError(
                "a task took more memory than its container has: raise mapreduce.map.memory.mb or "
                f"mapreduce.reduce.memory.mb, or lower parser.child.memory.mb: see {logs}"
            )
        if self.exit_code is not None:
            return RunnerError(f"a task {describe_exit(self.exit_code)}: see {logs}")
        return RunnerError(
            f"the job failed on YARN: {self.failure_reason or self.last_error_line or error}: see {logs}"
        )


_TASK_ERRORS = (
    errors.ConfigurationError,
    errors.InputError,
    errors.StoreError,
    errors.IndexingError,
    errors.LockLostError,
    errors.PluginFailuresError,
)
"""Error class by exit code of a task, for tasks whose log is not available."""


def _first_line(text: str | None) -> str:
    return (text or "").splitlines()[0].rstrip(".").lower()
