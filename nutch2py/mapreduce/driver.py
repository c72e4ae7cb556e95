"""The MapReduce driver: runs a TableJob with mrjob, shows its progress, and returns its counters and output."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.mapreduce import PACKAGE_DIR
from nutch2py.mapreduce.input_splits import Split, embed_contents, encode_split
from nutch2py.mapreduce.job_file import JobFile
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.lock_check import CURRENT_LOCK_TOKEN, sync_clock
from nutch2py.mapreduce.runners.job_dir import create_job_dir
from nutch2py.mapreduce.step_events import STEP_LISTENER
from nutch2py.mapreduce.table_job import ROWS_UNREADABLE_COUNTER, ParametersT, TableJob
from nutch2py.mapreduce.task_progress import ProgressMonitor
from nutch2py.plugins.plugin_failures import PLUGIN_FAILURES_GROUP, PLUGIN_PAGES_COUNTER, PluginFailureLimits
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.disk_errors import probe_disk, temp_disk_error
from nutch2py.support.process_memory import limit_malloc_memory, release_unused_memory
from nutch2py.table.row_validation import warn_skipped_rows
from nutch2py.table.store_factory import open_store, store_location

_LOG = logging.getLogger("nutch2py.jobs")
if TYPE_CHECKING:
    from nutch2py.mapreduce.runners.hadoop import hadoop_runner

_TASK_ENVIRONMENT = (
    "PYTHONUTF8=1",
    "PYTHONUNBUFFERED=",  # otherwise every record would be a separate write
)
RUNNERS = ("inline", "local", "hadoop", "spark")


@dataclass
class JobResult:
    """Result of a job.

    ``counters``: amounts by group and name, as ``{"injector": {"urls_new": 3}}``; counters without a count are absent.
    ``output``: the pairs that the last step emitted; most jobs emit none.
    """

    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    output: list[tuple[str, Any]] = field(default_factory=list, repr=False)

    def count(self, group: str, name: str) -> int:
        """Return a counter, 0 if it is absent."""
        return self.counters.get(group, {}).get(name, 0)

    def group(self, name: str) -> dict[str, int]:
        """Return the counters of a group by name; empty if it is absent."""
        return dict(self.counters.get(name, {}))

    def add_counters(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add counters by group and name; Hadoop's group names end with a space, which is stripped."""
        for group, names in counters.items():
            sums = self.counters.setdefault(group.strip(), {})
            for name, amount in names.items():
                sums[name] = sums.get(name, 0) + amount

    def summary(self, group: str) -> str:
        """Return the counters of a group as ``3 failed, 120 success``; empty if it is absent."""
        return ", ".join(f"{amount} {name}" for name, amount in sorted(self.counters.get(group, {}).items()))


def runner_name(conf: Configuration) -> str:
    """Return ``mapreduce.runner``: inline, local, hadoop or spark."""
    name = conf.get_trimmed("mapreduce.runner", "inline")
    if name not in RUNNERS:
        raise ConfigurationError(f"mapreduce.runner is {name!r}: choose one of {', '.join(RUNNERS)}")
    return name


def map_task_count(conf: Configuration) -> int:
    """Return the number of map tasks: ``mapreduce.job.maps``, else 1 inline and the number of cores elsewhere."""
    return conf.get_int("mapreduce.job.maps") or (1 if runner_name(conf) == "inline" else os.cpu_count() or 1)


def reduce_task_count(conf: Configuration) -> int:
    """Return the number of reduce tasks: ``mapreduce.job.reduces``, else 1 inline and the number of cores elsewhere."""
    return conf.get_int("mapreduce.job.reduces") or (1 if runner_name(conf) == "inline" else os.cpu_count() or 1)


def run_job(
    job_class: type[TableJob[ParametersT]],
    conf: Configuration,
    splits: Sequence[Split],
    parameters: ParametersT | None = None,
    *,
    title: str,
    expected_rows: int | None = None,
    reducers: int | None = None,
    output_dir: Path | None = None,
) -> JobResult:
    """Run a job and wait until it finishes.

    Args:
        job_class: The job.
        conf: Its properties.
        splits: Its input; without splits the result is empty.
        parameters: Parameters of the job, by default those without a batch.
        title: Name of the job for progress and log.
        expected_rows: Approximate number of rows to read, for the progress.
        reducers: Number of reduce tasks, by default :func:`reduce_task_count`.
        output_dir: Directory for the output of the last step as part files, instead of ``JobResult.output``.

    Raises:
        NutchError: The error of a task, from whichever process.
    """
    if not splits:
        return JobResult()
    runner = runner_name(conf)
    job_parameters: JobParameters = parameters or JobParameters()
    if not isinstance(job_parameters, job_class.parameters_class):
        raise TypeError(
            f"{job_class.__name__} takes {job_class.parameters_class.__name__}, not {type(job_parameters).__name__}"
        )
    check_store_reachable(conf, runner, job_class, job_parameters)
    is_inline = runner == "inline"
    if is_inline:
        limit_malloc_memory()
    try:
        return _run_with_mrjob(
            job_class, conf, splits, job_parameters, runner, title, expected_rows, reducers, output_dir
        )
    finally:
        if is_inline:
            release_unused_memory()


def _run_with_mrjob(
    job_class: type[TableJob[ParametersT]],
    conf: Configuration,
    splits: Sequence[Split],
    job_parameters: JobParameters,
    runner: str,
    title: str,
    expected_rows: int | None,
    reducers: int | None,
    output_dir: Path | None,
) -> JobResult:
    """Run a job in a directory of its own, see :func:`run_job`."""
    with create_job_dir() as work:
        channel = work / "channel"
        channel.mkdir()
        monitor = ProgressMonitor(channel, f"{title} {job_parameters.batch_label}".rstrip(), expected_rows)
        file = JobFile.from_conf(conf, job_parameters, runner)
        file.lock_token = CURRENT_LOCK_TOKEN.get()
        batches = open_store(conf, DerivedRow)
        file.crawl_clock = batches.clock.next()
        arguments = ["-r", runner, "--no-conf", "--quiet", "--configuration", str(work / "configuration.json")]
        # mrjob's files are in the job's own directory, which is deleted with the job
        arguments += ["--cleanup", "ALL", "--cleanup-on-failure", "ALL", "--local-tmp-dir", str(work)]
        launch: hadoop_runner.HadoopLaunch | None = None
        if runner == "hadoop":
            from nutch2py.mapreduce.runners.hadoop import hadoop_runner

            launch = hadoop_runner.HadoopLaunch.prepare(conf, work, splits, title, job_parameters.batch_label)
            arguments += launch.arguments
            if not hadoop_runner.is_installed_on_nodes(conf):
                file.conf_dirs = [f"{PACKAGE_DIR}/conf", f"{PACKAGE_DIR}/lib/nutch2py/_data/conf"]
        else:
            file.channel_dir, file.driver_pid = str(channel), os.getpid()
            if output_dir is not None:
                arguments += ["--output-dir", str(output_dir.absolute())]
        if runner == "spark":
            from nutch2py.mapreduce.runners import spark_runner

            arguments += spark_runner.spark_arguments(conf, work)
        if runner != "inline":
            arguments.append("--no-bootstrap-mrjob")  # tasks import mrjob from the same place as this package
            arguments += [word for setting in _TASK_ENVIRONMENT for word in ("--cmdenv", setting)]
        file.write(work / "configuration.json")
        with (work / "splits").open("wb") as file_of_splits:
            task_splits = embed_contents(splits) if runner == "hadoop" else splits
            file_of_splits.writelines(encode_split(split) + b"\n" for split in task_splits)
        logging.getLogger("mrjob").setLevel(logging.CRITICAL)
        job = job_class(args=[*arguments, str(work / "splits")])
        with _notify_step_listener(monitor, expected_rows), monitor, raise_on_sigterm(), job.make_runner() as mrjob:
            if launch is not None:
                launch.configure_runner(mrjob, reducers or reduce_task_count(conf), monitor)
            else:
                mrjob.reduce_tasks = reducers or reduce_task_count(conf)
            result = _run_and_collect(conf, job, mrjob, monitor, output_dir)
        if file.lock_token:
            sync_clock(batches)
        if (listener := STEP_LISTENER.get()) is not None:
            listener.step_finished(result.counters)
        for group, names in sorted(result.counters.items()):
            for name, amount in sorted(names.items()):
                _LOG.info("%s: %s %s = %d", title, group, name, amount)
        return result


@contextmanager
def _notify_step_listener(monitor: ProgressMonitor, expected: int | None) -> Iterator[None]:
    """Report the start and the end of a step to the listener of this context, if any."""
    listener = STEP_LISTENER.get()
    if listener is not None:
        listener.step_started(
            monitor.row_count, expected, monitor.current_notes, monitor.saved_counters, monitor.saved_queues
        )
    try:
        yield
    finally:
        if listener is not None:
            listener.step_closed()


def _run_and_collect(
    conf: Configuration, job: TableJob[Any], runner: Any, monitor: ProgressMonitor, output: Path | None
) -> JobResult:
    result = JobResult()
    try:
        runner.run()
    except NutchError:
        raise
    except Exception as error:
        known = monitor.find_task_error() or (probe_disk(output) if output is not None and output.is_dir() else None)
        known = known or temp_disk_error(error) or probe_disk(monitor.channel_dir)
        if known is None and hasattr(runner, "explain"):
            known = runner.explain(error)
        if known is not None:
            raise known from error
        raise
    for counters in runner.counters():
        result.add_counters(counters)
    warn_skipped_rows(result.count("table", ROWS_UNREADABLE_COUNTER))
    table = result.counters.get("table", {})
    pages = max(table.pop(f"{PLUGIN_PAGES_COUNTER}_{step}", 0) for step in ("map", "reduce"))
    PluginFailureLimits(conf).check_all(result.group(PLUGIN_FAILURES_GROUP), pages, monitor.first_plugin_failures())
    if not table:
        result.counters.pop("table", None)
    if output is None:
        result.output = list(job.parse_output(runner.cat_output()))
    elif hasattr(runner, "copy_output"):
        runner.copy_output(output)
    return result


def check_store_reachable(
    conf: Configuration, runner: str, job_class: type[TableJob[Any]], parameters: JobParameters
) -> None:
    """Raise ConfigurationError if tasks would run on machines that cannot reach the table or the output."""
    if runner != "hadoop" or conf.get_bool("storage.embedded.shared"):
        return
    location = store_location(conf)
    if location.startswith("embedded"):
        raise ConfigurationError(
            f"tasks on the nodes of a cluster cannot reach the table in {location}: set storage.data.store to "
            "hbase://GATEWAY:9090 (nutch2py copytable moves a crawl there), or run with -r local; when the cluster is "
            "this one machine, set storage.embedded.shared to true"
        )
    local = job_class.describe_local_outputs(conf, parameters)
    if local:
        raise ConfigurationError(
            f"tasks on the nodes of a cluster would write {local} to their own disks: send documents to Solr, "
            "Elasticsearch or OpenSearch instead (solr.server.url, elastic.host), or run this job with -r local; when "
            "the cluster is this one machine, set storage.embedded.shared to true"
        )


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Convert SIGTERM into an exception, so that a job stops its tasks, removes its files and releases its lock.

    Has no effect if the program has its own SIGTERM handler. The previous handler is restored afterwards.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours:
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def merge_counters(results: Iterable[JobResult]) -> JobResult:
    """Return the sum of the counters of several runs."""
    total = JobResult()
    for result in results:
        total.add_counters(result.counters)
        total.output += result.output
    return total
